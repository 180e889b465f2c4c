"""Sums and averages of gradients that travel as halves. The results are those of drun/training/compression.hpp, bit by
bit for float32 (the sum itself is the backend's)."""
import functools

import torch

from ._compression import Compression
from ._groups import Group
from ._reductions import Average, Sum, allreduce_async_

_HALVES = {Compression.fp16: torch.float16, Compression.bf16: torch.bfloat16}
_WIDE = (torch.float32, torch.float64)


def is_for(compression, op):
    return compression in _HALVES and op in (Sum, Average)


class Halves:
    """Divides first, because halves have a small range: by `divisor`, or by the number of ranks if that is None. A finite
    value that could make the sum infinite is cut, so that finite gradients have finite averages; infinities and NaN pass.
    `cuts`: False makes such a value infinite, for a program that looks for infinities to choose the factor of its loss."""

    def __init__(self, compression, op, process_set, divisor=None, cuts=True):
        self._half = _HALVES[compression]
        self._process_set = process_set
        self._size = Group(process_set).size
        self._divisor = self._size if divisor is None else divisor
        self._factor = self._divisor if op == Sum else self._divisor / self._size
        self._cuts = cuts

    @staticmethod
    def takes(dtype):
        """Other types travel as they are."""
        return dtype in _WIDE

    def begin(self, flat, name):
        """Returns the handle of the sum. Changes `flat`."""
        divide_(flat, self._divisor)
        if self._cuts:
            flat = _cut(flat, largest_of(self._size, self._half))
        return allreduce_async_(flat.to(self._half), op=Sum, name=name, process_set=self._process_set)

    def end(self, halves, dtype):
        result = halves.to(dtype)
        return result if self._factor == 1 else result.mul_(self._factor)


def _cut(flat, limit):
    if flat.device.type == "cpu" and flat.numel():  # mostly there is nothing to cut; on a GPU the host would have to wait
        least, most = torch.aminmax(flat)
        if -limit <= least and most <= limit:
            return flat
    return torch.where(flat.isinf(), flat, flat.clamp(-limit, limit))


def divide_(tensor, number):
    """By division: on a GPU torch multiplies by the reciprocal of a number that is on the CPU."""
    if number != 1:
        tensor.div_(number if tensor.device.type == "cpu" else _on_device(number, tensor.dtype, tensor.device))
    return tensor


@functools.lru_cache(maxsize=64)
def _on_device(number, dtype, device):
    return torch.full((), number, dtype=dtype, device=device)


@functools.lru_cache(maxsize=64)
def largest_of(n, half):
    """The largest number of the type of which n have a finite sum."""
    quotient = torch.finfo(half).max / n
    result = torch.tensor(quotient, dtype=torch.float64, device="cpu").to(half)
    if result.item() > quotient:
        result = (result.view(torch.int16) - 1).view(half)
    return result.item()
