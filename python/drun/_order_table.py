"""Which collectives are possible, in which order, if ranks begin them in orders of their own. Pure: the caller passes in
what ranks say and the time, and sends the messages that come out. docs/python.md, "Order by name", has both.

A call is known by its process set and its key, kind and name together. It is ready when all ranks of the set have begun
it. The table decides once and for all ranks, and every rank gets its messages in the same order, so that ranks never
wait for each other in different calls."""
import collections

from . import _library as lib

WARN_S = 60.0
ALL_WAIT_S = 5.0  # ranks that all wait for each other give up then
MAX_NAMED = 8  # calls in an error

JOINED, JOINED_ON_GPU = 1, 2

# An allreduce as a joined rank must know it. Its call's `fields` are a list of these, as lists.
Zeros = collections.namedtuple("Zeros", "dtype type_name op shape prescale postscale on_gpu is_mean_of_present")

BARRIER = "barrier"  # the only field of a barrier

# Messages to a rank, as lists that begin with one of these.
GO = "go"  # set, key, ranks that take part with zeros: carry out your call
ZEROS = "zeros"  # set, fields, ranks that take part with zeros: take part with zeros
ERROR = "error"  # set, key, text, status, rank at fault: your call has failed, others are possible
JOINED_ALL = "joined"  # last rank that joined
JOIN_FAILED = "join failed"  # text, status, rank at fault: not all ranks can join any more
FAILED = "failed"  # text, status, rank at fault: no call is possible any more


class _Call:
    def __init__(self, now):
        self.fields = {}  # by rank
        self.begun = now
        self.has_warned = False


class OrderTable:
    def __init__(self, size, op_timeout_s):
        self._op_timeout_s = op_timeout_s
        self._sets = {0: list(range(size))}
        self._calls = {}  # (set, key) -> _Call, in the order of beginning
        self._joined = {}  # rank -> JOINED or JOINED_ON_GPU, in the order of joining
        self._left = {}  # ranks in the order of leaving; the values mean nothing
        self._waits = {}  # rank -> (set, key) for which its main thread waits
        self._threaded = set()  # ranks that have begun calls in other threads than the main one
        self._all_wait_since = None
        self._messages = []

    def take_messages(self):
        """[(rank, message), ...] in the order in which they must be sent."""
        messages, self._messages = self._messages, []
        return messages

    def take_warnings(self, now):
        """Sentences about calls that some ranks have not begun for a long time; each call once."""
        warnings = []
        for (number, key), call in self._calls.items():
            if now - call.begun >= WARN_S and not call.has_warned:
                call.has_warned = True
                warnings.append(f"{key} was begun {now - call.begun:.0f} s ago, but not by {self._missing(number, call)}")
        return warnings

    def has_calls(self):
        return bool(self._calls)

    def define_set(self, number, ranks):
        self._sets[number] = list(ranks)

    def begin(self, rank, number, key, fields, waits, now):
        """`waits`: the rank's main thread waits for the call; None: another thread has begun it."""
        call = self._calls.setdefault((number, key), _Call(now))
        call.fields[rank] = fields
        if waits:
            self._waits[rank] = (number, key)
        elif waits is None:
            self._threaded.add(rank)
        self._all_wait_since = None
        self._decide(number, key, call)

    def wait(self, rank, number, key):
        """The call that the rank means may have ended meanwhile, and others may have begun the next one of that name."""
        call = self._calls.get((number, key))
        if call is not None and rank in call.fields:
            self._waits[rank] = (number, key)

    def join(self, rank, how):
        if self._left:
            return self._fail_join(rank)
        self._joined[rank] = how
        self._all_wait_since = None
        self._decide_all()
        if len(self._joined) == len(self._sets[0]):
            last = list(self._joined)[-1]
            self._joined.clear()
            for one in self._sets[0]:
                self._messages.append((one, [JOINED_ALL, last]))
        return None

    def _fail_join(self, rank):
        left = next(iter(self._left))
        text = f"join(): rank {left} has left the job without having joined"
        self._messages.append((rank, [JOIN_FAILED, text, lib.ERROR_PEER, left]))

    def leave(self, rank):
        """The rank has ended all its calls and makes no more."""
        self._left[rank] = True
        self._waits.pop(rank, None)
        for joined in self._joined:
            self._fail_join(joined)
        self._joined.clear()
        self._decide_all()

    def lose(self, rank):
        """The rank is gone without a word."""
        for one in self._sets[0]:
            if one != rank and one not in self._left:
                self._messages.append((one, [FAILED, f"rank {rank} was lost", lib.ERROR_PEER, rank]))
        self._calls.clear()
        self._left[rank] = True

    def pass_time(self, now):
        for (number, key), call in list(self._calls.items()):
            if now - call.begun >= self._op_timeout_s:
                text = f"{key} was begun, but not by {self._missing(number, call)}, for {self._op_timeout_s:g} s"
                self._end(number, key, call, text, lib.ERROR_TIMEOUT)
        if not self._calls or not all(self._is_stuck(rank) for rank in self._sets[0]):
            self._all_wait_since = None
        elif self._all_wait_since is None:
            self._all_wait_since = now
        elif now - self._all_wait_since >= ALL_WAIT_S:
            self._give_up_all()

    def _is_stuck(self, rank):
        return rank in self._joined or rank in self._left or (rank in self._waits and rank not in self._threaded)

    def _decide_all(self):
        for (number, key), call in list(self._calls.items()):
            self._decide(number, key, call)

    def _decide(self, number, key, call):
        if not self._left and (number == 0 or not self._joined):  # the usual case, without a look at every rank
            if len(call.fields) + len(self._joined) < len(self._sets[number]):
                return None
        missing = [rank for rank in self._sets[number] if rank not in call.fields]
        left = [rank for rank in self._left if rank in missing]  # others may leave because the first has left
        if left:
            return self._end(number, key, call, f"{key}: rank {left[0]} has left the job", lib.ERROR_PEER, left[0])
        joined = [rank for rank in missing if rank in self._joined]
        if joined and number != 0:
            text = f"{key}: rank {joined[0]} has joined: only calls among all ranks are possible now"
            return self._end(number, key, call, text, lib.ERROR_UNSUPPORTED, joined[0])
        if len(joined) < len(missing):
            return None
        problem = _problem(key, call.fields, missing, self._joined)
        if problem is not None:
            return self._end(number, key, call, *problem)
        for rank in self._sets[number]:
            if rank in call.fields:
                self._messages.append((rank, [GO, number, key, len(missing)]))
            else:
                self._messages.append((rank, [ZEROS, number, next(iter(call.fields.values())), len(missing)]))
        return self._forget(number, key)

    def _end(self, number, key, call, text, status, rank=-1):
        for one in sorted(call.fields):
            if one not in self._left:
                self._messages.append((one, [ERROR, number, key, text, status, rank]))
        self._forget(number, key)

    def _forget(self, number, key):
        del self._calls[number, key]
        for rank in [rank for rank, waited in self._waits.items() if waited == (number, key)]:
            del self._waits[rank]

    def _missing(self, number, call):
        missing = [rank for rank in self._sets[number] if rank not in call.fields and rank not in self._joined]
        return "rank" + "s" * (len(missing) > 1) + " " + ", ".join(map(str, missing))

    def _give_up_all(self):
        """No rank can go on: each waits for a call that others have not begun."""
        sentences = [f"{key} waits for {self._missing(number, call)}" for (number, key), call in self._calls.items()]
        text = "all ranks wait for each other: " + "; ".join(sentences[:MAX_NAMED] + ["..."] * (len(sentences) > MAX_NAMED))
        for (number, key), call in list(self._calls.items()):
            self._end(number, key, call, text, lib.ERROR_MISMATCH)
        self._all_wait_since = None


def _problem(key, by_rank, missing, joined):
    """(text, status, rank at fault) of a call that all ranks but those that have joined have begun; None: it is possible."""
    first = min(by_rank)
    other = next((rank for rank in sorted(by_rank) if by_rank[rank] != by_rank[first]), None)
    if other is not None:
        return (f"{key}: rank {other} called it with {describe(by_rank[other])}, rank {first} with {describe(by_rank[first])}",
                lib.ERROR_MISMATCH, other)
    if not missing:
        return None
    zeros = zeros_of(by_rank[first])
    if zeros is None:
        return (f"{key}: rank {missing[0]} has joined: only barriers and allreduces that sum or average are possible now",
                lib.ERROR_UNSUPPORTED, missing[0])
    without = [rank for rank in missing if joined[rank] != JOINED_ON_GPU]
    if without and any(one.on_gpu for one in zeros):
        return (f"{key}: rank {without[0]} has joined and can't make zeros in a GPU's memory, where the data of the others is",
                lib.ERROR_UNSUPPORTED, without[0])
    return None


def zeros_of(fields):
    """The allreduces that a call consists of, none for a barrier; None: a rank can't take part in it with zeros."""
    if fields == [BARRIER]:
        return []
    if any(not isinstance(one, list) for one in fields):
        return None
    zeros = [Zeros(*one) for one in fields]
    return zeros if all(one.op in (lib.SUM, lib.AVG) for one in zeros) else None


def describe(fields):
    """For errors."""
    parts = [_describe_one(one) for one in fields[:4]] + ["..."] * (len(fields) > 4)
    return ", ".join(parts) or "nothing"


def _describe_one(one):
    if not isinstance(one, list):
        return str(one)
    call = Zeros(*one)
    scaled = f", scaled by {call.prescale:g} before and {call.postscale:g} after" if (call.prescale, call.postscale) != (1, 1) else ""
    return f"{call.type_name} {call.shape} ({lib.OP_NAMES[call.op]}{scaled}{', on a GPU' if call.on_gpu else ''})"
