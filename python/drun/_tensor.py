"""Arguments of collectives: tensors of torch, arrays of numpy, objects with `__cuda_array_interface__` (CuPy, Numba) or
`__dlpack__`, and flat buffers (array.array, bytearray, ...). Nothing is copied: libdrun works on the memory itself.
torch, numpy and CuPy are never imported here: a program that has their tensors has imported them."""
import array
import ctypes
import functools
import math
import sys

from . import _dlpack
from . import _library as lib
from . import _nccl
from ._streams import NO_STREAM, TorchStream

_NUMPY_TYPES = {
    "int8": lib.INT8, "uint8": lib.UINT8, "int32": lib.INT32, "uint32": lib.UINT32, "int64": lib.INT64,
    "uint64": lib.UINT64, "float16": lib.FLOAT16, "bfloat16": lib.BFLOAT16, "float32": lib.FLOAT32,
    "float64": lib.FLOAT64,
}
# Libraries whose arrays must not change. DLPack can mark memory as read-only only since version 1.0.
_IMMUTABLE = {"jax", "jaxlib", "pyarrow", "tensorflow"}
_TYPE_NAMES = {number: name for name, number in _NUMPY_TYPES.items()}


class Tensor:
    """A view of the user's memory, which it keeps alive.

    dtype: a drun_dtype, or None for a type that libdrun can't compute with; its elements are moved as bytes.
    stream: the number of a GPU stream; None: host memory. caller_stream: the same stream for torch's tensors, with what
    orders other streams after it."""

    __slots__ = ("object", "pointer", "shape", "dtype", "itemsize", "type_name", "stream", "caller_stream", "_new", "_keep",
                 "_copy")

    def __init__(self, obj, pointer, shape, dtype, itemsize, type_name, new, keep=None, stream=None, copy=None,
                 caller_stream=NO_STREAM):
        self.object = obj
        self.pointer = pointer
        self.shape = tuple(shape)
        self.dtype = dtype
        self.itemsize = itemsize
        self.type_name = type_name
        self.stream = stream
        self.caller_stream = caller_stream
        self._new = new
        self._keep = keep
        self._copy = copy  # copies memory that memmove can't reach

    @property
    def count(self):
        return math.prod(self.shape)

    @property
    def n_bytes(self):
        return self.count * self.itemsize

    @property
    def rows(self):
        """The first dimension; a scalar is one row."""
        return self.shape[0] if self.shape else 1

    @property
    def row_shape(self):
        return self.shape[1:]

    @property
    def row_count(self):
        return math.prod(self.row_shape)

    def new(self, shape=None):
        """A tensor of the same kind and type, uninitialized, for calls on the same stream."""
        with self.caller_stream.current():
            return take(self._new(self.shape if shape is None else tuple(shape)), writable=True)

    def new_rows(self, rows):
        return self.new((rows,) + self.row_shape)

    def copy(self):
        if self._copy is not None:
            with self.caller_stream.current():
                return take(self._copy())
        result = self.new()
        ctypes.memmove(result.pointer, self.pointer, self.n_bytes)
        return result

    def moved_as(self):
        """(type, elements of it per element) for collectives that only move data."""
        return (lib.UINT8, self.itemsize) if self.dtype is None else (self.dtype, 1)

    def where(self):
        """For calls that are ordered by name: over NCCL a rank would wait for ever for one that gives the host's memory."""
        return "" if self.stream is None else ", on a GPU"

    def check_reducible(self, what):
        if self.dtype is None:
            known = ", ".join(_TYPE_NAMES[number] for number in sorted(_TYPE_NAMES))
            raise ValueError(f"{what} can't compute with {self.type_name}; it can with {known}")


class Bfloat16Array:
    """bfloat16 for numpy, which has no such type: the upper halves of float32 values, in an array of uint16."""

    def __init__(self, bits):
        self.bits = bits


def take(obj, writable=False, name=None):
    """The Tensor of the user's object. `writable`: the collective stores its result there. `name`: the call's, for
    errors."""
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
    if hasattr(obj, "__cuda_array_interface__"):
        return _take_cuda(obj, obj.__cuda_array_interface__, writable)
    if hasattr(obj, "__dlpack__"):
        return _take_dlpack(obj, writable)
    try:
        view = memoryview(obj)
    except TypeError:
        raise TypeError(f"a tensor of torch, an array of numpy or CuPy, what has __dlpack__, or a buffer is wanted, not {type(obj).__name__}") from None
    return _take_buffer(obj, view, writable)


@functools.lru_cache(maxsize=256)
def _name_of(dtype):
    """numpy's name, or torch's without its `torch.`; computing it takes longer than a small allreduce."""
    return getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]


def _take_torch(torch, tensor):
    kind = tensor.device.type
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"the tensor is on {tensor.device}: drun takes those on the CPU and on NVIDIA's GPUs; .cpu() moves it")
    if tensor.layout is not torch.strided:
        raise ValueError(f"the tensor is {tensor.layout}: drun takes dense ones; .to_dense() makes one, and "
                         "hvd.sparse_allreduce_async takes sparse ones")
    if not tensor.is_contiguous():
        raise ValueError("the tensor is not contiguous, so its memory can't be used as it is; .contiguous() makes a copy that is")
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError("the tensor is a lazily conjugated or negated view; .resolve_conj() or .resolve_neg() makes it real")
    name = _name_of(tensor.dtype)
    number, stream, copy = None, NO_STREAM, None
    if kind == "cuda":
        _nccl.prepare()
        stream = TorchStream(torch, tensor.device)
        number, copy = stream.number, lambda: tensor.detach().clone()
    return Tensor(tensor, tensor.data_ptr(), tensor.shape, _NUMPY_TYPES.get(name), tensor.element_size(), name,
                  lambda shape: torch.empty(shape, dtype=tensor.dtype, device=tensor.device), stream=number, copy=copy,
                  caller_stream=stream)


def _not_contiguous(remedy):
    return ValueError(f"the array is not contiguous (in C's order), so its memory can't be used as it is; {remedy}")


def _read_only():
    return ValueError("the array is read-only, and the result would be stored there")


def _take_numpy(numpy, given, writable):
    if not given.flags.c_contiguous:
        raise _not_contiguous("numpy.ascontiguousarray() copies it")
    if writable and not given.flags.writeable:
        raise _read_only()
    if given.dtype.hasobject:
        raise ValueError(f"the array holds Python objects ({given.dtype}); broadcast_object and allgather_object take those")
    if not given.dtype.isnative:
        raise ValueError(f"the array has the other byte order ({given.dtype})")
    name = _name_of(given.dtype)
    return Tensor(given, given.__array_interface__["data"][0], given.shape, _NUMPY_TYPES.get(name), given.dtype.itemsize, name,
                  lambda shape: numpy.empty(shape, given.dtype))


def _take_cuda(obj, interface, writable):
    """https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, version 3."""
    pointer, read_only = interface["data"]
    if writable and read_only:
        raise _read_only()
    if interface.get("mask") is not None:
        raise ValueError("the array has a mask")
    shape, order, letter, itemsize = interface["shape"], *_typestr(interface["typestr"])
    if order not in "|=" + ("<" if sys.byteorder == "little" else ">"):
        raise ValueError(f"the array has the other byte order ({interface['typestr']})")
    if not _is_contiguous(shape, interface.get("strides"), itemsize):
        raise _not_contiguous("cupy.ascontiguousarray() copies it")
    kind = {"i": "int", "u": "uint", "f": "float", "b": "bool", "c": "complex"}.get(letter)
    name = "bool" if kind == "bool" else f"{kind}{8 * itemsize}" if kind else interface["typestr"]
    _nccl.prepare()
    return Tensor(obj, pointer or None, shape, _NUMPY_TYPES.get(name), itemsize, name, lambda wanted: _new_cuda(obj, wanted),
                  stream=_stream_of(obj, interface), copy=lambda: _copy_cuda(obj))


def _take_dlpack(obj, writable):
    """GPU memory is ordered by the legacy default stream, which drun asks the producer to use."""
    shared = _dlpack.Export(obj)
    if writable and (shared.read_only or _is_immutable(obj)):
        raise _read_only()
    if writable and shared.is_copy:
        raise ValueError(f"the {type(obj).__name__} gave a copy of its memory, and the result would be stored there")
    if not _is_contiguous(shared.shape, shared.strides, 1):
        raise _not_contiguous("a copy is")
    if shared.is_device:
        _nccl.prepare()
    return Tensor(obj, shared.pointer, shared.shape, _NUMPY_TYPES.get(shared.type_name), shared.itemsize, shared.type_name,
                  lambda shape: _new_of_namespace(obj, shape), shared.keep, stream=0 if shared.is_device else None,
                  copy=(lambda: _namespace_of(obj).asarray(obj, copy=True)) if shared.is_device else None)


def _namespace_of(obj):
    """The producer's own library, by https://data-apis.org/array-api."""
    if not hasattr(obj, "__array_namespace__"):
        raise _not_made(obj)
    return obj.__array_namespace__()


def _new_of_namespace(obj, shape):
    return _namespace_of(obj).empty(shape, dtype=obj.dtype, device=obj.device)


def _typestr(text):
    return text[0], text[1], int(text[2:])


def _is_contiguous(shape, strides, step):
    """True if in C order. `strides`: None means C order; `step`: stride of the last dimension."""
    if strides is None or math.prod(shape) == 0:
        return True
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n > 1 and stride != step:
            return False
        step *= n
    return True


def _stream_of(obj, interface):
    """The stream that the array names; else CuPy's current one, or the legacy default stream."""
    stream = interface.get("stream")
    cupy = sys.modules.get("cupy")
    if stream is None and cupy is not None and isinstance(obj, cupy.ndarray):
        stream = cupy.cuda.get_current_stream().ptr
    return stream or 0


def _new_cuda(obj, shape):
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(obj, cupy.ndarray):
        return cupy.empty(shape, obj.dtype)
    raise _not_made(obj)


def _is_immutable(obj):
    return str(type(obj).__module__).partition(".")[0] in _IMMUTABLE


def _not_made(obj):
    if _is_immutable(obj):
        return ValueError(f"drun can't make a new {type(obj).__name__} for the result, and this one must not change: pass an "
                          "array of numpy")
    return ValueError(f"drun can't make a new {type(obj).__name__} for the result: use the call in place (allreduce_, broadcast_)")


def _copy_cuda(obj):
    if not hasattr(obj, "copy"):
        raise _not_made(obj)
    return obj.copy()


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
