"""Memory of objects that have `__dlpack__` (https://dmlc.github.io/dlpack/latest). The producer keeps owning it."""
import ctypes

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
_LEGACY_DEFAULT_STREAM = 1  # the number of CUDA's stream 0 for __dlpack__
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}  # DLDataTypeCode
_READ_ONLY, _IS_COPIED = 1, 2  # bits of flags


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _DLManagedTensorVersioned(ctypes.Structure):  # from version 1.0 on
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _capsule_of(obj, stream):
    try:
        try:
            return obj.__dlpack__(max_version=(1, 0), **stream)
        except TypeError:  # a producer older than version 1.0
            return obj.__dlpack__(**stream)
    except (BufferError, TypeError) as error:
        raise ValueError(f"the {type(obj).__name__} can't be shared by DLPack: {error}") from error


class Export:
    """keep: keeps the memory alive. strides: in elements, or None for C order. type_name: numpy's. is_device: the
    memory is ordered by the legacy default stream."""

    __slots__ = ("keep", "pointer", "shape", "strides", "type_name", "itemsize", "is_device", "read_only", "is_copy")

    def __init__(self, obj):
        kind = int(obj.__dlpack_device__()[0])
        if kind not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
            raise ValueError(f"the {type(obj).__name__} is on a device of DLPack's type {kind}: drun takes those on the CPU and on "
                             "NVIDIA's GPUs")
        self.is_device = kind in (CUDA, CUDA_MANAGED)
        stream = {"stream": _LEGACY_DEFAULT_STREAM} if self.is_device else {}
        self.keep = _capsule_of(obj, stream)
        self.read_only = self.is_copy = False
        if _is_valid(self.keep, b"dltensor_versioned"):
            managed = _DLManagedTensorVersioned.from_address(_pointer_of(self.keep, b"dltensor_versioned"))
            if managed.major != 1:
                raise ValueError(f"the {type(obj).__name__} speaks version {managed.major} of DLPack, which drun does not know")
            tensor = managed.tensor
            self.read_only, self.is_copy = bool(managed.flags & _READ_ONLY), bool(managed.flags & _IS_COPIED)
        else:
            tensor = _DLTensor.from_address(_pointer_of(self.keep, b"dltensor"))
        self.pointer = tensor.data + tensor.byte_offset if tensor.data else None
        self.shape = tuple(tensor.shape[:tensor.ndim])
        self.strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else None
        self.itemsize = tensor.bits * tensor.lanes // 8
        kind = _KINDS.get(tensor.code) if tensor.lanes == 1 and tensor.bits % 8 == 0 else None
        if kind is None or self.itemsize == 0:
            raise ValueError(f"the {type(obj).__name__} has elements of DLPack's type {tensor.code} with {tensor.bits} bits and "
                             f"{tensor.lanes} lanes, which drun can't move")
        self.type_name = kind if kind == "bool" else f"{kind}{tensor.bits}"
