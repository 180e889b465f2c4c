"""Memory of TensorFlow's tensors for drun: shared by DLPack, on the CPU and on GPUs."""
import math

import numpy as np
import tensorflow as tf

import drun
from drun import _dlpack

# bool has no type in TensorFlow's DLPack, and int32 is in the host's memory, also if its device is a GPU.
_SHARED_TYPES = {tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int64}


def has_gpus():
    """True if tensors of graphs may be on a GPU."""
    return bool(tf.config.get_visible_devices("GPU"))


class Shared:
    """An eager tensor as an argument of drun's collectives. Results are new tensors, which drun writes to before anybody
    else has them: TensorFlow's must not change."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self.device = tensor.device
        place = tf.DeviceSpec.from_string(tensor.backing_device)
        self.is_on_gpu = place.device_type == "GPU"
        self._number = place.device_index or 0

    def __dlpack__(self, *, stream=None, max_version=None):
        del stream, max_version  # TensorFlow waits for all work of the device
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

    @staticmethod
    def empty(shape, *, dtype, device):
        with tf.device(device):
            made = Shared(tf.raw_ops.Empty(shape=list(shape), dtype=dtype, init=False))
            if "GPU" in device and not made.is_on_gpu:  # TensorFlow has this operation for few types there
                made = Shared(tf.raw_ops.Fill(dims=list(shape), value=tf.cast(0, dtype)))
        return made

    @staticmethod
    def asarray(obj, *, copy):
        """For the root of a broadcast, whose data drun only reads."""
        del copy
        return obj


def taken(tensor):
    """What drun takes for a tensor, or an array in a numpy_function: the tensor's memory, or an array of numpy."""
    if tf.is_tensor(tensor) and tensor.dtype in _SHARED_TYPES and tensor.shape.rank:
        return Shared(tensor)
    return np.asarray(tensor, order="C")


def given_back(result):
    return wait_for(result).tensor if isinstance(result, Shared) else result


def wait_for(result):
    """Returns the result when it is there: TensorFlow's streams are not ordered after drun's calls."""
    if isinstance(result, Shared) and result.is_on_gpu:
        drun.synchronize_stream(0)
    return result


def cast(values, name):
    if values.dtype.name == name:
        return values
    if isinstance(values, Shared):
        return Shared(tf.cast(wait_for(values).tensor, name))
    return values.astype(tf.dtypes.as_dtype(name).as_numpy_dtype)


def scaled(values, factor):
    """In double precision."""
    if factor == 1.0:
        return values
    return cast(_product(cast(values, "float64"), factor), values.dtype.name)


def _product(values, factor):
    return Shared(values.tensor * tf.constant(factor, tf.float64)) if isinstance(values, Shared) else values * np.float64(factor)


def on_host(values):
    return np.asarray(values)


def is_own(values):
    """False: others may have the memory, too. TensorFlow shares it where it can."""
    return not isinstance(values, Shared)


def concatenated(parts):
    """A flat array of all."""
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
        parts = tf.split(wait_for(flat).tensor, sizes)
        return [tf.reshape(part, shape) for part, shape in zip(parts, shapes)]
