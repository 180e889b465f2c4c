"""The state of a training: model, optimizer, sampler and plain values."""
import copy

import torch

from ..functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .sampler import ElasticSampler


class TorchState:
    """Attributes: the given values, a model, an optimizer and samplers. commit() keeps a copy in memory, restore() takes
    it back, sync() gives rank 0's to all ranks."""

    def __init__(self, model=None, optimizer=None, **kwargs):
        given = {"model": model, "optimizer": optimizer, **kwargs}
        self.__dict__["_names"] = sorted(name for name in given if name in kwargs or given[name] is not None)
        self.__dict__["_kept"] = {}
        self.__dict__["_callbacks"] = []
        self.__dict__.update(given)
        self.save()

    def register_reset_callbacks(self, callbacks):
        """They are called when the ranks of a job change, which they don't here."""
        self._callbacks.extend(callbacks)

    def on_reset(self):
        for callback in self._callbacks:
            callback()

    def commit(self):
        self.save()

    def check_host_updates(self):
        """Hosts stay as they are."""

    def save(self):
        self._kept.update({name: copy.deepcopy(_saved(getattr(self, name))) for name in self._names})

    def restore(self):
        for name, value in self._kept.items():
            own = getattr(self, name)
            if hasattr(own, "load_state_dict"):
                own.load_state_dict(copy.deepcopy(value))
            else:
                setattr(self, name, copy.deepcopy(value))

    def sync(self):
        for name in self._names:
            value = getattr(self, name)
            if isinstance(value, torch.nn.Module):
                broadcast_parameters(value.state_dict(), root_rank=0)
            elif isinstance(value, torch.optim.Optimizer):
                broadcast_optimizer_state(value, root_rank=0)
            elif isinstance(value, ElasticSampler):
                value.share()
            else:
                setattr(self, name, broadcast_object(value, root_rank=0, name=f"state {name}"))
        self.save()


def _saved(value):
    return value.state_dict() if hasattr(value, "state_dict") else value
