"""horovod.torch.elastic in a job whose ranks stay the same."""
from ...common.elastic import run
from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["TorchState", "ElasticSampler", "run"]
