"""Broadcasts of parameters, optimizers and objects."""
import torch

import drun
import drun.torch
from drun import allgather_object, broadcast_object, broadcast_object_fn, broadcast_parameters  # noqa: F401


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """As Horovod's, which also leaves zeros as the gradients of the parameters of a new optimizer. `model` is for optimizers
    of other libraries, and not needed."""
    del model
    parameters = [] if optimizer.state else [one for group in optimizer.param_groups for one in group["params"]]
    for parameter in parameters:
        if parameter.requires_grad and parameter.grad is None:
            zeros = parameter.detach().new_zeros(parameter.shape)
            parameter.grad = zeros.to_sparse() if isinstance(optimizer, torch.optim.SparseAdam) else zeros
    drun.torch.broadcast_optimizer_state(optimizer, root_rank)
