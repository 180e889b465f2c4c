"""horovod.tensorflow over drun."""
import os

# A collective of a graph holds a thread until all ranks have begun it. A graph may have many that do not depend on each
# other: ranks whose few threads wait in different ones would wait forever. TensorFlow reads this when it first computes.
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "64")

import tensorflow as tf  # noqa: E402

from ..common.util import check_extension, gpu_available
from . import elastic
from .compression import Compression
from .functions import (allgather_object, broadcast_global_variables, broadcast_object, broadcast_object_fn,
                        broadcast_variables)
from .mpi_ops import (Adasum, Average, HorovodInternalError, Max, Min, ProcessSet, Product, Sum, add_process_set, allgather,
                      alltoall, broadcast, broadcast_, ccl_built, check_num_rank_power_of_2, cross_rank, cross_size, cuda_built,
                      ddl_built, global_process_set, gloo_built, gloo_enabled, grouped_allgather, init, is_homogeneous,
                      is_initialized, is_process_set_included, join, local_rank, local_rank_op, local_size, local_size_op,
                      mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, process_set_included_op, rank, rank_op,
                      remove_process_set, rocm_built, shutdown, size, size_op, start_timeline, stop_timeline)
from .optimizer import DistributedOptimizer
from .reductions import allreduce, grouped_allreduce, grouped_reducescatter, reducescatter
from .tape import DistributedGradientTape, PartialDistributedGradientTape
from .util import _executing_eagerly


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """For sessions of TensorFlow 1: broadcasts all variables at the start."""

    def __init__(self, root_rank, device=""):
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op = None

    def begin(self):
        if self.bcast_op is None or self.bcast_op.graph != tf.compat.v1.get_default_graph():
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session, coord):
        del coord
        session.run(self.bcast_op)


def __getattr__(name):
    if name == "SyncBatchNormalization":  # needs tf.keras, which takes seconds to import
        from .sync_batch_norm import SyncBatchNormalization

        return SyncBatchNormalization
    raise AttributeError(f"module 'horovod.tensorflow' has no attribute '{name}'")
