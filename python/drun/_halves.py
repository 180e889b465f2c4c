"""Sums and averages of gradients that travel as halves. The results are those of drun/training/compression.hpp, bit by
bit for float32."""
import torch

from ._compression import Compression
from ._process_sets import Group
from ._reductions import Average, Sum, allreduce_async_

_HALVES = {Compression.fp16: torch.float16, Compression.bf16: torch.bfloat16}
_WIDE = (torch.float32, torch.float64)


def is_for(compression, op, dtype):
    return compression in _HALVES and op in (Sum, Average) and dtype in _WIDE


def begin(compression, flat, name, process_set):
    """Divides first, because halves have a small range. A finite value that could make the sum infinite is cut, so that
    finite gradients have finite averages; infinities and NaN pass. Changes `flat`; returns the handle of the average."""
    size, half = Group(process_set).size, _HALVES[compression]
    limit = largest_of(size, half)
    finite = flat.isfinite()
    flat.div_(size)
    return allreduce_async_(torch.where(finite, flat.clamp(-limit, limit), flat).to(half), op=Sum, name=name,
                            process_set=process_set)


def end(halves, dtype, op, process_set):
    result = halves.to(dtype)
    return result.mul_(Group(process_set).size) if op == Sum else result


def largest_of(n, half):
    """The largest number of the type of which n have a finite sum."""
    quotient = torch.finfo(half).max / n
    result = torch.tensor(quotient, dtype=torch.float64).to(half)
    if result.item() > quotient:
        result = (result.view(torch.int16) - 1).view(half)
    return result.item()
