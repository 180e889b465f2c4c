"""The state of a training: model, optimizer, sampler and plain values."""
import copy

import torch

from ...common.elastic import State
from ..functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .sampler import ElasticSampler


class TorchState(State):
    """Attributes: the given values, a model, an optimizer and samplers."""

    def __init__(self, model=None, optimizer=None, **kwargs):
        # Both are attributes in any case, and parts of the state only if they were given.
        self.__dict__.update(model=model, optimizer=optimizer)
        parts = {name: one for name, one in (("model", model), ("optimizer", optimizer)) if one is not None}
        super().__init__(**parts, **kwargs)

    def _copy(self, value):
        return copy.deepcopy(value.state_dict() if hasattr(value, "state_dict") else value)

    def _restore(self, name, kept):
        own = getattr(self, name)
        if hasattr(own, "load_state_dict"):
            own.load_state_dict(copy.deepcopy(kept))
        else:
            super()._restore(name, kept)

    def _share(self, name, value):
        if isinstance(value, torch.nn.Module):
            broadcast_parameters(value.state_dict(), root_rank=0)
        elif isinstance(value, torch.optim.Optimizer):
            broadcast_optimizer_state(value, root_rank=0)
        elif isinstance(value, ElasticSampler):
            value.load_state_dict(broadcast_object(value.state_dict(), root_rank=0))
        else:
            super()._share(name, value)
