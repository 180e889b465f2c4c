"""The gradients of a model, reduced over all ranks while the backward pass still runs.

They are packed into buckets, in the reverse of the parameters' order, which is about the order in which they come. A
bucket is reduced as soon as it is full and all buckets before it are on their way: so the order of the collectives is the
same on all ranks, even where a rank leaves parameters out."""
import weakref

import torch

from ._compression import BF16Compressor, FP16Compressor, NoneCompressor
from ._engine import synchronize
from ._reductions import Average, Sum, allreduce_async_

BUCKET_BYTES = 8 << 20


class _Bucket:
    """Gradients of one type behind each other in `flat`; behind these, where `has_marks`, one number per parameter that is not
    zero if its rank has a gradient: parameters that no rank has used keep no gradient, as with one rank."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.names = []
        self.parameters = []
        self.n_elements = 0
        self.n_ready = 0
        self.handle = None
        self.context = None
        self.flat = None

    def add(self, name, parameter):
        self.names.append(name)
        self.parameters.append(parameter)
        self.n_elements += parameter.numel()

    def pack(self, has_marks, sparse_as_dense):
        n_marks = len(self.parameters) if has_marks else 0
        if self.flat is None:
            self.flat = torch.empty(self.n_elements + n_marks, dtype=self.dtype)
        at, marks = 0, []
        for name, parameter in zip(self.names, self.parameters):
            part = self.flat.narrow(0, at, parameter.numel()).view(parameter.shape)
            at += parameter.numel()
            marks.append(0.0 if parameter.grad is None else 1.0)
            if parameter.grad is None:
                part.zero_()
                continue
            if parameter.grad.is_sparse:
                if not sparse_as_dense:
                    raise ValueError(f"the gradient of {name} is sparse: DistributedOptimizer(sparse_as_dense=True) takes it")
                parameter.grad = parameter.grad.to_dense()
            part.copy_(parameter.grad)
        if has_marks:
            self.flat[self.n_elements:] = torch.tensor(marks, dtype=self.dtype)

    def unpack(self, flat, has_marks):
        marks = flat[self.n_elements:].tolist() if has_marks else [1.0] * len(self.parameters)
        at = 0
        for parameter, mark in zip(self.parameters, marks):
            part = flat.narrow(0, at, parameter.numel()).view(parameter.shape)
            at += parameter.numel()
            if parameter.grad is not None:
                parameter.grad.copy_(part)
            elif mark != 0:
                parameter.grad = part.clone()


class GradientReducer:
    def __init__(self, named_parameters, compression, op, passes, prescale, postscale, process_set, bucket_bytes,
                 sparse_as_dense):
        self._compression = compression
        self._arguments = dict(op=op, prescale_factor=prescale, postscale_factor=postscale, process_set=process_set)
        self._has_marks = op in (Sum, Average) and compression in (NoneCompressor, FP16Compressor, BF16Compressor)
        self._sparse_as_dense = sparse_as_dense
        self.passes = passes
        self._buckets = self._fill(named_parameters, bucket_bytes)
        self._bucket_of = {id(parameter): bucket for bucket in self._buckets for parameter in bucket.parameters}
        self._left = {}
        self._next = 0  # the first bucket that is not on its way
        self._reset()
        self._hooks = [_after_gradient(parameter, self._make_hook(name, parameter)) for name, parameter in named_parameters]

    @staticmethod
    def _fill(named_parameters, bucket_bytes):
        buckets, filling = [], {}
        for name, parameter in reversed(named_parameters):
            n_bytes = parameter.numel() * parameter.element_size()
            bucket = filling.get(parameter.dtype)
            if bucket is None or (bucket.n_elements * parameter.element_size() + n_bytes > bucket_bytes):
                bucket = filling[parameter.dtype] = _Bucket(parameter.dtype)
                buckets.append(bucket)
            bucket.add(name, parameter)
        return buckets

    def remove(self):
        for remove in self._hooks:
            remove()

    def is_under_way(self):
        return self._next > 0

    def restart(self):
        """Forgets the passes that were counted."""
        for bucket in self._buckets[: self._next]:
            synchronize(bucket.handle)
        self._reset()

    def _reset(self):
        self._next = 0
        for bucket in self._buckets:
            bucket.n_ready, bucket.handle, bucket.context = 0, None, None
            for parameter in bucket.parameters:
                self._left[id(parameter)] = self.passes

    def _make_hook(self, name, parameter):
        # The model outlives an optimizer that another one took the place of.
        weak, key = weakref.ref(self), id(parameter)

        def hook(*_):
            reducer = weak()
            if reducer is not None:
                reducer._has_come(name, key)

        return hook

    def _has_come(self, name, key):
        self._left[key] -= 1
        if self._left[key] < 0:
            raise RuntimeError(f"the gradient of {name} was computed more than backward_passes_per_step={self.passes} times "
                               "before step(): give DistributedOptimizer the number of backward passes per step")
        if self._left[key] == 0:
            self._bucket_of[key].n_ready += 1
            self._launch(only_full=True)

    def _launch(self, only_full):
        while self._next < len(self._buckets):
            bucket = self._buckets[self._next]
            if only_full and bucket.n_ready < len(bucket.parameters):
                return
            with torch.no_grad():
                bucket.pack(self._has_marks, self._sparse_as_dense)
                compressed, bucket.context = self._compression.compress(bucket.flat)
            name = bucket.names[-1] if len(bucket.names) == 1 else f"{bucket.names[0]}..{bucket.names[-1]}"
            bucket.handle = allreduce_async_(compressed, name=name, **self._arguments)
            self._next += 1

    def synchronize(self):
        """All gradients are reduced when this returns."""
        self._launch(only_full=False)
        with torch.no_grad():
            for bucket in self._buckets:
                bucket.unpack(self._compression.decompress(synchronize(bucket.handle), bucket.context), self._has_marks)
        self._reset()


def _after_gradient(parameter, hook):
    """Has hook called whenever parameter.grad has got another pass; returns what ends that."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch 2.1
        return parameter.register_post_accumulate_grad_hook(hook).remove
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    handle = accumulator.register_hook(hook)

    def remove():
        nonlocal accumulator
        handle.remove()
        accumulator = None  # kept till then: nobody else does

    return remove
