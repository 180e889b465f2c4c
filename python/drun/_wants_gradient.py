"""Tells if autograd must see a collective."""
import sys


def autograd_for(tensor):
    """The module with the differentiable collectives if this is a tensor of torch that needs them, else None."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, getattr(torch, "Tensor", ())):
        return None
    if not (tensor.requires_grad and torch.is_grad_enabled()):
        return None
    from . import _autograd

    return _autograd
