"""Process sets: collectives among some of the ranks."""
import ctypes

from . import _by_name
from . import _library as lib
from ._collective import Steps
from ._engine import call, engine
from ._groups import Group, ProcessSet, global_process_set
from ._state import place


_sets = {}


def add_process_set(process_set):
    """Collective over all ranks, which must pass the same ranks, whether they are in the set or not. Returns the
    ProcessSet."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    size = place().size
    if not process_set.ranks or process_set.ranks[0] < 0 or process_set.ranks[-1] >= size:
        raise ValueError(f"a process set has some of the ranks 0 to {size - 1}, not {process_set.ranks}")
    if process_set.process_set_id is not None:
        raise ValueError(f"{process_set} has been added already")
    if any(other.ranks == process_set.ranks for other in _sets.values()) or process_set.ranks == global_process_set.ranks:
        raise ValueError(f"there is a process set with the ranks {process_set.ranks} already")

    def split():
        comm = ctypes.c_void_p()
        colour = 0 if process_set.included() else -1  # -1: no communicator on this rank
        call("drun_comm_split", lib.COMM_WORLD, colour, place().rank, ctypes.byref(comm), None)
        return comm

    process_set.comm = _call_of_all("add_process_set", process_set, split)
    process_set.process_set_id = max(_sets, default=0) + 1
    _sets[process_set.process_set_id] = process_set
    if _by_name.order is not None:
        _by_name.order.define_set(process_set.process_set_id, process_set.ranks)
    return process_set


def _call_of_all(kind, process_set, work):
    return Steps(kind, Group(None), str(process_set.ranks), work).run()


def of_number(number):
    """The set with that process_set_id."""
    return _sets[number]


def remove_process_set(process_set):
    """Collective over all ranks. Returns False if the set was not added or is the global one."""
    if _sets.get(process_set.process_set_id) is not process_set:
        return False
    engine.drain()
    if _by_name.order is not None:
        _by_name.order.drain(process_set.process_set_id)
    _call_of_all("remove_process_set", process_set, lambda: call("drun_comm_free", ctypes.byref(process_set.comm)))
    del _sets[process_set.process_set_id]
    process_set.process_set_id = process_set.comm = None
    return True


def forget_all():
    """Called when the job is left, which ends all communicators."""
    for process_set in _sets.values():
        process_set.process_set_id = process_set.comm = None
    _sets.clear()
