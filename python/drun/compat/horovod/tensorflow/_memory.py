"""Memory of TensorFlow's tensors for drun: shared by DLPack, on the CPU and on GPUs.

TensorFlow waits for all work of a device before it shares a tensor there, but orders nothing after drun's calls, and gives
freed memory to the next operation. So who has memory on a GPU in a call of drun keeps it until wait_for() returns."""
import contextlib
import math

import numpy as np
import tensorflow as tf

import drun
from drun import _dlpack

# bool has no type in TensorFlow's DLPack. int32 may be in the host's memory, also if its device is a GPU.
_SHARED_TYPES = {tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int64}


def has_gpus():
    """True if operations of graphs get tensors on GPUs. In a session of TensorFlow 1 they are copied to the host: a
    py_function would set up the GPUs a second time."""
    return tf.test.is_built_with_cuda() and tf.compat.v1.executing_eagerly_outside_functions() and \
        bool(tf.config.get_visible_devices("GPU"))


class Shared:
    """An eager tensor as an argument of drun's collectives. Results are new tensors, which drun writes to before anybody
    else has them: TensorFlow's must not change."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self.device = tensor.backing_device  # of the memory; `device` is that of the operation
        place = tf.DeviceSpec.from_string(self.device)
        self.is_on_gpu = place.device_type == "GPU"
        self._number = place.device_index or 0

    def __dlpack__(self, *, stream=None, max_version=None):
        del stream, max_version
        return tf.experimental.dlpack.to_dlpack(self.tensor)

    def __dlpack_device__(self):
        return (_dlpack.CUDA, self._number) if self.is_on_gpu else (_dlpack.CPU, 0)

    def __array_namespace__(self):
        return _Namespace

    def __array__(self, dtype=None, copy=None):
        del copy
        return np.asarray(self.tensor, dtype)


class _Namespace:
    """What drun wants of an array's own library."""

    uint8 = tf.uint8

    @staticmethod
    def empty(shape, *, dtype, device):
        with tf.device(device), contextlib.suppress(tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
            made = Shared(tf.raw_ops.Empty(shape=list(shape), dtype=dtype, init=False))
            if made.device == device:  # on a GPU TensorFlow has this operation for few types
                return made
        return _Namespace.zeros(shape, dtype=dtype, device=device)

    @staticmethod
    def zeros(shape, *, dtype, device):
        with tf.device(device):
            return Shared(tf.raw_ops.Fill(dims=[shape] if isinstance(shape, int) else list(shape), value=tf.cast(0, dtype)))

    @staticmethod
    def asarray(obj, *, copy):
        """For the root of a broadcast, whose data drun only reads."""
        del copy
        return obj


def taken(tensor):
    """What drun takes for a tensor, or an array in a numpy_function: the tensor's memory, or an array of numpy."""
    if tf.is_tensor(tensor) and tensor.dtype in _SHARED_TYPES:
        shared = Shared(tensor)
        if "CPU" in shared.device or (shared.is_on_gpu and tf.test.is_built_with_cuda()):
            return shared
    return np.asarray(tensor, order="C")


def given_back(result):
    return result.tensor if isinstance(result, Shared) else result


def wait_for(several):
    """Returns when drun's calls have ended with the memory of these."""
    if any(isinstance(one, Shared) and one.is_on_gpu for one in several):
        drun.synchronize_stream(0)


@contextlib.contextmanager
def kept(several):
    """Keeps memory that drun may have in calls until these have ended, also if the block fails."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(drun.DrunError):
            wait_for(several)
        raise
    wait_for(several)


def cast(values, name):
    if values.dtype.name == name:
        return values
    return _computed(values, lambda tensor: tf.cast(tensor, name)) if isinstance(values, Shared) else \
        values.astype(tf.dtypes.as_dtype(name).as_numpy_dtype)


def scaled(values, factor):
    """In double precision."""
    if factor == 1.0:
        return values
    wide = cast(values, "float64")
    product = _computed(wide, lambda tensor: tensor * factor) if isinstance(wide, Shared) else wide * np.float64(factor)
    return cast(product, values.dtype.name)


def _computed(values, function):
    with tf.device(values.device):
        return Shared(function(values.tensor))


def is_own(values):
    """False: others may have the memory, too. TensorFlow shares it where it can."""
    return not isinstance(values, Shared)


def concatenated(parts):
    """A flat array of all, which are of one type."""
    if not isinstance(parts[0], Shared):
        return np.concatenate([np.reshape(one, -1) for one in parts])
    with tf.device(parts[0].device):
        return Shared(tf.concat([tf.reshape(one.tensor, [-1]) for one in parts], 0))


def split(flat, shapes):
    """The reverse."""
    sizes = [math.prod(shape) for shape in shapes]
    if not isinstance(flat, Shared):
        return [part.reshape(shape) for part, shape in zip(np.split(flat, np.cumsum(sizes)[:-1]), shapes)]
    with tf.device(flat.device):
        return [tf.reshape(part, shape) for part, shape in zip(tf.split(flat.tensor, sizes), shapes)]
