"""XLA compiles operations for which it has kernels, and drun's collectives have none."""
import sys

_WARNED = False


def keep_xla_off(distributed):
    """Keras 3 compiles the step of a model by XLA unless the model says that it can't: a model whose optimizer is one of
    the class `distributed` says so."""
    from keras.src.trainers import trainer

    supports = trainer.model_supports_jit
    if getattr(supports, "_is_of_drun", False):
        return

    def model_supports_jit(model):
        if not isinstance(getattr(model, "optimizer", None), distributed):
            return supports(model)
        _tell()
        return False

    model_supports_jit._is_of_drun = True
    trainer.model_supports_jit = model_supports_jit


def _tell():
    global _WARNED
    from ..tensorflow.mpi_ops import is_initialized, rank

    if not _WARNED and (not is_initialized() or rank() == 0):
        print("drun: note: XLA is off for models with a DistributedOptimizer: it can't compile collectives", file=sys.stderr, flush=True)
    _WARNED = True
