"""horovod.tensorflow.elastic in a job whose ranks stay the same."""
import tensorflow as tf

from ..common.elastic import ObjectState, State, run  # noqa: F401
from .functions import broadcast_variables, variables_of


def _variables_of(value):
    """Of a model or an optimizer; None: of neither. Keras 3's models also list metrics and seeds, which stay the rank's."""
    weights = getattr(value, "weights", None)
    if isinstance(weights, list):
        return weights
    return variables_of(value) if hasattr(value, "variables") else None


class _OfVariables(State):
    def _copy(self, value):
        variables = _variables_of(value)
        return super()._copy(value) if variables is None else [tf.identity(tf.convert_to_tensor(one)).numpy() for one in variables]

    def _restore(self, name, kept):
        variables = _variables_of(getattr(self, name))
        if variables is None:
            return super()._restore(name, kept)
        for variable, value in zip(variables, kept):
            variable.assign(value)
        return None

    def _share(self, name, value):
        variables = _variables_of(value)
        if variables is None:
            super()._share(name, value)
        else:
            broadcast_variables(variables, root_rank=0)


class TensorFlowKerasState(_OfVariables):
    """A model, its optimizer, and plain values."""

    def __init__(self, model, optimizer=None, backend=None, **kwargs):
        del backend
        if not getattr(model, "built", True):
            raise ValueError("Model must be built first. Run `model.build(input_shape)`.")
        optimizer = optimizer or getattr(model, "optimizer", None)
        self.__dict__["optimizer"] = optimizer
        super().__init__(model=model, **({} if optimizer is None else {"optimizer": optimizer}), **kwargs)


class _Variables:
    def __init__(self, variables):
        self.variables = variables


class TensorFlowState(_OfVariables):
    """Variables, and plain values. Eager only."""

    def __init__(self, variables=None, session=None, **kwargs):
        del session
        self.__dict__["variables"] = variables or tf.compat.v1.global_variables()
        super().__init__(_tracked=_Variables(self.variables), **kwargs)


__all__ = ["TensorFlowKerasState", "TensorFlowState", "run"]
