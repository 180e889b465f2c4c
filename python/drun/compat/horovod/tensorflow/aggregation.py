"""Gradients of several backward passes, which are summed on each rank before the ranks reduce them."""
import tensorflow as tf

from ._calls import after


class Aggregation:
    """reduce: (gradients, variables) -> gradients of all ranks. counter: the last pass of a step is number `passes`. It counts
    here alone: an optimizer with a loss scale around the one that has this applies nothing when a gradient overflowed."""

    def __init__(self, passes, reduce, is_averaged):
        self._passes = passes
        self._reduce = reduce
        self._is_averaged = is_averaged
        with tf.init_scope():
            self.counter = tf.Variable(0, dtype=tf.int32, trainable=False)
        self._sums = None
        self._counted = None

    def compute_gradients(self, gradients, variables):
        """In the last pass the gradients of all ranks, else the sums of this one, which are not applied. Those have zeros for
        what is not finite: a loss scale must not change on one rank alone."""
        dense = [None if one is None else tf.convert_to_tensor(one) for one in gradients]
        if self._sums is None:
            with tf.init_scope():
                self._sums = [None if one is None else tf.Variable(tf.zeros(variable.shape, one.dtype), trainable=False)
                              for one, variable in zip(dense, variables)]
        added = [kept.assign_add(one) for kept, one in zip(self._sums, dense) if one is not None]
        with after(*added):
            self._counted = self.counter.assign(self.counter % self._passes + 1)
        with after(self._counted):
            kept = [one for one in self._sums if one is not None]
            of_kept = [variable for one, variable in zip(self._sums, variables) if one is not None]
            results = iter(tf.cond(self._is_last(), lambda: self._reduced(kept, of_kept),
                                   lambda: [_finite(one.read_value()) for one in kept]))
        return [None if one is None else next(results) for one in self._sums]

    def _is_last(self):
        return tf.equal(self.counter, self._passes)

    def _reduced(self, kept, variables):
        sums = [one.read_value() / float(self._passes if self._is_averaged else 1) for one in kept]
        reduced = [tf.identity(one) for one in self._reduce(sums, variables)]
        with after(*reduced):
            emptied = [one.assign(tf.zeros_like(one)) for one in kept]
        with after(*emptied):
            return [tf.identity(one) for one in reduced]

    def apply_gradients(self, apply, count_step):
        """apply(): the optimizer's step, in the last pass; count_step(): counts an iteration in the others."""

        def step():
            with after(apply()):
                return tf.constant(True)

        def skip():
            with after(count_step()):
                return tf.constant(False)

        with after(self._counted):
            return tf.cond(self._is_last(), step, skip)


def _finite(tensor):
    if not tensor.dtype.is_floating:
        return tensor
    return tf.where(tf.math.is_finite(tensor), tensor, tf.zeros_like(tensor))
