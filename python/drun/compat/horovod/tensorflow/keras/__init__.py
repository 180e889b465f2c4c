"""horovod.tensorflow.keras over drun: for tf.keras, be it Keras 3 or tf_keras."""
from tensorflow import keras

from ..._keras.frontend import (Compression, DistributedOptimizer, PartialDistributedOptimizer, allgather, allreduce, broadcast,
                              broadcast_global_variables, load_model_of, reducescatter)
from ...tensorflow import (Adasum, Average, HorovodInternalError, Max, Min, ProcessSet, Product, Sum, add_process_set, ccl_built,
                          cross_rank, cross_size, cuda_built, ddl_built, global_process_set, gloo_built, gloo_enabled,
                          gpu_available, init, is_homogeneous, is_initialized, local_rank, local_size, mpi_built, mpi_enabled,
                          mpi_threads_supported, nccl_built, rank, remove_process_set, rocm_built, shutdown, size,
                          start_timeline, stop_timeline)
from . import callbacks, elastic

load_model = load_model_of(keras)
