"""DistributedOptimizer for the optimizers of TensorFlow 1; those of Keras are passed on."""
import tensorflow as tf

from ._calls import after
from .aggregation import Aggregation
from .compression import Compression
from .gradients import GradientReduction
from .mpi_ops import Adasum, Average, global_process_set
from .reductions import allreduce
from .tape import check_groups

_LegacyOptimizer = tf.compat.v1.train.Optimizer


class _DistributedOptimizer(_LegacyOptimizer):
    """An optimizer around another one, which reduces gradients when they are computed."""

    def __init__(self, optimizer, name, use_locking, reduce, passes, is_averaged):
        super().__init__(name=name, use_locking=use_locking)
        self._optimizer = optimizer
        self._reduce = reduce
        self._agg_helper = None
        if passes > 1:
            if tf.executing_eagerly():
                raise ValueError("backward_passes_per_step > 1 is not yet supported for _LegacyOptimizer with eager execution.")
            self._agg_helper = Aggregation(passes, reduce, is_averaged)

    def register_local_var(self, var):
        """Gradients of that variable stay this rank's own."""
        self._reduce.local.add(var)

    def compute_gradients(self, *args, **kwargs):
        gradients, variables = zip(*self._optimizer.compute_gradients(*args, **kwargs))
        reduce = self._agg_helper.compute_gradients if self._agg_helper else self._reduce
        return list(zip(reduce(gradients, variables), variables))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)
        if not self._agg_helper:
            return self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)

        def count_step():
            return None if global_step is None else global_step.assign_add(1)

        return self._agg_helper.apply_gradients(lambda: self._optimizer.apply_gradients(pairs, global_step=global_step, name=name),
                                                count_step)

    def get_slot(self, *args, **kwargs):
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)


class _AdasumOfChanges(_LegacyOptimizer):
    """Adasum of the changes that each rank's own step makes to the variables."""

    def __init__(self, optimizer, name, use_locking, compression):
        super().__init__(name=name, use_locking=use_locking)
        self._optimizer = optimizer
        self._compression = compression

    def compute_gradients(self, *args, **kwargs):
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        variables = [variable for _, variable in pairs]
        starts = [tf.identity(one) for one in variables]
        with after(*starts):
            step = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        with after(step):
            changes = [one.read_value() - start for one, start in zip(variables, starts)]
            reduced = [allreduce(change, op=Adasum, compression=self._compression) for change in changes]
            return tf.group(*[one.assign(start + change) for one, start, change in zip(variables, starts, reduced)])

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)


def DistributedOptimizer(optimizer, name=None, use_locking=False, device_dense="", device_sparse="",
                         compression=Compression.none, sparse_as_dense=False, backward_passes_per_step=1, op=Average,
                         gradient_predivide_factor=1.0, average_aggregated_gradients=False, num_groups=0, groups=None,
                         process_set=global_process_set, scale_local_gradients=True):
    """An optimizer that uses the gradients of all ranks."""
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if op == Adasum and average_aggregated_gradients:
        raise ValueError("Adasum does not support average_aggregated_gradients == True")
    check_groups(groups)
    if not isinstance(optimizer, _LegacyOptimizer):
        if op == Adasum:
            raise ValueError("op == Adasum is not supported yet with Keras")
        from .._keras import distributed_optimizer

        return distributed_optimizer(optimizer, name=name, compression=compression, sparse_as_dense=sparse_as_dense, op=op,
                                     predivide_factor=gradient_predivide_factor, passes=backward_passes_per_step,
                                     is_averaged=average_aggregated_gradients, process_set=process_set,
                                     scale_local=scale_local_gradients)
    del num_groups, device_dense, device_sparse
    name = name or f"Distributed{type(optimizer).__name__}"
    if op == Adasum:
        if process_set is not global_process_set:
            raise NotImplementedError("Adasum does not support process sets yet")
        return _AdasumOfChanges(optimizer, name, use_locking, compression)
    reduce = GradientReduction(name, compression, sparse_as_dense, op, gradient_predivide_factor, process_set,
                               scale_local_gradients)
    return _DistributedOptimizer(optimizer, name, use_locking, reduce, backward_passes_per_step, average_aggregated_gradients)
