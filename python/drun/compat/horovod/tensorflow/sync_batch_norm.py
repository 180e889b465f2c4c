"""Batch normalization over the batches of all ranks."""
import tensorflow as tf

from .mpi_ops import Average, _allreduce, size


_IS_OF_KERAS_3 = tf.keras.layers.BatchNormalization.__module__.startswith("keras.src.layers.normalization")


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    def __init__(self, fused=False, **kwargs):
        if fused in (True, None):
            raise ValueError("SyncBatchNormalization does not support fused=True.")
        if not kwargs.get("name"):
            kwargs["name"] = "sync_batch_normalization"
        if not _IS_OF_KERAS_3:  # which has no fused kernel
            kwargs["fused"] = False
        super().__init__(**kwargs)

    def _moments(self, inputs, *args, **kwargs):
        """Var[X] = E[X^2] - E[X]^2, of equal parts."""
        mean, variance = super()._moments(inputs, *args, **kwargs)
        if size() == 1:
            return mean, variance
        mean, mean_of_square = tf.unstack(_allreduce(tf.stack([mean, variance + tf.square(mean)]), op=Average))
        return mean, mean_of_square - tf.square(mean)
