"""allreduce and reducescatter as Horovod's frontend for TensorFlow has them: compression, sparse tensors, Adasum."""
import tensorflow as tf

from drun._reductions import chosen_op

from .compression import Compression
from .mpi_ops import (Adasum, Average, Sum, _allreduce, _grouped_allreduce, _grouped_reducescatter, _reducescatter, allgather,
                      check_num_rank_power_of_2, global_process_set, size)


def allreduce(tensor, average=None, device_dense="", device_sparse="", compression=Compression.none, op=None,
              prescale_factor=1.0, postscale_factor=1.0, name=None, process_set=global_process_set, ignore_name_scope=False):
    """The average, or the reduction `op`, of a tensor, a variable or IndexedSlices over all ranks."""
    del device_dense
    op = chosen_op(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        with tf.device(device_sparse):
            return _of_slices(tensor, op, (prescale_factor, postscale_factor), process_set, ignore_name_scope)
    _check_adasum(op, process_set)
    compressed, ctx = compression.compress(tf.convert_to_tensor(tensor))
    return compression.decompress(_allreduce(compressed, name, op, prescale_factor, postscale_factor, ignore_name_scope,
                                             process_set), ctx)


def _check_adasum(op, process_set):
    if op == Adasum and process_set is not global_process_set:
        raise NotImplementedError("Adasum does not support non-global process sets yet.")
    if op == Adasum and not check_num_rank_power_of_2(size()):
        raise NotImplementedError("Running Adasum with non-power of 2 ranks is not supported yet.")


def _of_slices(slices, op, factors, process_set, ignore_name_scope):
    """The rows of all ranks, one after the other: rows with the same index add up."""
    if op not in (Sum, Average):
        raise NotImplementedError("IndexedSlices can be summed and averaged, and not reduced otherwise: pass sparse_as_dense=True")
    if factors != (1.0, 1.0):
        raise NotImplementedError("prescale_factor and postscale_factor are not supported with IndexedSlices")
    values = allgather(slices.values, None, ignore_name_scope, process_set)
    indices = allgather(slices.indices, None, ignore_name_scope, process_set)
    if op == Average:
        values /= tf.cast(process_set.size(), values.dtype)
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)


def grouped_allreduce(tensors, average=None, device_dense="", device_sparse="", compression=Compression.none, op=None,
                      prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set, ignore_name_scope=False,
                      name=None):
    """allreduce of a list of tensors, variables and IndexedSlices."""
    del device_dense
    if not tensors:
        return tensors
    op = chosen_op(op, average)
    result = [None] * len(tensors)
    dense = [number for number, one in enumerate(tensors) if not isinstance(one, tf.IndexedSlices)]
    for number in set(range(len(tensors))) - set(dense):
        result[number] = allreduce(tensors[number], None, "", device_sparse, compression, op, prescale_factor,
                                   postscale_factor, None, process_set, ignore_name_scope)
    if dense:
        _check_adasum(op, process_set)
        compressed, contexts = zip(*[compression.compress(tf.convert_to_tensor(tensors[number])) for number in dense])
        reduced = _grouped_allreduce(compressed, name, op, prescale_factor, postscale_factor, ignore_name_scope, process_set)
        for number, one, ctx in zip(dense, reduced, contexts):
            result[number] = compression.decompress(one, ctx)
    return result


def reducescatter(tensor, device_dense="", compression=Compression.none, op=Average, name=None,
                  process_set=global_process_set, ignore_name_scope=False, prescale_factor=1.0, postscale_factor=1.0):
    del device_dense
    compressed, ctx = compression.compress(tf.convert_to_tensor(tensor))
    return compression.decompress(_reducescatter(compressed, name, op, ignore_name_scope, process_set, prescale_factor,
                                                 postscale_factor), ctx)


def grouped_reducescatter(tensors, device_dense="", compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    del device_dense
    if not tensors:
        return tensors
    compressed, contexts = zip(*[compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors])
    reduced = _grouped_reducescatter(compressed, None, op, False, process_set, prescale_factor, postscale_factor)
    return [compression.decompress(one, ctx) for one, ctx in zip(reduced, contexts)]
