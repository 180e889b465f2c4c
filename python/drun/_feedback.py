"""Sums of gradients for which each rank sends only its large elements. What it doesn't send is added to its next gradient
(error feedback), so nothing is lost, only delayed. The results for finite gradients are those of
drun/training/sparse.hpp, bit by bit."""
import math
import struct

import torch

from ._compression import TopKCompressor
from ._data_movement import allgather_parts_async
from ._engine import CombinedHandle
from ._halves import divide_
from ._groups import Group
from ._reductions import Average, Sum

_BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


def is_for(dtype):
    """Gradients of other types are sent whole."""
    return dtype in _BITS


class Feedback:
    """Selects what is sent of each gradient, and keeps the rest, by parameter. loss_scale() is the factor of the loss in the
    current backward pass, and so of the gradients: what is kept is divided by it."""

    def __init__(self, compression, loss_scale=None):
        self.compression = compression
        self._loss_scale = loss_scale or (lambda: 1.0)
        self._scale = 1.0  # in this step
        self._kept = {}  # by id of the parameter, on its device

    def begin_step(self):
        self._scale = float(self._loss_scale())

    def begin(self, bucket, name, op, process_set, **_):
        """Sends the large elements of the bucket; returns a handle of the sum or average of what all ranks send. The
        factors before and after the sum, which make one, are not needed."""
        flat = bucket.pack()
        for part, kept in self._parts_with_gradient(bucket, flat):
            part.add_(kept, alpha=self._scale)
        chosen = self._choose(bucket, flat)
        # Infinities and NaN, which would come again in each step, leave what was kept before. If not all are sent, those
        # that are tell it to all ranks.
        finite, rest = flat.isfinite(), flat.masked_fill(chosen, 0)
        if self._scale != 1:
            rest.div_(self._scale)
        for (part, kept), (is_finite, _) in zip(self._parts_with_gradient(bucket, rest),
                                                self._parts_with_gradient(bucket, finite)):
            kept.copy_(torch.where(is_finite, part, kept))
        indices = chosen.nonzero().flatten()
        if flat.numel() < 1 << 31:
            indices = indices.int()
        sent = allgather_parts_async(_packed(indices, flat[indices.long()]), name, process_set)
        divisor = Group(process_set).size if op == Average else 1
        return CombinedHandle([sent], lambda parts: _add_up(flat, parts, indices.dtype, divisor))

    def _parts_with_gradient(self, bucket, flat):
        """A parameter without a gradient on this rank keeps what it has: if no rank has one, what is sent is dropped."""
        for parameter, part in bucket.parts(flat):
            if parameter.grad is not None and not parameter.grad.is_sparse:
                kept = self._kept.get(id(parameter))
                if kept is None:
                    kept = self._kept[id(parameter)] = torch.zeros_like(part)
                yield part, kept

    def _choose(self, bucket, flat):
        if not isinstance(self.compression, TopKCompressor):
            return ~(flat.abs() < _least(self.compression.value * self._scale, flat.dtype))
        chosen = torch.empty(flat.numel(), dtype=torch.bool, device=flat.device)
        for (_, part), (_, chosen_of_part) in zip(bucket.parts(flat), bucket.parts(chosen)):
            _choose_top(part.flatten(), chosen_of_part.view(-1), self.compression.fraction)
        return chosen

    def state_of(self, parameters):
        """What is kept, by number of the parameter."""
        return {number: self._kept[id(one)] for number, one in enumerate(parameters) if id(one) in self._kept}

    def restore(self, state, parameters):
        self._kept = {}
        for number, kept in state.items():
            parameter = parameters[number]
            self._kept[id(parameter)] = kept.detach().to(parameter.device, parameter.dtype, copy=True)


def check(op):
    if op not in (Sum, Average):
        raise ValueError("topk and threshold are for op=Sum and op=Average")


def top_k_count(n, fraction):
    """Number of elements in a fraction of n, rounded up; at least one. A product that is an integer except for its rounding
    error is not rounded up."""
    if n == 0 or fraction >= 1:
        return n
    return min(max(math.ceil(fraction * n * (1 - 1e-12)), 1), n)


def _choose_top(values, chosen, fraction):
    """The elements of the largest absolute values; of equal ones the first. NaN is the largest, so that all ranks see it at
    once."""
    if values.numel() == 0:
        return
    n_chosen = top_k_count(values.numel(), fraction)
    magnitudes = values.abs().view(_BITS[values.dtype])  # bits order as absolute values do
    magnitudes.masked_fill_(values.isnan(), torch.iinfo(magnitudes.dtype).max)
    least = magnitudes.topk(n_chosen, sorted=False).values.min()
    larger, equal = magnitudes > least, magnitudes == least
    torch.logical_or(larger, equal & (equal.cumsum(0) <= n_chosen - larger.sum()), out=chosen)


def _least(threshold, dtype):
    """The least number of the type that is not below the threshold: torch would round the threshold to the nearest."""
    if dtype == torch.float64:
        return threshold
    try:
        single = struct.unpack("f", struct.pack("f", threshold))[0]
    except OverflowError:
        return math.inf
    if single < threshold:
        bits = struct.unpack("I", struct.pack("f", single))[0]
        single = struct.unpack("f", struct.pack("I", bits + 1))[0]
    return single


def _packed(indices, values):
    """A row per element: its index and its bits."""
    n = indices.numel()
    words = [one.view(torch.int32).view(n, one.element_size() // 4) for one in (indices, values)]
    return torch.cat(words, 1)


def _unpacked(rows, index_type, value_type):
    n_words = torch.iinfo(index_type).bits // 32
    # Even a single row must move: view() wants the beginning of memory.
    return [words.clone(memory_format=torch.contiguous_format).view(to).flatten()
            for words, to in ((rows[:, :n_words], index_type), (rows[:, n_words:], value_type))]


def _add_up(flat, parts, index_type, divisor):
    """In the order of ranks, so that all have the same bits. The indices of one rank differ from each other."""
    flat.zero_()
    for rows in parts:
        indices, values = _unpacked(rows, index_type, flat.dtype)
        flat.index_add_(0, indices, values)
    return divide_(flat, divisor)
