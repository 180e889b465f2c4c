"""Collectives between the workers that drun started, with Horovod's API: `import drun as hvd`.

torch and numpy are used if the program has imported them, and never imported here. Names that need torch
(DistributedOptimizer and the like) load drun.torch when first used."""
from ._compression import Compression
from ._engine import Handle, poll, synchronize
from ._job import (abort, cross_rank, cross_size, init, is_homogeneous, is_initialized, local_rank, local_size, rank,
                   shutdown, size, version)
from ._join import join
from ._keys import kv_delete, kv_get, kv_set
from ._library import (ERROR_ABORTED, ERROR_ARGUMENT, ERROR_CONNECT, ERROR_INTERNAL, ERROR_MISMATCH, ERROR_PEER,
                       ERROR_STATE, ERROR_SYSTEM, ERROR_TIMEOUT, ERROR_TRUNCATED, ERROR_UNSUPPORTED, DrunError)
from ._data_movement import (allgather, allgather_async, alltoall, alltoall_async, barrier, broadcast, broadcast_, broadcast_async,
                     broadcast_async_, grouped_allgather, grouped_allgather_async)
from ._nccl import nccl_built
from ._objects import allgather_object, broadcast_object, broadcast_object_fn, broadcast_parameters
from ._groups import ProcessSet, global_process_set
from ._process_sets import add_process_set, remove_process_set
from ._reductions import (Adasum, Average, Max, Min, Product, Sum, allreduce, allreduce_, allreduce_async,
                          allreduce_async_, grouped_allreduce, grouped_allreduce_, grouped_allreduce_async,
                          grouped_allreduce_async_, grouped_reducescatter, grouped_reducescatter_async, reducescatter,
                          reducescatter_async)
from ._streams import synchronize_stream

__version__ = "0.1.0"

# Scripts ask which parts of Horovod are there.
_FALSE = ("mpi_enabled", "mpi_built", "mpi_threads_supported", "gloo_enabled", "gloo_built", "ddl_built",
          "ccl_built", "cuda_built", "rocm_built")
for _name in _FALSE:
    globals()[_name] = lambda: False

_OF_TORCH = ("DistributedOptimizer", "SyncBatchNorm", "broadcast_optimizer_state", "ddp_hook", "sparse_allreduce_async")

# Names that Horovod has and drun has not, with the alternative.
_NOT_THERE = {
    "elastic": "a job has the ranks that it began with; write checkpoints, and start it again",
    "start_timeline": "`drun --timeline FILE` writes one of the whole job",
    "stop_timeline": "`drun --timeline FILE` writes one of the whole job",
    "run": "jobs are started by the command drun",
}

__all__ = [name for name in globals() if not name.startswith("_") and name not in ("torch",)]


def __getattr__(name):
    if name in _OF_TORCH:
        from . import torch

        return getattr(torch, name)
    instead = f": {_NOT_THERE[name]}" if name in _NOT_THERE else ""
    raise AttributeError(f"module 'drun' has no attribute '{name}'{instead}")
