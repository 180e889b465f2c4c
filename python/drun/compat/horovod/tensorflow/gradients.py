"""Gradients of all ranks: packed into buckets by type, each of which is one allreduce.

In a graph an operation begins each bucket as soon as its gradients are there, and another one waits for it: the buckets
are reduced beside the rest of the backward pass. The operations that wait are ordered after all that begin, so that no
rank waits for a bucket that another one could not begin for want of a thread."""
import itertools

import numpy as np
import tensorflow as tf

import drun
from drun import Adasum, Average, synchronize

from . import _memory
from ._calls import HALVES, after, carry_out
from .reductions import allreduce

BUCKET_BYTES = 32 << 20


class GradientReduction:
    """(gradients, variables) -> gradients of all ranks. Those of the variables in `local` stay the rank's own, and are
    divided by the number of ranks, as Horovod does, if scale_local. `groups` of Horovod are drun's buckets, and ignored."""

    def __init__(self, name, compression, sparse_as_dense, op, predivide_factor, process_set, scale_local):
        if predivide_factor != 1.0 and op != Average:
            raise ValueError("gradient_predivide_factor not supported with op != Average")
        self.local = VariableSet()
        self._name = name
        self._compression = compression
        self._sparse_as_dense = sparse_as_dense
        self._op = op
        self._factors = (1.0 / predivide_factor, predivide_factor)
        self._process_set = process_set
        self._scale_local = scale_local

    def __call__(self, gradients, variables):
        numbers = [number for number, variable in enumerate(variables) if variable not in self.local]
        result = list(gradients)
        for number, one in zip(numbers, self._reduced([gradients[number] for number in numbers])):
            result[number] = one
        if self._scale_local:
            for number in set(range(len(result))) - set(numbers):
                result[number] = _divided(result[number], self._process_set.size())
        return result

    def _reduced(self, gradients):
        if not self._process_set.included() or self._process_set.size() == 1:
            return gradients
        result = [tf.convert_to_tensor(one) if self._sparse_as_dense and isinstance(one, tf.IndexedSlices) else one
                  for one in gradients]
        dense = [number for number, one in enumerate(result) if one is not None and not isinstance(one, tf.IndexedSlices)]
        compressed = {number: self._compression.compress(tf.convert_to_tensor(result[number])) for number in dense}
        several = [_Bucket(f"{self._name}.{place}", [compressed[number][0] for number in numbers], self._op, *self._factors,
                           self._process_set, numbers)
                   for place, numbers in enumerate(buckets({number: one for number, (one, _) in compressed.items()}, self._op))]
        for bucket in several:
            bucket.begin()
        with after(*[bucket.ticket for bucket in several]):
            for bucket in several:
                for number, one in zip(bucket.numbers, bucket.wait()):
                    result[number] = self._compression.decompress(one, compressed[number][1])
            for number, one in enumerate(result):
                if isinstance(one, tf.IndexedSlices):
                    result[number] = allreduce(one, op=self._op, process_set=self._process_set)
        return result


def buckets(tensors, op):
    """Lists of the keys of `tensors`, of one type each. The last gradients come first: the backward pass ends with those
    of the first layers. Adasum: each alone."""
    open_buckets, done = {}, []
    for number in sorted(tensors, reverse=True):
        tensor = tensors[number]
        n_bytes = (tensor.shape.num_elements() or 0) * tensor.dtype.size
        numbers, filled = open_buckets.get(tensor.dtype, ([], 0))
        if numbers and (op == Adasum or filled + n_bytes > BUCKET_BYTES):
            done.append(numbers)
            numbers, filled = [], 0
        open_buckets[tensor.dtype] = (numbers + [number], filled + n_bytes)
    return done + [numbers for numbers, _ in open_buckets.values()]


_begun = {}  # ticket: (handle, what was given, type, shapes), of buckets that a graph has begun
_tickets = itertools.count(1)


class _Bucket:
    def __init__(self, name, tensors, op, prescale, postscale, process_set, numbers):
        self.numbers = numbers
        self.ticket = None
        self._tensors = tensors
        self._options = dict(name=name, op=op, prescale_factor=prescale, postscale_factor=postscale, process_set=process_set)

    def begin(self):
        self.ticket = carry_out(self._begin, self._tensors, [(tf.int64, [])])[0]

    def wait(self):
        return carry_out(_wait, [self.ticket], [(one.dtype, one.shape) for one in self._tensors])

    def _begin(self, *arrays):
        flat = _memory.concatenated(arrays)
        dtype = flat.dtype.name
        if self._options["op"] == Adasum and dtype in HALVES:
            flat = _memory.cast(flat, "float32")
        ticket = next(_tickets)
        begin = drun.allreduce_async_ if _memory.is_own(flat) else drun.allreduce_async
        _begun[ticket] = (begin(flat, **self._options), flat, dtype, [one.shape for one in arrays])
        return [np.array(ticket, np.int64)]


def _wait(ticket):
    handle, given, dtype, shapes = _begun.pop(int(np.asarray(ticket)))
    with _memory.kept([given]):
        result = synchronize(handle)
    return _memory.split(_memory.cast(result, dtype), shapes)


def _divided(gradient, n):
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / float(n), gradient.indices, gradient.dense_shape)
    return gradient / float(n)


class VariableSet:
    """Variables, which are no keys of a dict in TensorFlow."""

    def __init__(self):
        self._kept = {}

    def add(self, variable):
        self._kept[id(variable)] = variable

    def __contains__(self, variable):
        return id(variable) in self._kept
