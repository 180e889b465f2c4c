"""join(): a rank that has no more data takes part in the reductions of the others with zeros.

A rank that has joined must know which collectives the others call. So if join is enabled, every collective begins with
a small allgather in which each rank announces its call."""
import ctypes

from . import _library as lib
from ._engine import call, engine
from ._process_sets import Group

# Kinds of calls that are announced; only the ranks of a job see the numbers.
JOIN, ALLREDUCE, BARRIER, OTHER = range(4)

enabled = False
_joined = set()  # as of the last exchange
_FIELDS = 4  # kind, dtype, op, count
_ITEMSIZE = {lib.INT8: 1, lib.UINT8: 1, lib.INT32: 4, lib.UINT32: 4, lib.INT64: 8, lib.UINT64: 8, lib.FLOAT16: 2,
             lib.BFLOAT16: 2, lib.FLOAT32: 4, lib.FLOAT64: 8}


def announces(group):
    return enabled and group.is_global


def announce(group, kind, dtype=0, op=0, count=0):
    """Called before each collective, in its turn."""
    if not announces(group):
        return
    said = _exchange(group, kind, dtype, op, count)
    joined = _remember(said)
    if joined:
        _check_possible(min(joined), kind, op)


def join(device=None):
    """Announces that this rank has no more data, and waits until all ranks have joined; returns the last one to join.
    Until then this rank adds zeros to the others' allreduces (sums and averages). Ranks that join at different times
    need init(join=True)."""
    del device
    group = Group(None)
    return engine.run(lambda: _serve(group) if enabled else _meet(group))


def _meet(group):
    try:
        _exchange(group, JOIN, 0, 0, 0)
    except lib.DrunError as error:
        if error.status == lib.ERROR_MISMATCH:
            error.args = (f"{error.args[0]}; ranks that join before others need init(join=True) or DRUN_JOIN=1 on all ranks",)
        raise
    return group.size - 1


def _serve(group):
    while True:
        before = set(_joined)
        said = _exchange(group, JOIN, 0, 0, 0)
        joined = _remember(said)
        if len(joined) == group.size:
            last = max(joined - before)
            forget()
            return last
        kind, dtype, op, count = next(one for one in said if one[0] != JOIN)
        _check_possible(min(joined), kind, op)
        if kind == BARRIER:
            call("drun_barrier", group.comm, None)
        else:
            zeros = (ctypes.c_char * (count * _ITEMSIZE[dtype]))()
            call("drun_allreduce", zeros, zeros, count, dtype, op, group.comm, None)


def _remember(said):
    _joined.clear()
    _joined.update(rank for rank, one in enumerate(said) if one[0] == JOIN)
    return _joined


def forget():
    _joined.clear()


def _check_possible(joined, kind, op):
    if kind == OTHER or (kind == ALLREDUCE and op not in (lib.SUM, lib.AVG)):
        raise lib.DrunError(f"rank {joined} has joined: only barriers and allreduces that sum or average are possible now",
                            lib.ERROR_UNSUPPORTED, joined)


def _exchange(group, *fields):
    mine = (ctypes.c_int64 * _FIELDS)(*fields)
    all_of_them = (ctypes.c_int64 * (_FIELDS * group.size))()
    options = lib.call_options("join")
    call("drun_allgather", mine, all_of_them, _FIELDS, lib.INT64, group.comm, options)
    return [tuple(all_of_them[i:i + _FIELDS]) for i in range(0, len(all_of_them), _FIELDS)]
