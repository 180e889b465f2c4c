"""Differentiable collectives: the loss is the sum of the losses of all ranks. Imported when the program first has a
tensor of torch that needs it."""
import torch

from . import _data_movement, _reductions
from ._groups import Group


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale, postscale, process_set):
        ctx.arguments = (op, prescale, postscale, process_set)
        return _reductions.allreduce(tensor.detach(), name=name, op=op, prescale_factor=prescale, postscale_factor=postscale,
                                     process_set=process_set)

    @staticmethod
    def backward(ctx, gradient):
        op, prescale, postscale, process_set = ctx.arguments
        _check_linear("allreduce", op)
        result = _reductions.allreduce(gradient.contiguous(), op=op, prescale_factor=prescale, postscale_factor=postscale,
                                       process_set=process_set)
        return result, None, None, None, None, None


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):
        ctx.arguments = (op, process_set, prescale, postscale)
        return _reductions.reducescatter(tensor.detach(), name, op=op, process_set=process_set, prescale_factor=prescale,
                                         postscale_factor=postscale)

    @staticmethod
    def backward(ctx, gradient):
        op, process_set, prescale, postscale = ctx.arguments
        _check_linear("reducescatter", op)
        scale = prescale * postscale / (Group(process_set).size if op == _reductions.Average else 1)
        return _data_movement.allgather(gradient.contiguous(), process_set=process_set) * scale, None, None, None, None, None


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set, op):
        ctx.rows, ctx.shape, ctx.process_set = (tensor.shape[0] if tensor.dim() else 1), tensor.shape, process_set
        ctx.op = op
        return _data_movement.allgather(tensor.detach(), name, process_set)

    @staticmethod
    def backward(ctx, gradient):
        total = _reductions.allreduce(gradient.contiguous(), op=ctx.op, process_set=ctx.process_set)
        rows = _data_movement.allgather(torch.tensor([ctx.rows]), process_set=ctx.process_set)
        begin = int(rows[: Group(ctx.process_set).rank].sum())
        return total.narrow(0, begin, ctx.rows).reshape(ctx.shape), None, None, None


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set, op):
        ctx.root_rank, ctx.process_set, ctx.op = root_rank, process_set, op
        return _data_movement.broadcast(tensor.detach(), root_rank, name, process_set)

    @staticmethod
    def backward(ctx, gradient):
        total = _reductions.allreduce(gradient.contiguous(), op=ctx.op, process_set=ctx.process_set)
        group = Group(ctx.process_set)
        is_root = group.rank == group.root(ctx.root_rank)
        return total if is_root else torch.zeros_like(total), None, None, None, None


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        result, received = _data_movement.alltoall(tensor.detach(), splits, name, process_set)
        ctx.received, ctx.process_set = received, process_set
        ctx.mark_non_differentiable(received)
        return result, received

    @staticmethod
    def backward(ctx, gradient, _):
        result, _ = _data_movement.alltoall(gradient.contiguous(), ctx.received, None, ctx.process_set)
        return result, None, None, None


def _check_linear(what, op):
    if op not in (_reductions.Sum, _reductions.Average):
        raise ValueError(f"gradients flow through an {what} that sums or averages, and through no other")


def allreduce(tensor, name, compression, op, prescale, postscale, process_set):
    compressed, ctx = compression.compress(tensor)
    return compression.decompress(_Allreduce.apply(compressed, name, op, prescale, postscale, process_set), ctx)


def reducescatter(tensor, name, compression, op, process_set, prescale, postscale):
    compressed, ctx = compression.compress(tensor)
    return compression.decompress(_Reducescatter.apply(compressed, name, op, process_set, prescale, postscale), ctx)


def allgather(tensor, name, process_set, op=_reductions.Sum):
    """op: how the gradients of the ranks are combined."""
    return _Allgather.apply(tensor, name, process_set, op)


def broadcast(tensor, root_rank, name, process_set, op=_reductions.Sum):
    """op: as for allgather."""
    return _Broadcast.apply(tensor, root_rank, name, process_set, op)


def alltoall(tensor, splits, name, process_set):
    size = Group(process_set).size
    if splits is not None:
        return _Alltoall.apply(tensor, splits, name, process_set)
    if tensor.dim() and tensor.shape[0] % size == 0:
        return _Alltoall.apply(tensor, [tensor.shape[0] // size] * size, name, process_set)[0]
    return _data_movement.alltoall(tensor.detach(), None, name, process_set)  # raises the error
