"""Orders the collectives of this process by their names, as Horovod does: ranks may begin them in different orders.

docs/python.md, "Order by name", has the protocol. Every rank tells rank 0 which calls it begins. Rank 0 decides
(`_order_table.py`), and each rank carries out its calls in the order of the decisions. One thread does that here; on
rank 0 another one decides."""
import collections
import json
import math
import os
import secrets
import socket
import struct
import sys
import threading
import time
import traceback
from multiprocessing import connection

from . import _library as lib
from ._engine import Handle, call, call_back_later
from ._keys import kv_get, kv_set
from ._order_table import (BARRIER, ERROR, FAILED, GO, JOIN_FAILED, JOINED, JOINED_ALL, JOINED_ON_GPU, ZEROS, OrderTable,
                           zeros_of)
from ._state import place
from ._zeros import factor_of_present, reduce_zeros

HANDSHAKE_S = 20
POLL_S = 1.0
ACCEPT_PAUSE_S = 0.1

order = None  # the Order while calls are ordered by name


def start(init_timeout_s, op_timeout_s):
    """All ranks call it when they have joined the job."""
    global order
    order = Order(init_timeout_s, op_timeout_s)


def stop():
    """Returns when all calls of this rank have ended; on rank 0 when all other ranks have left, too."""
    global order
    if order is not None:
        order.stop()
        order = None


def _forget_after_fork():
    """The threads stay in the parent; calls of the child fail in libdrun."""
    global order
    order = None


os.register_at_fork(after_in_child=_forget_after_fork)


class DuplicateName(lib.DrunError, ValueError):
    """A call of the same kind and name as one that has not ended."""


class NamedHandle(Handle):
    def __init__(self, streams, tell):
        super().__init__(streams)
        self._tell = tell  # called before the main thread waits; None: rank 0 knows that it does

    def result(self):
        if self._tell and not self._done.is_set() and threading.current_thread() is threading.main_thread():
            self._tell()
        return super().result()

    def when_done(self, callback):
        """From the watcher's thread: the callback may make calls, which the order's thread carries out."""
        call_back_later(self._done.wait, callback, self)


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
        self._count_anew(number)  # a set that was removed may have had this number
        self._say("set", number, ranks)

    def _count_anew(self, number):
        with self._lock:
            for counted in [one for one in self._numbers if one[0] == number]:
                del self._numbers[counted]

    def submit(self, collective, waits):
        """Returns a handle. `waits`: the caller waits for it at once."""
        number = collective.group.process_set_id
        if threading.current_thread() is not threading.main_thread():
            waits = None
        fields = _encoded(collective.fields())
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
            handle = NamedHandle(collective.streams, None if waits else lambda: self._say("wait", number, key))
            self._mine[number, key] = (collective, handle)
        self._send(f'["call",{number},{_encoded(key)},{fields},{_encoded(waits)}]')
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
        self._send(_encoded(words))

    def _send(self, text):
        try:
            with self._send_lock:
                self._to_decide.send_bytes(text.encode())
        except OSError as error:
            self._fail(lib.DrunError(f"rank 0, which orders the calls, was lost: {error}", lib.ERROR_PEER, 0))

    def _serve(self):
        try:
            self._carry_out_all()
        except BaseException as error:  # else the calls would be waited for without end
            self._fail(error)
            traceback.print_exc()
        with self._send_lock:
            self._to_decide.close()  # rank 0 hears that this rank is lost, if it has not said goodbye

    def _carry_out_all(self):
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
                self._count_anew(0)  # a rank with less data has made fewer calls without a name
                self._end_join(words[0], None)
            elif kind == JOIN_FAILED:
                self._end_join(None, lib.DrunError(*words))
            elif kind == FAILED:
                self._fail(lib.DrunError(*words))
            else:  # "bye"
                return None

    def _carry_out(self, number, key, n_joined):
        mine = self._mine.get((number, key))
        if mine is None:
            return  # all calls have failed meanwhile
        collective = mine[0]
        collective.n_joined = n_joined
        result = error = None
        try:
            result = collective.work()
        except BaseException as caught:  # raised in the waiter
            error = caught
        self._end(number, key, result, error)

    def _end(self, number, key, result, error):
        with self._lock:
            mine = self._mine.pop((number, key), None)
            self._ended.notify_all()
        if mine is not None:
            mine[1]._finish(result, error)

    def _end_join(self, result, error):
        with self._lock:
            join, self._join = self._join, None
        if join is not None:
            join[0]._finish(result, error)

    def _give_zeros(self, number, fields, n_joined):
        """This rank's part in a call of others."""
        del number  # only calls among all ranks have zeros
        join = self._join
        if join is None:
            return  # all calls have failed meanwhile
        try:
            if fields == [BARRIER]:
                call("drun_barrier", lib.COMM_WORLD, None)
            for one in zeros_of(fields):
                factor = factor_of_present(place().size, n_joined) if one.is_mean_of_present else 1.0
                reduce_zeros(math.prod(one.shape), one.dtype, one.op, lib.COMM_WORLD, one.prescale, one.postscale * factor,
                             join[1] if one.on_gpu else None)
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


def _encoded(value):
    return json.dumps(value, separators=(",", ":"))


# ---- the way to rank 0

_WHERE = "drun.order"  # a key of the job's store, whose network is authenticated and encrypted


def _own_address():
    """On the network that drun has chosen, as drun gave it to this process: scripts change MASTER_ADDR for torch. Without
    drun all ranks are here."""
    try:
        with open("/proc/self/environ", "rb") as file:
            given = dict(one.split("=", 1) for one in file.read().decode(errors="replace").split("\0") if "=" in one)
    except OSError:
        given = os.environ
    return given.get("DRUN_DATA_ADDRESS") or given.get("MASTER_ADDR") or "127.0.0.1"


def _limit_waiting(one, seconds):
    """0: without a limit."""
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        one.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", seconds, 0))


def _connect(timeout_s):
    address, port, secret = kv_get(_WHERE, timeout_s).decode().split()
    try:
        with socket.create_connection((address, int(port)), timeout_s) as one:
            one.settimeout(None)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _limit_waiting(one, max(1, round(timeout_s)))
            channel = connection.Connection(os.dup(one.fileno()))
            connection.answer_challenge(channel, secret.encode())
            connection.deliver_challenge(channel, secret.encode())
            channel.send_bytes(str(place().rank).encode())
            _limit_waiting(one, 0)
    except (OSError, EOFError, ValueError, AssertionError, connection.AuthenticationError) as error:
        raise lib.DrunError(f"rank 0, which orders the calls, can't be reached at {address} port {port}: {error or 'it hung up'}",
                            lib.ERROR_CONNECT, 0) from error
    return channel


class _Coordinator:
    """Rank 0's: accepts the other ranks, and decides for all."""

    def __init__(self, size, op_timeout_s, own, init_timeout_s):
        self._table = OrderTable(size, op_timeout_s)
        self._channels = {own: 0}
        self._gone = set()  # ranks that were connected
        self._n_expected = size - 1
        self._deadline = time.monotonic() + init_timeout_s  # of the connections of all ranks
        self._is_closed = False  # the listener
        self._lock = threading.Lock()
        self._listener = None
        if size > 1:
            address = _own_address()
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
                if self._is_closed:
                    return
                time.sleep(ACCEPT_PAUSE_S)  # no descriptor is free, or the other end is gone again
                continue
            try:
                threading.Thread(target=self._admit, args=(one,), name="drun admit", daemon=True).start()
            except RuntimeError:  # Python 3.12 begins no thread while it exits
                self._admit(one)

    def _admit(self, one):
        one.settimeout(None)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _limit_waiting(one, HANDSHAKE_S)
        channel = connection.Connection(os.dup(one.fileno()))
        try:
            connection.deliver_challenge(channel, self._secret.encode())
            connection.answer_challenge(channel, self._secret.encode())
            rank = int(channel.recv_bytes(16))
            _limit_waiting(one, 0)
        except (OSError, EOFError, ValueError, AssertionError, connection.AuthenticationError):
            channel.close()
            return
        finally:
            one.close()
        with self._lock:
            self._channels[channel] = rank
            self._n_expected -= 1
            if self._n_expected == 0:
                self._close_listener()
        self._wake.send_bytes(b"")

    def _close_listener(self):
        """Also wakes the thread that accepts."""
        if self._listener is not None and not self._is_closed:
            self._is_closed = True
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def _run(self):
        try:
            self._decide_all()
        except BaseException:
            traceback.print_exc()
        with self._lock:
            channels, self._channels = list(self._channels), {}
            self._close_listener()
        for channel in channels:  # none, unless this has failed: then all ranks hear it
            channel.close()

    def _decide_all(self):
        while True:
            with self._lock:
                channels = list(self._channels)
                n_expected = self._n_expected
            if not channels and n_expected == 0:
                return
            timeout = POLL_S if self._table.has_calls() or n_expected > 0 else None
            for channel in connection.wait([*channels, self._woken], timeout):
                if channel is self._woken:
                    channel.recv_bytes()
                else:
                    self._hear(channel)
            now = time.monotonic()
            self._table.pass_time(now)
            for sentence in self._table.take_warnings(now):
                print(f"drun: warning: {sentence}", file=sys.stderr, flush=True)
            if n_expected > 0 and now > self._deadline:
                self._lose_the_missing()
            self._send()

    def _lose_the_missing(self):
        """Ranks that have not connected in time."""
        with self._lock:
            here = set(self._channels.values()) | self._gone
            self._n_expected = 0
            self._close_listener()
        for rank in range(place().size):
            if rank not in here:
                self._table.lose(rank)

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
            try:
                channel.send_bytes(b'["bye"]')
            except OSError:
                pass  # it did not wait for it
            self._drop(channel)

    def _drop(self, channel):
        with self._lock:
            self._gone.add(self._channels.pop(channel))
        channel.close()

    def _send(self):
        with self._lock:
            by_rank = {rank: channel for channel, rank in self._channels.items()}
        for rank, message in self._table.take_messages():
            if rank not in by_rank:
                continue
            try:
                by_rank[rank].send_bytes(json.dumps(message, separators=(",", ":")).encode())
            except OSError:
                pass  # its end is heard next
