"""Collectives of drun on TensorFlow's tensors: at once if they are eager, else as an operation of the graph."""
import re

import numpy as np
import tensorflow as tf

import drun
from drun import Adasum
from drun import _library as lib
from drun._groups import Group, check_added

from . import _memory

_EXACT = ("int8", "uint8", "int32", "uint32", "int64", "uint64")
HALVES = ("float16", "bfloat16")


def carry_out(work, tensors, outputs):
    """work(*memory) returns a list, of memory as _memory.taken() gives it or arrays of numpy. outputs: (dtype, static
    shape) of each. Returns a list of tensors."""
    if tf.executing_eagerly():
        return [tf.convert_to_tensor(one) for one in _guarded(work, True)(*tensors)]
    # Both are stateful: in a tf.function those of one function are carried out in the order of the program. A
    # numpy_function takes less time, but copies tensors of a GPU.
    function = tf.py_function if _memory.has_gpus() else tf.numpy_function
    results = function(_guarded(work, False), tensors, [dtype for dtype, _ in outputs])
    for result, (_, shape) in zip(results, outputs):
        result.set_shape(shape)
    return results


def after(*made):
    """Operations of a block come after those in `made`, which may be anything: a graph of TensorFlow 1 has to be told."""
    graph = tf.compat.v1.get_default_graph()
    operations = [getattr(one, "op", one) for one in made]
    return tf.control_dependencies([one for one in operations if isinstance(one, tf.Operation) and one.graph is graph])


def _guarded(work, is_eager):
    """Gives TensorFlow's error of the same meaning for one of drun."""

    def call(*tensors):
        try:
            return [_memory.given_back(one) for one in work(*[_memory.taken(one) for one in tensors])]
        except drun.DrunError as error:
            if error.status == lib.ERROR_MISMATCH:
                # In a graph it arrives as an UnknownError: a numpy_function can't give another class.
                raise tf.errors.FailedPreconditionError(None, None, str(error)) from error
            raise
        except ValueError as error:
            if not is_eager:
                raise  # TensorFlow makes an InvalidArgumentError of it
            raise tf.errors.InvalidArgumentError(None, None, str(error)) from error

    return call


def call_name(kind, tensors, name, ignore_name_scope=False):
    """The name by which ranks match the call. None: calls of eager tensors without a name are matched by their order."""
    if tf.executing_eagerly():
        return name
    given = name or f"Horovod{kind}_" + "_".join(normalized(one.name) for one in tensors[:1] + tensors[1:][-1:])
    return given if ignore_name_scope else tf.compat.v1.get_default_graph().unique_name(given)


def normalized(name):
    """As the name of a TensorFlow operation."""
    return re.sub("[^a-zA-Z0-9_]", "_", name)


class Reduction:
    """op and factors as Horovod has them: integers are scaled in double precision, Adasum of halves is computed in
    float32. `function`: drun.allreduce or drun.reducescatter."""

    def __init__(self, function, op, prescale, postscale, process_set):
        check_added(process_set)
        self._function, self._op = function, op
        self._prescale, self._postscale = prescale, postscale
        self._process_set = process_set

    def of(self, values, name):
        array, given = values, values.dtype.name
        prescale, postscale, after = self._prescale, self._postscale, 1.0
        if given in _EXACT and (prescale, postscale) != (1.0, 1.0):
            array, prescale, postscale, after = _memory.scaled(array, prescale), 1.0, 1.0, postscale
        elif self._op == Adasum and given in HALVES:
            array = _memory.cast(array, "float32")
        if self._function is drun.reducescatter and array.shape and array.shape[0] % Group(self._process_set).size:
            array = np.asarray(array)  # drun takes rows of a GPU's tensor only if they can be divided
        with _memory.kept([] if array is values and after == 1.0 else [array]):
            result = self._function(array, name=name, op=self._op, prescale_factor=prescale,
                                    postscale_factor=postscale, process_set=self._process_set)
        return _memory.cast(_memory.scaled(result, after), given)
