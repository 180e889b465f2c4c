"""A GradientTape whose gradients are those of all ranks."""
import tensorflow as tf

from .compression import Compression
from .gradients import GradientReduction
from .mpi_ops import Average, global_process_set


class _Distributed:
    """Before tf.GradientTape in the list of bases."""

    def register_local_source(self, source):
        """Gradients of that variable stay this rank's own."""
        self._hvd_reduce.local.add(source)

    def gradient(self, target, sources, output_gradients=None, use_generic_names=False, **others):
        del use_generic_names
        gradients = super().gradient(target, sources, output_gradients, **others)
        return tf.nest.pack_sequence_as(sources, self._hvd_reduce(tf.nest.flatten(gradients), tf.nest.flatten(sources)))

    def get_local_and_global_gradients(self, target, sources, output_gradients=None, use_generic_names=False):
        """([(local source, gradient)], [(other source, gradient)])."""
        pairs = list(zip(sources, self.gradient(target, sources, output_gradients, use_generic_names)))
        local = self._hvd_reduce.local
        return [pair for pair in pairs if pair[0] in local], [pair for pair in pairs if pair[0] not in local]


def DistributedGradientTape(gradtape, device_dense="", device_sparse="", compression=Compression.none, sparse_as_dense=False,
                            op=Average, gradient_predivide_factor=1.0, num_groups=0, groups=None,
                            process_set=global_process_set, scale_local_gradients=True):
    """The given tape, whose gradient() returns the gradients of all ranks."""
    del device_dense, device_sparse, num_groups
    check_groups(groups)
    gradtape.__class__ = type(gradtape.__class__.__name__, (_Distributed, gradtape.__class__), {})
    gradtape._hvd_reduce = GradientReduction("DistributedGradientTape", compression, sparse_as_dense, op,
                                             gradient_predivide_factor, process_set, scale_local_gradients)
    return gradtape


def check_groups(groups):
    if groups is not None and not (isinstance(groups, list) or groups > 0):
        raise ValueError("groups should be a non-negative integer or a list of list of tf.Variable.")


def PartialDistributedGradientTape(gradtape, device_dense="", device_sparse="", compression=Compression.none,
                                   sparse_as_dense=False, op=Average, gradient_predivide_factor=1.0, num_groups=0, groups=None,
                                   process_set=global_process_set, local_layers=None, scale_local_gradients=True):
    """DistributedGradientTape without the gradients of local_layers."""
    tape = DistributedGradientTape(gradtape, device_dense, device_sparse, compression, sparse_as_dense, op,
                                   gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients)
    for variable in variables_of_layers(local_layers):
        tape.register_local_source(variable)
    return tape


def variables_of_layers(layers):
    """The variables that are trained."""
    if layers is None:
        layers = []
    several = layers if isinstance(layers, (list, tuple, set)) else [layers]
    if not all(hasattr(layer, "trainable_weights") for layer in several):
        raise ValueError("All local layers must be of tf.keras.layers.Layer type.")
    return [variable for layer in several for variable in layer.trainable_weights]
