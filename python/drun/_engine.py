"""The order of this process's collectives, which must be the same on all ranks, and the asynchronous ones.

A blocking call is carried out by its caller if nothing is before it, and waits for its turn otherwise. Asynchronous calls
are carried out one after another by one thread."""
import collections
import os
import threading

from . import _library as lib


class Handle:
    """Of an asynchronous call. Keeps what the call works on alive."""

    def __init__(self, keep=None):
        self._done = threading.Event()
        self._result = None
        self._error = None
        self._keep = keep
        self._lock = threading.Lock()
        self._callbacks = []

    def done(self):
        return self._done.is_set()

    def wait(self):
        """The result; raises what the call raised. May be called more than once."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def when_done(self, callback):
        """callback(handle), from the thread that carries out the calls, or at once if the call is done."""
        with self._lock:
            if not self._done.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def _finish(self, result, error):
        with self._lock:
            self._result, self._error = result, error
            self._keep = None
            self._done.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


class Engine:
    def __init__(self):
        self._changed = threading.Condition()
        self._queue = collections.deque()
        self._busy = False  # somebody carries out a call
        self._thread = None
        os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self):
        # The thread is the parent's, and so is libdrun's communicator: calls return an error there.
        self._changed = threading.Condition()
        self._queue = collections.deque()
        self._busy = False
        self._thread = None

    def run(self, work):
        """Carries out work(), which calls libdrun, in its turn."""
        if threading.current_thread() is self._thread:  # a callback of an asynchronous call
            return work()
        with self._changed:
            direct = not self._busy and not self._queue
            if direct:
                self._busy = True
        if not direct:
            return self.submit(work).wait()
        try:
            return work()
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def submit(self, work, keep=None):
        handle = Handle(keep)
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="drun", daemon=True)
                self._thread.start()
            self._queue.append((handle, work))
            self._changed.notify_all()
        return handle

    def drain(self):
        """Returns when everything that was submitted before is done, well or not."""
        with self._changed:
            if self._thread is None or threading.current_thread() is self._thread:
                return
        self.submit(lambda: None).wait()

    def _serve(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue and not self._busy)
                handle, work = self._queue.popleft()
                self._busy = True
            result = error = None
            try:
                result = work()
            except BaseException as caught:  # whoever waits gets it
                error = caught
            with self._changed:
                self._busy = False
                self._changed.notify_all()
            del work
            handle._finish(result, error)
            del handle, result, error


engine = Engine()


def synchronize(handle):
    """Waits for an asynchronous call and returns its result."""
    return handle.wait()


def poll(handle):
    """Whether it is done: synchronize() would not wait."""
    return handle.done()


def call(function, *arguments):
    """One function of libdrun; a failure is raised."""
    lib.check(getattr(lib.library(), function)(*arguments))
