"""What Keras 3 does with an optimizer before it applies gradients, for optimizers of the class `distributed`."""
import functools
import sys

_WARNED = False


def prepare(distributed):
    """Once per process, although each optimizer calls it."""
    from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer
    from keras.src.trainers import trainer

    if getattr(trainer.model_supports_jit, "_is_of_drun", False):
        return
    _keep_xla_off(trainer, distributed)
    _reduce_scaled_gradients(LossScaleOptimizer, distributed)


def _keep_xla_off(trainer, distributed):
    """Keras compiles the step of a model by XLA unless the model says that it can't. XLA has no kernels for drun's
    collectives."""
    supports = trainer.model_supports_jit

    def model_supports_jit(model):
        optimizer = getattr(model, "optimizer", None)
        if not any(isinstance(one, distributed) for one in (optimizer, getattr(optimizer, "inner_optimizer", None))):
            return supports(model)
        _tell()
        return False

    model_supports_jit._is_of_drun = True
    trainer.model_supports_jit = model_supports_jit


def _reduce_scaled_gradients(loss_scale_optimizer, distributed):
    """compile() puts the optimizer of a model in mixed_float16 into a LossScaleOptimizer, which applies only gradients
    that are finite. Each rank would see to its own ones, and a rank that leaves a step out would miss the others'
    allreduce. So the gradients are reduced first: then all ranks come to the same answer."""
    apply_scaled = loss_scale_optimizer.apply

    @functools.wraps(apply_scaled)
    def apply(self, grads, trainable_variables=None):
        inner = self.inner_optimizer
        if isinstance(inner, distributed):
            inner.apply_by(self, functools.partial(apply_scaled, self), grads, trainable_variables)
        else:
            apply_scaled(self, grads, trainable_variables)

    loss_scale_optimizer.apply = apply


def _tell():
    global _WARNED
    from ..tensorflow.mpi_ops import is_initialized, rank

    if not _WARNED and (not is_initialized() or rank() == 0):
        print("drun: note: XLA is off for models with a DistributedOptimizer: it can't compile collectives", file=sys.stderr, flush=True)
    _WARNED = True
