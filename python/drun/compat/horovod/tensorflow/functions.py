"""Broadcasts of variables, and objects."""
import tensorflow as tf

import drun

from .mpi_ops import broadcast_, global_process_set


def broadcast_variables(variables, root_rank, process_set=global_process_set, inplace=False):
    """Stores the root's values. In a graph returns the operation that does so."""
    del inplace
    variables = [getattr(one, "value", one) if _is_of_keras(one) else one for one in variables]
    if not variables:
        return None if tf.executing_eagerly() else tf.no_op()
    values = broadcast_(variables, root_rank, process_set=process_set)
    return None if tf.executing_eagerly() else tf.group(*values)


def variables_of(owner):
    """Those of an optimizer, which are a list in some versions of Keras, and a function in others."""
    variables = owner.variables
    return list(variables() if callable(variables) else variables)


def _is_of_keras(variable):
    """True for a variable of Keras 3, which has one of TensorFlow in it."""
    return not isinstance(variable, tf.Variable) and isinstance(getattr(variable, "value", None), tf.Variable)


def broadcast_global_variables(root_rank):
    """For graphs of TensorFlow 1."""
    if tf.executing_eagerly():
        raise RuntimeError("hvd.broadcast_global_variables() does not support eager execution. Please use "
                           "`hvd.broadcast_variables(<model/optimizer variables>)` instead.")
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


def broadcast_object(obj, root_rank=0, session=None, name=None, process_set=global_process_set):
    """The root's object, pickled. `session` is not needed."""
    del session
    return drun.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank=0, session=None, name=None, process_set=global_process_set):
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(obj, session=None, name=None, process_set=global_process_set):
    """The objects of all ranks, in a list."""
    del session
    return drun.allgather_object(obj, name, process_set)
