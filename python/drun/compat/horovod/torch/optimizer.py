"""DistributedOptimizer as Horovod's."""
import torch

import drun.torch
from drun._groups import global_process_set

from .compression import Compression
from .mpi_ops import Adasum, Average, allreduce_async_, size, synchronize


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none, backward_passes_per_step=1,
                         op=Average, gradient_predivide_factor=1.0, num_groups=0, groups=None, sparse_as_dense=False,
                         process_set=global_process_set):
    """Horovod's groups of gradients (num_groups, groups) are drun's buckets, and the two options are ignored."""
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    if op == Adasum and size() > 1:
        if process_set is not global_process_set:
            raise NotImplementedError("Adasum does not support non-global process sets yet.")
        return _of_changes(optimizer, named_parameters, compression)
    result = drun.torch.DistributedOptimizer(optimizer, named_parameters, compression, backward_passes_per_step, op,
                                             gradient_predivide_factor, num_groups, groups, sparse_as_dense, process_set)
    result._parameter_names = {parameter: name for name, parameter in result._drun_all_named()}
    return result


def _of_changes(optimizer, named_parameters, compression):
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    names = drun.torch._names_of(parameters, None if named_parameters is None else list(named_parameters))
    cls = type(optimizer.__class__.__name__, (_OfChanges, optimizer.__class__), {})
    result = cls.__new__(cls)
    result.__dict__.update({name: value for name, value in optimizer.__dict__.items() if name != "step"})
    result._parameter_names = dict(zip(parameters, names))
    # Halves would lose what Adasum is about: the directions are compared in float32.
    result._compression = Compression.none if compression in (Compression.fp16, Compression.bf16) else compression
    return result


class _OfChanges:
    """Adasum of the changes that each rank's own step makes to the parameters. Before a class of torch.optim in the list
    of bases."""

    def synchronize(self):
        pass

    def skip_synchronize(self):
        raise AssertionError("Skipping synchronization is not supported when using Adasum optimizer.")

    def set_backward_passes_per_step(self, passes):
        """The passes of a step need not be counted: the changes are reduced in step()."""

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        moved = [p for p in self._parameter_names if p.requires_grad]  # without a gradient: not moved here
        starts = [p.detach().clone() for p in moved]
        super().step()
        handles = []
        for parameter, start in zip(moved, starts):
            change, context = self._compression.compress((parameter.detach() - start).contiguous())
            name = f"change of {self._parameter_names[parameter]}"
            handles.append((allreduce_async_(change, name=name, op=Adasum), context))
        for parameter, start, (handle, context) in zip(moved, starts, handles):
            parameter.copy_(start + self._compression.decompress(synchronize(handle), context))
        return loss

    step.hooked = True
