"""Arrays of unknown libraries: objects with `__dlpack__`, here with numpy's memory, and capsules made by hand."""
import ctypes
import gc
import unittest
import unittest.mock

import numpy as np

import drun as hvd
from drun import _dlpack


def setUpModule():
    hvd.init()


class Shared:
    """An array that is accessible only by DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream=None):  # a producer older than version 1.0
        if stream is not None:
            raise AssertionError("memory of the host has no stream")
        return self.array.__dlpack__()


class Unchangeable(Shared):
    """As TensorFlow's tensors, of which DLPack of that version can't say that they must not change."""


Unchangeable.__module__ = "tensorflow.python.framework.ops"


class Modern(Shared):
    """An array with a library that can create others."""

    dtype = property(lambda self: self.array.dtype)
    device = "cpu"

    def __array_namespace__(self):
        return Namespace


class Namespace:
    @staticmethod
    def empty(shape, dtype, device):
        assert device == "cpu"
        return Modern(np.empty(shape, dtype))


# PyCapsule_New(pointer, name, destructor)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Versioned:
    """A producer of version 1.0."""

    def __init__(self, array, flags=0, major=1, device=1, code=2, bits=64, offset=0, strides=None):
        self.array, self.device = array, device
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*strides) if strides else None
        self.managed = _dlpack._DLManagedTensorVersioned(major=major, flags=flags)
        self.managed.tensor = _dlpack._DLTensor(
            data=array.ctypes.data - offset, device_type=device, ndim=array.ndim, code=code, bits=bits, lanes=1, byte_offset=offset,
            shape=self.shape, strides=self.strides)

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, stream=None, max_version=None):
        assert max_version == (1, 0), max_version
        return _new_capsule(ctypes.addressof(self.managed), b"dltensor_versioned", None)


class DLPack(unittest.TestCase):
    def test_its_memory_is_used_itself(self):
        shared = Shared(np.array([1.0, hvd.rank()]))
        self.assertIs(hvd.allreduce_(shared, op=hvd.Sum), shared)
        np.testing.assert_array_equal(shared.array, [hvd.size(), sum(range(hvd.size()))])
        for dtype in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32"):
            one = Shared(np.array([3], dtype))
            hvd.allreduce_(one, op=hvd.Max)
            self.assertEqual(one.array[0], 3, dtype)

    def test_what_must_not_change_is_refused_and_no_way_around_is_advised(self):
        tensor = Unchangeable(np.ones(2))
        with self.assertRaisesRegex(ValueError, "read-only"):
            hvd.allreduce_(tensor)
        with self.assertRaisesRegex(ValueError, "this one must not change: pass an array of numpy"):
            hvd.allreduce(tensor)

    def test_a_new_one_for_the_result_is_its_library_s(self):
        result = hvd.allreduce(Modern(np.full((2, 3), hvd.rank() + 1.0)), op=hvd.Sum)
        self.assertIsInstance(result, Modern)
        np.testing.assert_array_equal(result.array, np.full((2, 3), sum(range(1, hvd.size() + 1))))
        with self.assertRaisesRegex(ValueError, "can't make a new Shared for the result: use the call in place"):
            hvd.allreduce(Shared(np.ones(1)))
        fixed = staticmethod(lambda shape, dtype, device: Versioned(np.empty(shape, dtype), flags=1))
        with unittest.mock.patch.object(Namespace, "empty", fixed), self.assertRaisesRegex(ValueError, "read-only"):
            hvd.allreduce(Modern(np.ones(1)))

    def test_the_newer_form(self):
        numbers = np.array([7.0, hvd.rank(), 1.0])
        hvd.allreduce_(Versioned(numbers[1:], offset=8), op=hvd.Sum)
        np.testing.assert_array_equal(numbers, [7, sum(range(hvd.size())), hvd.size()])
        column = np.array([[1.0], [2.0]])
        hvd.allreduce_(Versioned(column, strides=(1, 99)), op=hvd.Max)  # the stride of a single column is irrelevant
        np.testing.assert_array_equal(column, [[1], [2]])

    def test_it_is_kept_until_the_call_is_over(self):
        numbers, deleted = np.array([1.0]), []
        owner = Versioned(numbers)
        destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleted.append)

        class Producer:  # the consumer keeps its capsule
            __dlpack_device__ = owner.__dlpack_device__

            def __dlpack__(self, stream=None, max_version=None):
                return _new_capsule(ctypes.addressof(owner.managed), b"dltensor_versioned", destructor)

        handle = hvd.allreduce_async_(Producer(), op=hvd.Sum)
        gc.collect()
        self.assertEqual(deleted, [])
        hvd.synchronize(handle)
        np.testing.assert_array_equal(numbers, [hvd.size()])
        del handle
        hvd.synchronize(hvd.allreduce_async_(np.ones(1)))  # releases the previous call's memory too
        gc.collect()
        self.assertEqual(len(deleted), 1)

    def test_what_can_t_be_used_is_refused(self):
        fixed = np.ones(2)
        fixed.flags.writeable = False
        for obj, why in ((Shared(np.ones((4, 4))[:, ::2]), "not contiguous"), (Shared(fixed), "can't be shared by DLPack"),
                         (Versioned(np.ones(2), flags=1), "read-only"),
                         (Versioned(np.ones(2), flags=2), "gave a copy of its memory"), (Versioned(np.ones(2), major=2), "version 2 of DLPack"),
                         (Versioned(np.ones(2), device=10), "device of DLPack's type 10"),
                         (Versioned(np.ones(2), code=3), "type 3 with 64 bits"),
                         (Versioned(np.ones(2), code=5), "can't compute with complex64")):
            with self.assertRaisesRegex(ValueError, why):
                hvd.allreduce_(obj)
