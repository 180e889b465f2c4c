"""Orders the collectives of this process by their names, as Horovod does: ranks may begin them in different orders.

docs/python.md, "Order by name", has the protocol. Every rank tells rank 0 which calls it begins. Rank 0 decides
(`_order_table.py`), and each rank carries out its calls in the order of the decisions. One thread does that here; on
rank 0 another one decides."""
import collections
import json
import os
import secrets
import socket
import sys
import threading
import time
from multiprocessing import connection

from . import _library as lib
from ._engine import Handle, _call_back, call, watcher
from ._keys import kv_get, kv_set
from ._order_table import ERROR, FAILED, GO, JOINED, JOINED_ALL, JOINED_ON_GPU, ZEROS, OrderTable, zeros_of
from ._state import place

HANDSHAKE_S = 20
POLL_S = 1.0

order = None  # the Order while calls are ordered by name


def start(init_timeout_s, op_timeout_s):
    """All ranks call it when they have joined the job."""
    global order
    order = Order(init_timeout_s, op_timeout_s)


def stop():
    """Returns when all calls of this rank have ended; on rank 0 when all other ranks have left, too."""
    global order
    if order is not None:
        stopping, order = order, None
        stopping.stop()


def _forget_after_fork():
    """The threads stay in the parent; calls of the child fail in libdrun."""
    global order
    order = None


os.register_at_fork(after_in_child=_forget_after_fork)


class DuplicateName(lib.DrunError, ValueError):
    """A call of the same kind and name as one that has not ended."""


class NamedHandle(Handle):
    def __init__(self, streams, told):
        super().__init__(streams)
        self._tell = told  # called before this thread waits

    def wait(self):
        if not self._done.is_set() and threading.current_thread() is threading.main_thread():
            self._tell()
        return super().wait()

    def when_done(self, callback):
        """From the watcher's thread: the callback may make calls, which the order's thread carries out."""

        def wait():
            self._done.wait()
            _call_back(callback, self)

        watcher.submit(wait)


class Order:
    def __init__(self, init_timeout_s, op_timeout_s):
        self._lock = threading.Lock()
        self._mine = {}  # (set, key) -> (collective, handle), until it has ended
        self._numbers = collections.Counter()  # of calls without a name, by set and kind
        self._join = None  # (handle, function that makes zeros on a GPU, or None) while this rank has joined
        self._error = None  # after which no call is possible
        self._ended = threading.Condition(self._lock)
        self._coordinator = None
        if place().rank == 0:
            self._to_decide, other_end = connection.Pipe()
            self._coordinator = _Coordinator(place().size, op_timeout_s, other_end, init_timeout_s)
        else:
            self._to_decide = _connect(init_timeout_s)
        self._send_lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="drun names", daemon=True)
        self._thread.start()

    def is_idle(self):
        with self._lock:
            return not self._mine and self._join is None

    def define_set(self, number, ranks):
        self._say("set", number, ranks)

    def submit(self, collective, waits):
        """Returns a handle. `waits`: the caller waits for it at once."""
        number = collective.group.process_set_id
        with self._lock:
            if self._error is not None:
                raise self._error
            name = collective.name
            if name is None:
                self._numbers[number, collective.kind] += 1
                name = f"noname.{self._numbers[number, collective.kind]}"
            key = f"{collective.kind} '{name}'"
            if (number, key) in self._mine:
                raise DuplicateName(f"{key} was begun again before it had ended: calls under way need names of their own",
                                    lib.ERROR_ARGUMENT)
            handle = NamedHandle(collective.streams, lambda: self._say("wait", number, key))
            self._mine[number, key] = (collective, handle)
        waits = waits and threading.current_thread() is threading.main_thread()
        self._say("call", number, key, collective.fields(), waits)
        return handle

    def join(self, zeros_on_gpu):
        """Takes part with zeros until all ranks have joined; returns the last one."""
        handle = Handle()
        with self._lock:
            if self._error is not None:
                raise self._error
            self._join = (handle, zeros_on_gpu)
        self._say("join", JOINED if zeros_on_gpu is None else JOINED_ON_GPU)
        return handle.wait()

    def drain(self, number):
        """Returns when this rank has no call of the set under way."""
        with self._lock:
            self._ended.wait_for(lambda: not any(one == number for one, _ in self._mine))

    def stop(self):
        with self._lock:
            self._ended.wait_for(lambda: not self._mine)
            self._error = self._error or lib.DrunError("drun.shutdown() has been called", lib.ERROR_STATE)
        self._say("bye")
        self._thread.join()
        if self._coordinator is not None:
            self._coordinator.join()

    def _say(self, *words):
        try:
            with self._send_lock:
                self._to_decide.send_bytes(json.dumps(words, separators=(",", ":")).encode())
        except OSError as error:
            self._fail(lib.DrunError(f"rank 0, which orders the calls, was lost: {error}", lib.ERROR_PEER, 0))

    def _serve(self):
        while True:
            try:
                message = json.loads(self._to_decide.recv_bytes())
            except (EOFError, OSError) as error:
                return self._fail(lib.DrunError(f"rank 0, which orders the calls, was lost: {error or 'it ended'}", lib.ERROR_PEER, 0))
            kind, *words = message
            if kind == GO:
                self._carry_out(*words)
            elif kind == ZEROS:
                self._give_zeros(*words)
            elif kind == ERROR:
                number, key, *error = words
                self._end(number, key, None, lib.DrunError(*error))
            elif kind == JOINED_ALL:
                with self._lock:
                    (handle, _), self._join = self._join, None
                handle._finish(words[0], None)
            elif kind == FAILED:
                self._fail(lib.DrunError(*words))
            else:  # "bye"
                return None

    def _carry_out(self, number, key, n_joined):
        collective = self._mine[number, key][0]
        collective.n_joined = n_joined
        result = error = None
        try:
            result = collective.work()
        except BaseException as caught:  # raised in the waiter
            error = caught
        self._end(number, key, result, error)

    def _end(self, number, key, result, error):
        with self._lock:
            handle = self._mine.pop((number, key))[1]
            self._ended.notify_all()
        handle._finish(result, error)

    def _give_zeros(self, number, fields, n_joined):
        """This rank's part in a call of others."""
        del number  # only calls among all ranks have zeros
        zeros = zeros_of(fields)
        try:
            if not zeros:
                call("drun_barrier", lib.COMM_WORLD, None)
            for one in zeros:
                _reduce_zeros(one, self._join[1], n_joined)
        except lib.DrunError as error:
            self._fail(error)

    def _fail(self, error):
        with self._lock:
            self._error = self._error or error
            handles = [handle for _, handle in self._mine.values()] + ([self._join[0]] if self._join else [])
            self._mine, self._join = {}, None
            self._ended.notify_all()
        for handle in handles:
            handle._finish(None, error)


def _reduce_zeros(one, zeros_on_gpu, n_joined):
    from ._tensor import take

    count = 1
    for n in one.shape:
        count *= n
    n_bytes = count * lib.ITEMSIZE[one.dtype]
    zeros = take(zeros_on_gpu(n_bytes) if one.on_gpu else bytearray(n_bytes), writable=True)
    factor = place().size / (place().size - n_joined) if one.is_mean_of_present else 1.0
    call("drun_allreduce", zeros.pointer, zeros.pointer, count, one.dtype, one.op, lib.COMM_WORLD,
         lib.call_options(None, one.prescale, one.postscale * factor, stream=zeros.stream))


# ---- the way to rank 0

_WHERE = "drun.order"  # a key of the job's store, whose network is authenticated and encrypted


def _connect(timeout_s):
    address, port, secret = kv_get(_WHERE, timeout_s).decode().split()
    with socket.create_connection((address, int(port)), timeout_s) as one:
        one.settimeout(None)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        channel = connection.Connection(one.detach())
    connection.answer_challenge(channel, secret.encode())
    connection.deliver_challenge(channel, secret.encode())
    channel.send_bytes(str(place().rank).encode())
    return channel


class _Coordinator:
    """Rank 0's: accepts the other ranks, and decides for all."""

    def __init__(self, size, op_timeout_s, own, init_timeout_s):
        self._table = OrderTable(size, op_timeout_s)
        self._channels = {own: 0}
        self._n_expected = size - 1
        self._deadline = time.monotonic() + init_timeout_s
        self._lock = threading.Lock()
        self._listener = None
        if size > 1:
            # The address on the network that drun has chosen; without drun all ranks are here.
            address = os.environ.get("MASTER_ADDR", "127.0.0.1")
            self._listener = socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                                                  backlog=size)
            self._secret = secrets.token_hex(32)
            kv_set(_WHERE, f"{address} {self._listener.getsockname()[1]} {self._secret}".encode())
        self._wake, self._woken = connection.Pipe()
        self._thread = threading.Thread(target=self._run, name="drun order", daemon=True)
        self._thread.start()
        if size > 1:
            threading.Thread(target=self._accept, name="drun accept", daemon=True).start()

    def join(self):
        self._thread.join()

    def _accept(self):
        """A stranger that connects and says nothing keeps nobody waiting."""
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._admit, args=(one,), name="drun admit", daemon=True).start()

    def _admit(self, one):
        one.settimeout(None)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seconds = HANDSHAKE_S.to_bytes(8, sys.byteorder) + bytes(8)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, seconds)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
        channel = connection.Connection(os.dup(one.fileno()))
        try:
            connection.deliver_challenge(channel, self._secret.encode())
            connection.answer_challenge(channel, self._secret.encode())
            rank = int(channel.recv_bytes(16))
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                one.setsockopt(socket.SOL_SOCKET, option, bytes(16))
        except (OSError, EOFError, ValueError, connection.AuthenticationError):
            channel.close()
            return
        finally:
            one.close()
        with self._lock:
            self._channels[channel] = rank
            self._n_expected -= 1
        self._wake.send_bytes(b"")

    def _run(self):
        while True:
            with self._lock:
                channels = list(self._channels)
                if not channels and self._n_expected == 0:
                    break
            for channel in connection.wait([*channels, self._woken], POLL_S if self._table.has_calls() else None):
                if channel is self._woken:
                    channel.recv_bytes()
                else:
                    self._hear(channel)
            now = time.monotonic()
            self._table.pass_time(now)
            for sentence in self._table.take_warnings(now):
                print(f"drun: warning: {sentence}", file=sys.stderr, flush=True)
            self._send()
        if self._listener is not None:
            self._listener.close()

    def _hear(self, channel):
        rank = self._channels[channel]
        try:
            kind, *words = json.loads(channel.recv_bytes())
        except (EOFError, OSError):
            self._table.lose(rank)
            self._drop(channel)
            return
        if kind == "call":
            self._table.begin(rank, *words, time.monotonic())
        elif kind == "wait":
            self._table.wait(rank, *words)
        elif kind == "join":
            self._table.join(rank, *words)
        elif kind == "set":
            self._table.define_set(*words)
        else:  # "bye"
            self._table.leave(rank)
            self._send()
            channel.send_bytes(b'["bye"]')
            self._drop(channel)

    def _drop(self, channel):
        with self._lock:
            del self._channels[channel]
        channel.close()

    def _send(self):
        by_rank = {rank: channel for channel, rank in self._channels.items()}
        for rank, message in self._table.take_messages():
            if rank not in by_rank:
                continue
            try:
                by_rank[rank].send_bytes(json.dumps(message, separators=(",", ":")).encode())
            except OSError:
                pass  # its end is heard next
