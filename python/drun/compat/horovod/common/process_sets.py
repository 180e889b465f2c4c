"""Process sets, with Horovod's answers before a set was added."""
import drun
from drun import _groups, _process_sets


class ProcessSet(_groups.ProcessSet):
    mpi_comm = None

    def __init__(self, ranks_or_comm):
        if not hasattr(ranks_or_comm, "__iter__"):
            raise ValueError("ProcessSet takes a list of ranks; MPI communicators are not supported")
        ranks = list(ranks_or_comm)
        if any(not isinstance(rank, int) for rank in ranks):
            raise ValueError("ProcessSet takes a list of ranks, which are integers")
        super().__init__(ranks)

    def size(self):
        """None before the set was added."""
        return None if self.process_set_id is None else super().size()

    def rank(self):
        """None before the set was added."""
        if self.process_set_id is None:
            return None
        if not self.included():
            raise ValueError(f"this process is not part of {self}")
        return super().rank()

    def included(self):
        return super().included() if drun.is_initialized() else None

    def __str__(self):
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm=None)"


global_process_set = _groups.global_process_set
remove_process_set = _process_sets.remove_process_set


def add_process_set(process_set):
    return _process_sets.add_process_set(process_set if isinstance(process_set, _groups.ProcessSet) else ProcessSet(process_set))


def is_process_set_included(process_set_id=0):
    """True if this process is in the set of that number."""
    return process_set_id == 0 or _process_sets.of_number(process_set_id).included()
