"""Makes a frontend for one of the two packages that are called Keras: that of TensorFlow, or the one beside it."""
import tensorflow as tf

from .. import tensorflow as hvd
from ..tensorflow import (Adasum, Average, Compression, HorovodInternalError, Max, Min, ProcessSet, Product, Sum,
                          add_process_set, broadcast_global_variables, ccl_built, cross_rank, cross_size, cuda_built, ddl_built,
                          global_process_set, gloo_built, gloo_enabled, gpu_available, init, is_homogeneous, is_initialized,
                          local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank,
                          remove_process_set, rocm_built, shutdown, size, start_timeline, stop_timeline)
from ..tensorflow.elastic import TensorFlowKerasState, run
from ..tensorflow.tape import variables_of_layers
from . import callbacks as bases
from . import distributed_optimizer, load_model


class Callbacks:
    """The classes of a frontend's module `callbacks` and of its module `elastic`, over its class Callback."""

    def __init__(self, keras):
        def of(name, base):
            return type(name, (base, keras.callbacks.Callback), {"__doc__": base.__doc__})

        self.BroadcastGlobalVariablesCallback = of("BroadcastGlobalVariablesCallback", bases.BroadcastGlobalVariables)
        self.MetricAverageCallback = of("MetricAverageCallback", bases.MetricAverage)
        self.LearningRateScheduleCallback = of("LearningRateScheduleCallback", bases.LearningRateSchedule)
        self.LearningRateWarmupCallback = of("LearningRateWarmupCallback", bases.LearningRateWarmup)
        self.CommitStateCallback = of("CommitStateCallback", bases.CommitState)
        self.UpdateBatchStateCallback = of("UpdateBatchStateCallback", bases.UpdateBatchState)
        self.UpdateEpochStateCallback = of("UpdateEpochStateCallback", bases.UpdateEpochState)

        class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):
            """Keeps the best model only; `filepath` is set later."""

            def __init__(self, monitor="val_loss", verbose=0, mode="auto", save_freq="epoch"):
                super().__init__(filepath="best.keras", monitor=monitor, verbose=verbose, save_best_only=True, mode=mode,
                                 save_freq=save_freq)

        self.BestModelCheckpoint = BestModelCheckpoint


class KerasState(TensorFlowKerasState):
    """A model, its optimizer, and plain values."""


def DistributedOptimizer(optimizer, name=None, device_dense="", device_sparse="", compression=Compression.none,
                         sparse_as_dense=False, gradient_predivide_factor=1.0, op=hvd.Average, backward_passes_per_step=1,
                         average_aggregated_gradients=False, num_groups=0, groups=None,
                         process_set=hvd.global_process_set, scale_local_gradients=True):
    """An optimizer of the same class that uses the gradients of all ranks."""
    del device_dense, device_sparse, num_groups
    hvd.tape.check_groups(groups)
    if op not in (hvd.Average, hvd.Sum):
        raise ValueError("op currently only supports Average and Sum")
    return distributed_optimizer(optimizer, name, compression, sparse_as_dense, op, gradient_predivide_factor,
                                 backward_passes_per_step, average_aggregated_gradients, process_set, scale_local_gradients)


def PartialDistributedOptimizer(optimizer, name=None, device_dense="", device_sparse="", compression=Compression.none,
                                sparse_as_dense=False, gradient_predivide_factor=1.0, op=hvd.Average,
                                backward_passes_per_step=1, average_aggregated_gradients=False, num_groups=0, groups=None,
                                process_set=hvd.global_process_set, local_layers=None, scale_local_gradients=True):
    """DistributedOptimizer without the gradients of local_layers."""
    result = DistributedOptimizer(optimizer, name, device_dense, device_sparse, compression, sparse_as_dense,
                                  gradient_predivide_factor, op, backward_passes_per_step, average_aggregated_gradients,
                                  num_groups, groups, process_set, scale_local_gradients)
    for variable in variables_of_layers(local_layers):
        result.register_local_var(variable)
    return result


def allreduce(value, name=None, average=None, prescale_factor=1.0, postscale_factor=1.0, op=None, compression=Compression.none):
    return _plain(hvd.allreduce(tf.constant(value), average, compression=compression, op=op, name=name,
                                prescale_factor=prescale_factor, postscale_factor=postscale_factor))


def allgather(value, name=None):
    return _plain(hvd.allgather(tf.constant(value), name))


def broadcast(value, root_rank, name=None):
    return _plain(hvd.broadcast(tf.constant(value), root_rank, name))


def reducescatter(value, name=None, op=hvd.Average):
    return _plain(hvd.reducescatter(tf.constant(value), op=op, name=name))


def _plain(result):
    """The value; in a graph of TensorFlow 1 as the session has it."""
    return result if tf.executing_eagerly() else tf.compat.v1.keras.backend.get_session().run(result)


def load_model_of(keras):
    def load(filepath, custom_optimizers=None, custom_objects=None, compression=Compression.none, legacy_opts=False):
        """A saved model, whose optimizer uses the gradients of all ranks."""
        del legacy_opts
        return load_model(keras, filepath, custom_optimizers, custom_objects, compression)

    return load


# The names that both packages have: all of the above but what they make of their Keras.
__all__ = [name for name in globals() if not name.startswith("_") and name not in (
    "tf", "hvd", "bases", "Callbacks", "KerasState", "TensorFlowKerasState", "distributed_optimizer", "load_model", "load_model_of",
    "run", "variables_of_layers")]
