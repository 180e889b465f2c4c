"""Horovod's collectives for TensorFlow: drun's, with Horovod's gradients.

Gradients: that of an allgather and of a broadcast is averaged over the ranks, that of a reducescatter that averages is
1, that of one that sums is the number of ranks."""
import numpy as np
import tensorflow as tf

import drun
from drun import Adasum, Average, Max, Min, Product, Sum
from drun._groups import Group
from drun._process_sets import of_number

from ..common.basics import (ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init,
                             is_homogeneous, is_initialized, local_rank, local_size, mpi_built, mpi_enabled,
                             mpi_threads_supported, nccl_built, rank, rocm_built, shutdown, size, start_timeline,
                             stop_timeline)
from ..common.exceptions import HorovodInternalError
from ..common.process_sets import (ProcessSet, add_process_set, global_process_set, is_process_set_included,
                                   remove_process_set)
from ..common.util import num_rank_is_power_2 as check_num_rank_power_of_2  # noqa: F401
from . import _memory
from ._calls import Reduction, call_name, carry_out


def _rows_of_any(shape):
    """The static shape if the first dimension is not known."""
    return tf.TensorShape([None]).concatenate(shape[1:]) if shape.rank else tf.TensorShape(None)


def _differentiable(forward, gradient, *tensors):
    """The list forward(*tensors), with gradient(*gradients of the results) as its gradient."""

    @tf.custom_gradient
    def both(*given):
        return tuple(forward(*given)), gradient

    return list(both(*[tf.convert_to_tensor(tensor) for tensor in tensors]))


def _allreduce(tensor, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0, ignore_name_scope=False,
               process_set=global_process_set):
    return _grouped_allreduce([tensor], name, op, prescale_factor, postscale_factor, ignore_name_scope, process_set,
                              "Allreduce")[0]


def _grouped_allreduce(tensors, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0, ignore_name_scope=False,
                       process_set=global_process_set, kind="GroupedAllreduce"):
    reduction = Reduction(drun.allreduce, op, prescale_factor, postscale_factor, process_set)

    def forward(*given):
        return _each(kind, reduction.of, given, name, ignore_name_scope)

    def gradient(*gradients):
        return _grouped_allreduce(gradients, None, op, prescale_factor, postscale_factor, ignore_name_scope, process_set, kind)

    return _differentiable(forward, gradient, *tensors)


def _each(kind, call, tensors, name, ignore_name_scope=False, shape_of=lambda shape: shape):
    """call(array, name) for each tensor, in one operation. shape_of: the static shape of a result."""
    own = call_name(kind, tensors, name, ignore_name_scope)

    def work(*arrays):
        results = []
        with _memory.kept(arrays):
            for number, one in enumerate(arrays):
                results.append(call(one, own if own is None or len(arrays) == 1 else f"{own}.{number}"))
        return results

    return carry_out(work, tensors, [(one.dtype, shape_of(one.shape)) for one in tensors])


def allgather(tensor, name=None, ignore_name_scope=False, process_set=global_process_set):
    return grouped_allgather([tensor], name, ignore_name_scope, process_set, "Allgather")[0]


def grouped_allgather(tensors, name=None, ignore_name_scope=False, process_set=global_process_set, kind="GroupedAllgather"):
    tensors = [tf.convert_to_tensor(tensor) for tensor in tensors]

    def forward(*given):
        return _each(kind, lambda array, own: drun.allgather(array, own, process_set), given, name, ignore_name_scope,
                     _rows_of_any)

    def gradient(*gradients):
        return [_own_rows(_allreduce(one, op=Average, process_set=process_set), tensor, process_set)
                for one, tensor in zip(gradients, tensors)]

    return _differentiable(forward, gradient, *tensors)


def _own_rows(gathered, tensor, process_set):
    """This rank's part of the rows of all ranks."""
    rows = tf.reshape(tf.shape(tensor)[0], [1])
    all_rows = allgather(tf.stop_gradient(rows), process_set=process_set)
    begin = tf.reduce_sum(all_rows[:Group(process_set).rank])
    return tf.reshape(gathered[begin:begin + rows[0]], tf.shape(tensor))


def broadcast(tensor, root_rank, name=None, ignore_name_scope=False, process_set=global_process_set):
    def forward(given):
        return _broadcast_all([given], root_rank, name, process_set, ignore_name_scope)

    def gradient(one):
        reduced = _allreduce(one, op=Average, process_set=process_set)
        return reduced if rank() == root_rank else reduced * 0

    return _differentiable(forward, gradient, tensor)[0]


def broadcast_(variables, root_rank, name=None, process_set=global_process_set):
    """Stores the root's values in the variables, and returns the values."""
    values = _broadcast_all([tf.convert_to_tensor(one) for one in variables], root_rank, name, process_set) if variables else []
    assigned = [tf.compat.v1.assign(one, value) if not hasattr(one, "assign") else one.assign(value)
                for one, value in zip(variables, values)]
    if tf.executing_eagerly():
        return [tf.convert_to_tensor(one) for one in variables]
    with tf.control_dependencies([tf.convert_to_tensor(one) for one in assigned]):
        return [tf.identity(value) for value in values]


def _broadcast_all(tensors, root_rank, name, process_set, ignore_name_scope=False):
    """One operation for all: operations that wait for other ranks each hold a thread of TensorFlow's."""
    return _each("Broadcast", lambda array, own: drun.broadcast(array, root_rank, own, process_set), tensors, name,
                 ignore_name_scope)


def alltoall(tensor, splits=None, name=None, ignore_name_scope=False, process_set=global_process_set):
    """With splits: (received rows, number of rows from each rank), else the rows."""
    size_of_set = Group(process_set).size

    def forward(given, by_rank):
        own = call_name("Alltoall", [given], name, ignore_name_scope)

        def work(array, numbers):
            if splits is None:
                if not array.shape or array.shape[0] % size_of_set:
                    drun.alltoall(array, None, own, process_set)  # raises the error
                numbers = np.full(size_of_set, array.shape[0] // size_of_set)
            with _memory.kept([array]):
                received, got = drun.alltoall(array, np.asarray(numbers, np.int32), own, process_set)
            return [received, np.asarray(got, np.int32)]

        return carry_out(work, [given, by_rank], [(given.dtype, _rows_of_any(given.shape)), (tf.int32, [size_of_set])])

    result = []

    def gradient(one, _):
        return alltoall(one, result[1], process_set=process_set)[0], None

    by_rank = tf.constant([], tf.int32) if splits is None else tf.convert_to_tensor(splits)
    result += _differentiable(forward, gradient, tensor, by_rank)
    return tuple(result) if splits is not None else result[0]


def _reducescatter(tensor, name=None, op=Sum, ignore_name_scope=False, process_set=global_process_set, prescale_factor=1.0,
                   postscale_factor=1.0):
    return _grouped_reducescatter([tensor], name, op, ignore_name_scope, process_set, prescale_factor, postscale_factor,
                                  "Reducescatter")[0]


def _grouped_reducescatter(tensors, name=None, op=Sum, ignore_name_scope=False, process_set=global_process_set,
                           prescale_factor=1.0, postscale_factor=1.0, kind="GroupedReducescatter"):
    reduction = Reduction(drun.reducescatter, op, prescale_factor, postscale_factor, process_set)
    factor = (Group(process_set).size if op == Sum else 1) * prescale_factor * postscale_factor

    def forward(*given):
        return _each(kind, reduction.of, given, name, ignore_name_scope, _rows_of_any)

    def gradient(*gradients):
        return [allgather(one * tf.cast(factor, one.dtype), process_set=process_set) for one in gradients]

    return _differentiable(forward, gradient, *tensors)


def join():
    """Takes part in the other ranks' allreduces with zeros until all ranks have joined. Returns the last one's rank."""
    return carry_out(lambda: [np.array(drun.join(), np.int32)], [], [(tf.int32, [])])[0]


def _number_op(number):
    """The number at the time when the operation is carried out."""
    return carry_out(lambda: [np.array(number(), np.int32)], [], [(tf.int32, [])])[0]


def size_op(process_set_id=0, name=None):
    del name
    return _number_op(lambda: size() if process_set_id == 0 else of_number(process_set_id).size())


def rank_op(name=None):
    del name
    return _number_op(rank)


def local_rank_op(name=None):
    del name
    return _number_op(local_rank)


def local_size_op(name=None):
    del name
    return _number_op(local_size)


HOROVOD_PROCESS_SET_ERROR_INIT, HOROVOD_PROCESS_SET_ERROR_UNKNOWN_SET = -1, -2


def process_set_included_op(process_set_id=0, name=None):
    """1 or 0; -1 before init, -2 without such a set."""
    del name

    def included():
        if not is_initialized():
            return HOROVOD_PROCESS_SET_ERROR_INIT
        try:
            return int(is_process_set_included(process_set_id))
        except (KeyError, ValueError):
            return HOROVOD_PROCESS_SET_ERROR_UNKNOWN_SET

    return _number_op(included)
