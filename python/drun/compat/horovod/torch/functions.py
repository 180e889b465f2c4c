"""Broadcasts of parameters, optimizers and objects."""
import drun
import drun.torch
from drun import allgather_object, broadcast_object, broadcast_object_fn, broadcast_parameters  # noqa: F401


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """As Horovod's, which also leaves zeros as the gradients of parameters that have no state yet. `model` is for
    optimizers of other libraries, and not needed."""
    del model
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.requires_grad and parameter.grad is None and parameter not in optimizer.state:
                parameter.grad = parameter.detach().new_zeros(parameter.shape)
    drun.torch.broadcast_optimizer_state(optimizer, root_rank)
