"""Horovod's elastic interface in a job whose ranks stay the same: a state is shared at the start, and nothing is lost or
added later. A rank that fails ends the job."""
import functools

from .sampler import ElasticSampler
from .state import TorchState


def run(func):
    """Decorator: the first argument of the function is the state, which all ranks get from rank 0 first."""

    @functools.wraps(func)
    def run_with_state(state, *args, **kwargs):
        state.sync()
        return func(state, *args, **kwargs)

    return run_with_state


__all__ = ["TorchState", "ElasticSampler", "run"]
