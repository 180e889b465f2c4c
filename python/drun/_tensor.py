"""What may be given to a collective: CPU tensors of torch, arrays of numpy, and flat buffers (array.array, bytearray, ...).
Nothing is copied: libdrun works on the memory itself. torch and numpy are never imported from here: whoever has one of
their tensors has imported them."""
import array
import ctypes
import functools
import math
import sys

from . import _library as lib

_NUMPY_TYPES = {
    "int8": lib.INT8, "uint8": lib.UINT8, "int32": lib.INT32, "uint32": lib.UINT32, "int64": lib.INT64,
    "uint64": lib.UINT64, "float16": lib.FLOAT16, "bfloat16": lib.BFLOAT16, "float32": lib.FLOAT32,
    "float64": lib.FLOAT64,
}
_TYPE_NAMES = {number: name for name, number in _NUMPY_TYPES.items()}


class Tensor:
    """A view of the user's memory, which it keeps alive.

    dtype: a drun_dtype, or None for one that libdrun can't compute with; such elements are moved as bytes."""

    __slots__ = ("object", "pointer", "shape", "dtype", "itemsize", "type_name", "_new", "_keep")

    def __init__(self, obj, pointer, shape, dtype, itemsize, type_name, new, keep=None):
        self.object = obj
        self.pointer = pointer
        self.shape = tuple(shape)
        self.dtype = dtype
        self.itemsize = itemsize
        self.type_name = type_name
        self._new = new
        self._keep = keep

    @property
    def count(self):
        return math.prod(self.shape)

    @property
    def n_bytes(self):
        return self.count * self.itemsize

    @property
    def rows(self):
        """The first dimension; one number alone is a row of one."""
        return self.shape[0] if self.shape else 1

    @property
    def row_shape(self):
        return self.shape[1:]

    @property
    def row_count(self):
        return math.prod(self.row_shape)

    def new(self, shape=None):
        """Of the same kind and type, with whatever is in the memory."""
        return take(self._new(self.shape if shape is None else tuple(shape)))

    def new_rows(self, rows):
        return self.new((rows,) + self.row_shape)

    def copy(self):
        result = self.new()
        ctypes.memmove(result.pointer, self.pointer, self.n_bytes)
        return result

    def moved_as(self):
        """(type, elements of it per element) for collectives that only move data."""
        return (lib.UINT8, self.itemsize) if self.dtype is None else (self.dtype, 1)

    def check_reducible(self, what):
        if self.dtype is None:
            known = ", ".join(_TYPE_NAMES[number] for number in sorted(_TYPE_NAMES))
            raise ValueError(f"{what} can't compute with {self.type_name}; it can with {known}")


class Bfloat16Array:
    """bfloat16 for numpy, which has no such type: the upper halves of float32 numbers, in an array of uint16."""

    def __init__(self, bits):
        self.bits = bits


def take(obj, writable=False, name=None):
    """The Tensor of what the user gave. `writable`: the collective stores its result there. `name`: the call's, for errors."""
    try:
        return _take(obj, writable)
    except ValueError as error:
        if name is None:
            raise
        raise ValueError(f"'{name}': {error}") from None


def _take(obj, writable):
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, Bfloat16Array):
        bits = take(obj.bits, writable)
        return Tensor(obj, bits.pointer, bits.shape, lib.BFLOAT16, 2, "bfloat16",
                      lambda shape: Bfloat16Array(bits.new(shape).object))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(obj, getattr(torch, "Tensor", ())):
        return _take_torch(torch, obj)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(obj, getattr(numpy, "ndarray", ())):
            return _take_numpy(numpy, obj, writable)
        if isinstance(obj, getattr(numpy, "generic", ())) and not writable:
            return _take_numpy(numpy, numpy.asarray(obj), writable)
    try:
        view = memoryview(obj)
    except TypeError:
        raise TypeError(f"a tensor of torch, an array of numpy or a buffer is wanted, not {type(obj).__name__}") from None
    return _take_buffer(obj, view, writable)


@functools.lru_cache(maxsize=256)
def _name_of(dtype):
    """numpy's, and torch's without its `torch.`; making it takes longer than a small allreduce."""
    return getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]


def _take_torch(torch, tensor):
    if tensor.device.type != "cpu":
        raise ValueError(f"the tensor is on {tensor.device}: drun takes tensors on the CPU; move it with .cpu()")
    if tensor.layout is not torch.strided:
        raise ValueError(f"the tensor is {tensor.layout}: drun takes dense ones; .to_dense() makes one, and "
                         "hvd.sparse_allreduce_async takes sparse ones")
    if not tensor.is_contiguous():
        raise ValueError("the tensor is not contiguous, so its memory can't be used as it is; .contiguous() makes a copy that is")
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError("the tensor is a lazily conjugated or negated view; .resolve_conj() or .resolve_neg() makes it real")
    name = _name_of(tensor.dtype)
    return Tensor(tensor, tensor.data_ptr(), tensor.shape, _NUMPY_TYPES.get(name), tensor.element_size(), name,
                  lambda shape: torch.empty(shape, dtype=tensor.dtype))


def _take_numpy(numpy, given, writable):
    if not given.flags.c_contiguous:
        raise ValueError(
            "the array is not contiguous (in C's order), so its memory can't be used as it is; numpy.ascontiguousarray() copies it")
    if writable and not given.flags.writeable:
        raise ValueError("the array is read-only, and the result would be stored there")
    if given.dtype.hasobject:
        raise ValueError(f"the array holds Python objects ({given.dtype}); broadcast_object and allgather_object take those")
    if not given.dtype.isnative:
        raise ValueError(f"the array has the other byte order ({given.dtype})")
    name = _name_of(given.dtype)
    return Tensor(given, given.__array_interface__["data"][0], given.shape, _NUMPY_TYPES.get(name), given.dtype.itemsize, name,
                  lambda shape: numpy.empty(shape, given.dtype))


def _take_buffer(obj, view, writable):
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous, so its memory can't be used as it is")
    if view.readonly:
        if writable:
            raise ValueError("the buffer is read-only, and the result would be stored there")
        view = memoryview(bytearray(view)).cast(view.format)  # ctypes gives no address of read-only memory
    letter = view.format.lstrip("@")
    dtype = None
    if letter in "bBiIlLqQ" and letter:
        dtype = _NUMPY_TYPES.get(("int" if letter.islower() else "uint") + str(8 * view.itemsize))
    elif letter in ("e", "f", "d"):
        dtype = _NUMPY_TYPES[f"float{8 * view.itemsize}"]
    kept = (ctypes.c_char * view.nbytes).from_buffer(view) if view.nbytes else None
    pointer = ctypes.addressof(kept) if kept is not None else None
    name = _TYPE_NAMES.get(dtype, f"'{view.format}'")
    return Tensor(obj, pointer, view.shape, dtype, view.itemsize, name, lambda shape: _new_buffer(obj, view.format, shape), kept)


def _new_buffer(obj, kind, shape):
    if isinstance(obj, (bytes, bytearray)):
        return bytearray(math.prod(shape))
    if isinstance(obj, array.array):
        return array.array(obj.typecode, bytes(math.prod(shape) * obj.itemsize))
    data = memoryview(bytearray(math.prod(shape) * memoryview(obj).itemsize))
    return data.cast(kind, shape) if len(shape) != 1 else data.cast(kind)
