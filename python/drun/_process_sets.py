"""Process sets: collectives among some of the ranks."""
import ctypes

from . import _library as lib
from ._engine import call, engine
from ._state import place


class ProcessSet:
    """Some of the ranks, in ascending order. Usable after every rank has passed it to add_process_set or init."""

    def __init__(self, ranks):
        self.ranks = sorted(set(int(rank) for rank in ranks))
        self.process_set_id = None
        self.comm = None

    def included(self):
        """True if this process is in it."""
        return place().rank in self.ranks

    def rank(self):
        """This process's rank in it; -1: not in it."""
        return self.ranks.index(place().rank) if self.included() else -1

    def size(self):
        return len(self.ranks)

    def __repr__(self):
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class _GlobalProcessSet(ProcessSet):
    def __init__(self):
        super().__init__([])
        self.process_set_id = 0

    @property
    def ranks(self):
        return list(range(place().size))

    @ranks.setter
    def ranks(self, value):
        pass

    def included(self):
        return True

    def rank(self):
        return place().rank

    def size(self):
        return place().size

    def __repr__(self):
        return "ProcessSet(process_set_id=0, all ranks)"


global_process_set = _GlobalProcessSet()
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

    process_set.comm = engine.run(split)
    process_set.process_set_id = max(_sets, default=0) + 1
    _sets[process_set.process_set_id] = process_set
    return process_set


def remove_process_set(process_set):
    """Collective over all ranks. Returns False if the set was not added or is the global one."""
    if _sets.get(process_set.process_set_id) is not process_set:
        return False
    engine.drain()
    engine.run(lambda: call("drun_comm_free", ctypes.byref(process_set.comm)))
    del _sets[process_set.process_set_id]
    process_set.process_set_id = process_set.comm = None
    return True


def forget_all():
    """Called when the job is left, which ends all communicators."""
    for process_set in _sets.values():
        process_set.process_set_id = process_set.comm = None
    _sets.clear()


class Group:
    """The ranks that take part in a collective."""

    __slots__ = ("comm", "rank", "size", "is_global", "_set")

    def __init__(self, process_set):
        self._set = global_process_set if process_set is None else process_set
        self.is_global = self._set is global_process_set
        self.comm = self._set.comm
        if not self.is_global:
            if self.comm is None:
                raise ValueError(f"{self._set} has not been given to add_process_set() or init()")
            if not self._set.included():
                raise ValueError(f"this rank, {place().rank}, is not in {self._set}")
        self.rank = self._set.rank()
        self.size = self._set.size()

    def root(self, rank):
        """Rank in this group of a root, which is given as a rank of the job."""
        if self.is_global:
            if not 0 <= rank < self.size:
                raise ValueError(f"root_rank {rank} is not one of the ranks 0 to {self.size - 1}")
            return rank
        if rank not in self._set.ranks:
            raise ValueError(f"root_rank {rank} is not in {self._set}")
        return self._set.ranks.index(rank)

    def name_of(self, index):
        return f"rank {index if self.is_global else self._set.ranks[index]}"
