"""The ranks that take part in a collective."""
from ._state import place, state


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
        return list(range(state.place.size)) if state.place else []

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


def check_added(process_set):
    if process_set is not global_process_set and process_set.comm is None:
        raise ValueError(f"{process_set} has not been given to add_process_set() or init()")


class Group:
    """The ranks that take part in a collective."""

    __slots__ = ("comm", "rank", "size", "is_global", "process_set_id", "_set")

    def __init__(self, process_set):
        self._set = global_process_set if process_set is None else process_set
        self.is_global = self._set is global_process_set
        self.comm = self._set.comm
        self.process_set_id = self._set.process_set_id
        if not self.is_global:
            check_added(self._set)
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

    def job_rank(self, index):
        return index if self.is_global else self._set.ranks[index]

    def name_of(self, index):
        return f"rank {self.job_rank(index)}"
