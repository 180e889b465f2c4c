"""Orders this process's collectives, which must be the same on all ranks, and runs the asynchronous ones.

The caller carries out a blocking call itself if no call is before it, else it waits for its turn. An asynchronous call
that is one call of libdrun is passed to libdrun, which has a thread and an order of its own. One Python thread carries
out asynchronous calls of several steps, and all calls that arrive in the meantime."""
import collections
import contextlib
import ctypes
import os
import threading
import traceback

from . import _library as lib


class _Waited:
    """What a program can wait for. `streams`: those that the call is ordered on; the current stream of whoever waits for
    the call waits for them."""

    streams = ()

    def result(self):
        """As wait(), but orders no stream."""
        raise NotImplementedError

    def wait(self):
        """Returns the call's result or raises its exception. May be called more than once."""
        result = self.result()
        self._order_current_stream()
        return result

    def has_been_seen_done(self):
        """For poll()."""
        self._order_current_stream()

    def _order_current_stream(self):
        for stream in self.streams:
            stream.order_current()


class Handle(_Waited):
    """Handle of an asynchronous call that the Python thread carries out."""

    def __init__(self, streams=()):
        self.streams = streams
        self._done = threading.Event()
        self._result = None
        self._error = None
        self._lock = threading.Lock()
        self._callbacks = []

    def done(self):
        return self._done.is_set()

    def result(self):
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def when_done(self, callback):
        """Calls callback(handle) from the thread that carries out the calls, or at once if the call is done."""
        with self._lock:
            if not self._done.is_set():
                self._callbacks.append(callback)
                return
        _call_back(callback, self)

    def _finish(self, result, error):
        with self._lock:
            self._result, self._error = result, error
            self._done.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            _call_back(callback, self)


def _call_back(callback, handle):
    try:
        callback(handle)
    except Exception:
        traceback.print_exc()  # the thread continues


class RequestHandle(_Waited):
    """Handle of an asynchronous call that libdrun carries out. `keep` holds the memory that the call uses."""

    def __init__(self, requests, result, keep, streams=()):
        self.streams = streams
        self._requests = requests
        self._result = result
        self._error = None
        self._keep = keep
        self._lock = threading.Lock()  # the thread that sees a request's end frees it

    def done(self):
        if not self._lock.acquire(blocking=False):
            return False  # another thread waits for it
        try:
            while self._requests:
                over = ctypes.c_int()
                request = self._requests[0]
                status = lib.library().drun_test(ctypes.byref(request), ctypes.byref(over))
                if status == lib.OK and not over.value:
                    return False
                self._ended(status)
            return True
        finally:
            self._lock.release()

    def is_forgettable(self):
        """On GPUs True only after wait(): testing the request would already make the program's stream wait for it."""
        return not self._requests if self._requests.on_gpu else self.done()

    def result(self):
        self._end_all()
        if self._error is not None:
            raise self._error
        return self._result

    def _end_all(self):
        with self._lock:
            while self._requests:
                self._ended(lib.library().drun_wait(ctypes.byref(self._requests[0])))

    def when_done(self, callback):
        """Like Handle.when_done, but called from the thread of `watcher`."""
        call_back_later(self._end_all, callback, self)

    def _ended(self, status):
        del self._requests[0]
        try:
            lib.check(status)
        except lib.DrunError as error:
            self._error = self._error or error
        if not self._requests:
            self._keep = None


class CombinedHandle(_Waited):
    """Handle of several asynchronous calls. finish: makes one result of theirs, in the thread that waits, or that polls
    when they are done; on GPUs as further work of the calls' streams. Calling the handle returns the result too:
    Horovod's handles of sparse tensors are used like that."""

    def __init__(self, handles, finish=lambda *results: list(results)):
        self.streams = [stream for handle in handles for stream in handle.streams]
        self._handles = handles
        self._finish = finish
        self._result = None
        self._lock = threading.Lock()

    def done(self):
        return all(handle.done() for handle in self._handles)

    def has_been_seen_done(self):
        try:
            self.wait()
        except Exception:
            pass  # wait() raises it again

    def result(self):
        with self._lock:
            if self._finish is not None:
                with contextlib.ExitStack() as on_streams:
                    for stream in self.streams:
                        on_streams.enter_context(stream.current())
                    self._result = self._finish(*[handle.result() for handle in self._handles])
                self._finish = None
        return self._result

    __call__ = _Waited.wait


class Engine:
    def __init__(self):
        self._changed = threading.Condition()
        self._queue = collections.deque()
        self._busy = False  # a call is being carried out
        self._thread = None
        # Calls that libdrun carries out. Kept even if the program drops their handles, because libdrun writes to their
        # memory.
        self._outstanding = collections.deque()
        os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self):
        # The thread stays in the parent, as does libdrun's communicator: its calls return an error in the child.
        self._changed = threading.Condition()
        self._queue = collections.deque()
        self._busy = False
        self._thread = None
        self._outstanding = collections.deque()

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

    def begin(self, work, keep, streams=()):
        """work(requests) calls libdrun with call_options(requests=requests) and returns the result, which is valid when
        the handle is done. `keep` holds the memory of the calls; `streams` as for Handle."""
        if threading.current_thread() is self._thread:
            return self.submit(lambda: work(None), streams)
        with self._changed:
            if self._busy or self._queue:
                direct = False
            else:
                direct = self._busy = True
        if not direct:
            return self.submit(lambda: work(None), streams)
        requests = lib.Requests()
        try:
            handle = RequestHandle(requests, work(requests), keep, streams)
        except BaseException:
            try:
                RequestHandle(requests, None, keep).wait()  # for the calls that were made
            except lib.DrunError:
                pass  # they may belong to a canceled group; the first error counts
            raise
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
        with self._changed:
            self._forget_the_done()
            self._outstanding.append(handle)
        return handle

    def _forget_the_done(self, most_unasked=256):
        """Drops calls that have ended. Asks libdrun about calls without a waiter only if there are more than
        most_unasked: else their memory would be kept forever."""
        while self._outstanding and self._outstanding[0].is_forgettable():
            self._outstanding.popleft()
        while len(self._outstanding) > most_unasked and self._outstanding[0].done():
            self._outstanding.popleft()

    def is_idle(self):
        with self._changed:
            self._forget_the_done(most_unasked=0)
            return not (self._busy or self._queue or self._outstanding)

    def submit(self, work, streams=()):
        handle = Handle(streams)
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="drun", daemon=True)
                self._thread.start()
            self._queue.append((handle, work))
            self._changed.notify_all()
        return handle

    def drain(self):
        """Returns when everything submitted before has ended, successfully or not."""
        with self._changed:
            outstanding = list(self._outstanding)
            self._outstanding.clear()
        for handle in outstanding:
            try:
                handle.wait()
            except lib.DrunError:
                pass  # synchronize() raises it
        with self._changed:
            if self._thread is None or threading.current_thread() is self._thread:
                return
        self.submit(lambda: None).wait()

    def keep_for_ever(self):
        """For the end of a process that has failed: libdrun's thread may still use this memory while Python shuts
        down."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._outstanding))

    def _serve(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue and not self._busy)
                handle, work = self._queue.popleft()
                self._busy = True
            result = error = None
            try:
                result = work()
            except BaseException as caught:  # raised in the waiter
                error = caught
            with self._changed:
                self._busy = False
                self._changed.notify_all()
            del work
            handle._finish(result, error)
            del handle, result, error


engine = Engine()
watcher = Engine()  # its thread waits for calls that have a callback; it makes none itself


def call_back_later(wait, callback, handle):
    """Calls callback(handle) from the watcher's thread when wait() has returned."""

    def call_back():
        wait()
        _call_back(callback, handle)

    watcher.submit(call_back)


def synchronize(handle):
    """Waits for an asynchronous call and returns its result. On a GPU the call is enqueued then: the current stream waits
    for it."""
    return handle.wait()


def poll(handle):
    """True if the call is done, so that synchronize() would not wait. On a GPU, the current stream waits for the call
    from then on."""
    if not handle.done():
        return False
    handle.has_been_seen_done()
    return True


def call(function, *arguments):
    """Calls one function of libdrun; raises its failure."""
    lib.check(getattr(lib.library(), function)(*arguments))
