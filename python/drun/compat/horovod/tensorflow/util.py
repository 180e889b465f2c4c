"""How TensorFlow carries out operations now."""
import tensorflow as tf


def _executing_eagerly():
    return tf.executing_eagerly()
