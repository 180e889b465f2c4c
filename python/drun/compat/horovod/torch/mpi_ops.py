"""Horovod's collectives for PyTorch: drun's, with Horovod's gradients and types.

Gradients: that of an allgather and of a broadcast is averaged over the ranks, that of a reducescatter that averages is
1, that of one that sums is the number of ranks. (drun's own package has those of the sum of all ranks' losses.)
Integers can be scaled, in double precision. Halves on a GPU are scaled there, by the factor as a half. Adasum takes
halves, which are reduced as float32."""
import torch

import drun
from drun import Adasum, Average, Max, Min, Product, Sum, poll, synchronize
from drun import _autograd
from drun._engine import CombinedHandle
from drun._groups import Group
from drun._reductions import chosen_op

from ..common.basics import (ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init,
                             is_homogeneous, is_initialized, local_rank, local_size, mpi_built, mpi_enabled,
                             mpi_threads_supported, nccl_built, rank, rocm_built, shutdown, size, start_timeline,
                             stop_timeline)
from ..common.exceptions import HorovodInternalError
from ..common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from .compression import Compression

join = drun.join
barrier = drun.barrier


_HALVES = (torch.float16, torch.bfloat16)


def _scaled(tensor, factor):
    """By a factor of the tensor's type, as Horovod scales halves on a GPU; integers in double precision."""
    if factor == 1.0:
        return tensor
    if tensor.dtype in _HALVES:
        return tensor * torch.tensor(factor, dtype=tensor.dtype, device="cpu").item()
    return (tensor.double() * factor).to(tensor.dtype)


class _Changed:
    """A tensor as drun reduces it, and the way back. Autograd sees nothing of it, as it sees nothing of libdrun."""

    def __init__(self, tensor, op, prescale, postscale):
        self._given = tensor
        self.prescale, self.postscale = prescale, postscale
        self.is_changed = True
        is_exact = not (tensor.is_floating_point() or tensor.is_complex())
        is_scaled = (prescale, postscale) != (1.0, 1.0)
        if op == Adasum and tensor.dtype in _HALVES:
            self._factor = 1.0
            self.tensor = tensor.detach().float()
        elif is_scaled and (is_exact or (tensor.dtype in _HALVES and tensor.device.type != "cpu")):
            self.prescale = self.postscale = 1.0
            self._factor = postscale
            self.tensor = _scaled(tensor.detach(), prescale)
        else:
            self.tensor = tensor
            self.is_changed = False

    def back(self, result):
        return _scaled(result, self._factor).to(self._given.dtype) if self.is_changed else result

    def back_in_place(self, result):
        if self.is_changed:
            self._given.data.copy_(self.back(result))
            return self._given
        return result


def _one_async(function, tensor, name, op, prescale, postscale, process_set, in_place):
    one = _Changed(tensor, op, prescale, postscale)
    handle = function(one.tensor, name=name, op=op, prescale_factor=one.prescale, postscale_factor=one.postscale,
                      process_set=process_set)
    return CombinedHandle([handle], one.back_in_place if in_place else one.back) if one.is_changed else handle


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                    process_set=global_process_set):
    return _one_async(drun.allreduce_async, tensor, name, chosen_op(op, average), prescale_factor, postscale_factor,
                      process_set, False)


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                     process_set=global_process_set):
    return _one_async(drun.allreduce_async_, tensor, name, chosen_op(op, average), prescale_factor, postscale_factor,
                      process_set, True)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set):
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


def _group_async(function, tensors, name, op, prescale, postscale, process_set, in_place):
    tensors = list(tensors)
    if len({tensor.device.type for tensor in tensors}) > 1:
        raise HorovodInternalError(f"grouped_allreduce{'' if name is None else f' {name!r}'}: some of its tensors are on a GPU, "
                                   "and some on the CPU: make two groups", drun.ERROR_ARGUMENT)
    several = [_Changed(tensor, op, prescale, postscale) for tensor in tensors]
    if len({one.is_changed for one in several}) > 1:  # integers and others: the factors differ
        one_async = allreduce_async_ if in_place else allreduce_async
        return CombinedHandle([one_async(tensor, None, None if name is None else f"{name}.{number}", op, prescale, postscale,
                                         process_set) for number, tensor in enumerate(tensors)])
    factors = (several[0].prescale, several[0].postscale) if several else (1.0, 1.0)
    handle = function([one.tensor for one in several], name=name, op=op, prescale_factor=factors[0],
                      postscale_factor=factors[1], process_set=process_set)

    def finish(results):
        return [one.back_in_place(result) if in_place else one.back(result) for one, result in zip(several, results)]

    return CombinedHandle([handle], finish)


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                            process_set=global_process_set):
    return _group_async(drun.grouped_allreduce_async, tensors, name, chosen_op(op, average), prescale_factor, postscale_factor,
                        process_set, False)


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                             process_set=global_process_set):
    return _group_async(drun.grouped_allreduce_async_, tensors, name, chosen_op(op, average), prescale_factor, postscale_factor,
                        process_set, True)


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=global_process_set):
    return synchronize(grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set))


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, options, *tensors):
        ctx.options = options
        name, op, prescale, postscale, process_set = options
        if len(tensors) == 1:
            return synchronize(allreduce_async(tensors[0], None, name, op, prescale, postscale, process_set))
        return tuple(synchronize(grouped_allreduce_async(list(tensors), None, name, op, prescale, postscale, process_set)))

    @staticmethod
    def backward(ctx, *gradients):
        _, op, prescale, postscale, process_set = ctx.options
        reduced = _Allreduce.apply((None, op, prescale, postscale, process_set), *[one.contiguous() for one in gradients])
        return (None, *([reduced] if len(gradients) == 1 else reduced))


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set):
    compressed, ctx = compression.compress(tensor)
    options = (name, chosen_op(op, average), prescale_factor, postscale_factor, process_set)
    return compression.decompress(_Allreduce.apply(options, compressed), ctx)


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set):
    if len(tensors) < 2:
        return [allreduce(tensor, average, name, compression, op, prescale_factor, postscale_factor, process_set)
                for tensor in tensors]
    compressed, contexts = zip(*map(compression.compress, tensors))
    options = (name, chosen_op(op, average), prescale_factor, postscale_factor, process_set)
    return [compression.decompress(result, ctx) for result, ctx in zip(_Allreduce.apply(options, *compressed), contexts)]


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    from drun._sparse import sparse_allreduce_async as begin

    return begin(tensor, name, op, process_set)


def allgather_async(tensor, name=None, process_set=global_process_set):
    return drun.allgather_async(tensor, name, process_set)


def allgather(tensor, name=None, process_set=global_process_set):
    return _autograd.allgather(tensor, name, process_set, Average)


def _each(function, tensors, name, *arguments):
    return [function(tensor, None if name is None else f"{name}.{number}", *arguments)
            for number, tensor in enumerate(tensors)]


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    return CombinedHandle(_each(allgather_async, tensors, name, process_set))


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    return _each(allgather, tensors, name, process_set)


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    return drun.broadcast_async(tensor, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    return drun.broadcast_async_(tensor, root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    return _autograd.broadcast(tensor, root_rank, name, process_set, Average)


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """The result is (rows, number of rows from each rank), also without splits."""
    n = Group(process_set).size
    if splits is None and tensor.dim() and tensor.shape[0] % n == 0:
        splits = torch.full((n,), tensor.shape[0] // n, dtype=torch.int32)
    return drun.alltoall_async(tensor, splits, name, process_set)


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """With splits: (received rows, number of rows from each rank), else the rows."""
    return _autograd.alltoall(tensor, splits, name, process_set)


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                        postscale_factor=1.0):
    return _one_async(drun.reducescatter_async, tensor, name, op, prescale_factor, postscale_factor, process_set, False)


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):
        ctx.factor = prescale * postscale * (Group(process_set).size if op == Sum else 1)
        ctx.process_set = process_set
        return synchronize(reducescatter_async(tensor, name, op, process_set, prescale, postscale))

    @staticmethod
    def backward(ctx, gradient):
        gathered = synchronize(allgather_async((gradient * ctx.factor).contiguous(), process_set=ctx.process_set))
        return gathered, None, None, None, None, None


def reducescatter(tensor, name=None, compression=Compression.none, op=Average, process_set=global_process_set,
                  prescale_factor=1.0, postscale_factor=1.0):
    compressed, ctx = compression.compress(tensor)
    reduced = _Reducescatter.apply(compressed, name, op, process_set, prescale_factor, postscale_factor)
    return compression.decompress(reduced, ctx)


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                                postscale_factor=1.0):
    return CombinedHandle(_each(reducescatter_async, tensors, name, op, process_set, prescale_factor, postscale_factor))


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average, process_set=global_process_set,
                          prescale_factor=1.0, postscale_factor=1.0):
    return _each(reducescatter, tensors, name, compression, op, process_set, prescale_factor, postscale_factor)


__all__ = [name for name in globals() if not name.startswith("_") and name not in ("torch", "drun", "Group", "CombinedHandle", "chosen_op")]
