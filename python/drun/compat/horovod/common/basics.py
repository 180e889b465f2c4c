"""The place in the job, and which parts of Horovod are there."""
import functools
import warnings

import drun

from .process_sets import global_process_set  # noqa: F401


def init(comm=None, process_sets=None):
    """Joins the job. Collectives are ordered by their names, as Horovod orders them."""
    if comm is not None and not hasattr(comm, "__iter__"):
        raise ValueError("init(comm=...) takes a list of ranks: MPI communicators are not supported")
    if isinstance(process_sets, str) and process_sets != "dynamic":
        raise ValueError(f"process_sets is a list of ProcessSet, or 'dynamic', not {process_sets!r}")
    drun.init(comm or None, process_sets, order_by_name=True)


shutdown = drun.shutdown
is_initialized = drun.is_initialized


def _after_init(function):
    @functools.wraps(function)
    def ask():
        if not drun.is_initialized():
            raise ValueError("Horovod has not been initialized; use hvd.init().")
        return function()

    return ask


rank, size = _after_init(drun.rank), _after_init(drun.size)
local_rank, local_size = _after_init(drun.local_rank), _after_init(drun.local_size)
cross_rank, cross_size = _after_init(drun.cross_rank), _after_init(drun.cross_size)
is_homogeneous = _after_init(drun.is_homogeneous)


def _never():
    return False


mpi_threads_supported = mpi_enabled = mpi_built = _never
ddl_built = ccl_built = rocm_built = _never
# Horovod's second way to carry out collectives on the CPU; scripts ask for it to know that there is one.
gloo_enabled = gloo_built = lambda: True


def nccl_built():
    """The version of NCCL, as 22803 for 2.28.3; 0: none."""
    return drun.nccl_built()


def cuda_built():
    return bool(nccl_built())


def start_timeline(file_path, mark_cycles=False):
    """Not per rank: drun --timeline FILE writes one timeline of the whole job."""
    warnings.warn("start_timeline() does nothing here: `drun --timeline FILE` writes a timeline of the whole job")


def stop_timeline():
    """As start_timeline."""
