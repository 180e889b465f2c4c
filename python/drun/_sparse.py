"""Sparse tensors of torch: each rank sends its elements with their indices, and every receiver adds them up."""
import torch

from ._compression import Compression
from ._engine import CombinedHandle
from ._data_movement import allgather_async
from ._groups import Group
from ._reductions import Average, Sum


def sparse_allreduce_async(tensor, name=None, op=Average, process_set=None, compression=Compression.none, factor=1.0):
    """The sum or average of sparse tensors, times `factor`. Each rank may have different elements. An average of
    integers is truncated to integers, as for dense tensors."""
    if op not in (Sum, Average):
        raise ValueError("sparse tensors can be summed and averaged, and nothing else")
    if not tensor.is_sparse:
        raise ValueError(f"sparse_allreduce_async takes sparse tensors (torch.sparse_coo), not {tensor.layout}")
    whole = not (tensor.is_floating_point() or tensor.is_complex())
    if whole and factor != 1.0:
        raise ValueError(f"factors are for floating types, not for {tensor.dtype}")
    divisor = Group(process_set).size if op == Average else 1
    if not whole:
        factor /= divisor
    tensor = tensor.detach().coalesce()
    values, context = compression.compress(tensor.values().contiguous())
    parts = [allgather_async(tensor.indices().t().contiguous(), None if name is None else f"{name}, indices", process_set),
             allgather_async(values, name, process_set)]

    def finish(indices, values):
        values = compression.decompress(values, context)
        if factor != 1.0:
            values = values * factor
        total = torch.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce()
        if not whole or divisor == 1:
            return total
        values = torch.div(total.values(), divisor, rounding_mode="trunc")
        return torch.sparse_coo_tensor(total.indices(), values, tensor.shape).coalesce()

    return CombinedHandle(parts, finish)


def sparse_gradient_of(parameter):
    """The parameter's gradient, by rows; an empty one if there is none."""
    gradient = parameter.grad
    if gradient is None or (gradient.is_sparse and gradient._nnz() == 0):  # zero_grad() leaves one of another layout
        rows = torch.empty((1, 0), dtype=torch.int64, device=parameter.device)
        return torch.sparse_coo_tensor(rows, parameter.detach().new_empty((0, *parameter.shape[1:])), parameter.shape)
    if gradient.is_sparse and gradient.sparse_dim() == 1:
        return gradient
    return gradient.to_dense().to_sparse(1)
