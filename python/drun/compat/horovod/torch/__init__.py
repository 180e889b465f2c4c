"""horovod.torch over drun."""
from . import elastic
from .compression import Compression
from .functions import (allgather_object, broadcast_object, broadcast_object_fn, broadcast_optimizer_state,
                        broadcast_parameters)
from .mpi_ops import *  # noqa: F401,F403
from .mpi_ops import HorovodInternalError
from .optimizer import DistributedOptimizer
from .sync_batch_norm import SyncBatchNorm
