"""libdrun's C ABI by ctypes: finds the library, declares its functions, raises its failures as exceptions."""
import ctypes
import functools
import glob
import os

# drun_status
OK = 0
ERROR_ARGUMENT = -1
ERROR_STATE = -2
ERROR_UNSUPPORTED = -3
ERROR_TIMEOUT = -4
ERROR_PEER = -5
ERROR_MISMATCH = -6
ERROR_ABORTED = -7
ERROR_CONNECT = -8
ERROR_TRUNCATED = -9
ERROR_SYSTEM = -10
ERROR_INTERNAL = -11
# The codes at the end of the texts, from ERROR_ARGUMENT on.
CODES = ("argument", "state", "unsupported", "call-timeout", "peer", "mismatch", "aborted", "not-joined", "truncated",
         "system", "internal")

# drun_dtype
INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = range(10)
FLOATS = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
ITEMSIZE = (1, 1, 4, 4, 8, 8, 2, 2, 4, 8)

# drun_op
SUM, PROD, MIN, MAX, AVG, ADASUM = range(6)
OP_NAMES = ("sum", "product", "min", "max", "average", "adasum")

COMM_WORLD = None  # (drun_comm)0


class DrunError(RuntimeError):
    """A failure of libdrun. `status` is one of drun.ERROR_*; `rank` is the faulty rank, -1 if none or unknown, and
    `host` its host. The text names the operation and the ranks, and ends with a code: docs/troubleshooting.md."""

    def __init__(self, text, status=ERROR_INTERNAL, rank=-1, host=""):
        code = f" [{CODES[ERROR_ARGUMENT - status] if ERROR_INTERNAL <= status <= ERROR_ARGUMENT else CODES[-1]}]"
        super().__init__(text if text.endswith(code) else text + code)
        self.status = status
        self.rank = rank
        self.host = host

    def __reduce__(self):
        return (type(self), (self.args[0], self.status, self.rank, self.host))


DrunError.__module__ = "drun"  # users catch drun.DrunError


class InitOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("init_timeout_ms", ctypes.c_int64),
        ("op_timeout_ms", ctypes.c_int64),
    ]


class CallOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("timeout_ms", ctypes.c_int64),
        ("prescale", ctypes.c_double),
        ("postscale", ctypes.c_double),
        ("request", ctypes.POINTER(ctypes.c_void_p)),
        ("memory", ctypes.c_int),
        ("stream", ctypes.c_void_p),
    ]


MEMORY_DEVICE = 2  # a drun_memory


class Requests(list):
    """Handles of asynchronous calls that begin together."""

    on_gpu = False


def call_options(name=None, prescale=1.0, postscale=1.0, requests=None, stream=None):
    """None means the default. requests: Requests, which receives the call's drun_request and makes it asynchronous.
    stream: of the GPU that holds the call's memory."""
    if name is None and prescale == 1.0 and postscale == 1.0 and requests is None and stream is None:
        return None
    options = CallOptions(ctypes.sizeof(CallOptions), None if name is None else str(name).encode(), 0, prescale, postscale)
    if requests is not None:
        requests.append(ctypes.c_void_p())
        options.request = ctypes.pointer(requests[-1])
        requests.on_gpu = requests.on_gpu or stream is not None
    if stream is not None:
        options.memory, options.stream = MEMORY_DEVICE, stream
    return options


_int = ctypes.c_int
_size = ctypes.c_size_t
_pointer = ctypes.c_void_p
_text = ctypes.c_char_p
_counts = ctypes.POINTER(ctypes.c_size_t)
_options = ctypes.POINTER(CallOptions)
_handle = ctypes.POINTER(ctypes.c_void_p)

# The enums are ints.
_FUNCTIONS = {
    "drun_init": (_int, [ctypes.POINTER(InitOptions)]),
    "drun_finalize": (_int, []),
    "drun_is_initialized": (_int, []),
    "drun_rank": (_int, []),
    "drun_size": (_int, []),
    "drun_local_rank": (_int, []),
    "drun_local_size": (_int, []),
    "drun_cross_rank": (_int, []),
    "drun_cross_size": (_int, []),
    "drun_is_homogeneous": (_int, []),
    "drun_allreduce": (_int, [_pointer, _pointer, _size, _int, _int, _pointer, _options]),
    "drun_broadcast": (_int, [_pointer, _size, _int, _int, _pointer, _options]),
    "drun_reduce": (_int, [_pointer, _pointer, _size, _int, _int, _int, _pointer, _options]),
    "drun_reduce_scatter": (_int, [_pointer, _pointer, _size, _int, _int, _pointer, _options]),
    "drun_allgather": (_int, [_pointer, _pointer, _size, _int, _pointer, _options]),
    "drun_allgatherv": (_int, [_pointer, _size, _pointer, _counts, _counts, _int, _pointer, _options]),
    "drun_gather": (_int, [_pointer, _pointer, _size, _int, _int, _pointer, _options]),
    "drun_scatter": (_int, [_pointer, _pointer, _size, _int, _int, _pointer, _options]),
    "drun_alltoall": (_int, [_pointer, _pointer, _size, _int, _pointer, _options]),
    "drun_alltoallv": (_int, [_pointer, _counts, _counts, _pointer, _counts, _counts, _int, _pointer, _options]),
    "drun_send": (_int, [_pointer, _size, _int, _int, _pointer, _options]),
    "drun_recv": (_int, [_pointer, _size, _int, _int, _pointer, _options]),
    "drun_barrier": (_int, [_pointer, _options]),
    "drun_comm_split": (_int, [_pointer, _int, _int, _handle, _options]),
    "drun_comm_free": (_int, [_handle]),
    "drun_comm_rank": (_int, [_pointer]),
    "drun_comm_size": (_int, [_pointer]),
    "drun_wait": (_int, [_handle]),
    "drun_test": (_int, [_handle, ctypes.POINTER(_int)]),
    "drun_synchronize": (_int, [_pointer, ctypes.c_int64]),
    "drun_group_start": (_int, []),
    "drun_group_end": (_int, []),
    "drun_group_cancel": (_int, []),
    "drun_kv_set": (_int, [_text, _pointer, _size]),
    "drun_kv_get": (_int, [_text, _pointer, ctypes.POINTER(_size), ctypes.c_int64]),
    "drun_kv_delete": (_int, [_text, ctypes.POINTER(_int)]),
    "drun_abort": (_int, [_text]),
    "drun_last_error": (_text, []),
    "drun_last_error_rank": (_int, []),
    "drun_last_error_host": (_text, []),
    "drun_version": (_text, []),
    "drun_nccl_version": (_int, [ctypes.POINTER(_int), ctypes.POINTER(_text)]),
}

def _candidates():
    """Paths in the order in which they are tried. A path from the user is the only one."""
    given = os.environ.get("DRUN_LIBRARY")
    if given:
        return [given]
    here = os.path.dirname(os.path.abspath(__file__))
    found = sorted(glob.glob(os.path.join(glob.escape(here), "lib", "libdrun.so*")))
    tree = os.path.dirname(os.path.dirname(here))
    # Installed as PREFIX/lib/python/drun: the library of the same prefix, which may be anywhere.
    if os.path.basename(os.path.dirname(here)) == "python":
        found += sorted(path for folder in ("", "*-linux-gnu", "../lib64")
                        for path in glob.glob(os.path.join(glob.escape(tree), folder, "libdrun.so.0")))
    if os.path.exists(os.path.join(tree, "CMakePresets.json")):  # not installed: the tree's build
        found += glob.glob(os.path.join(tree, "build", "release", "lib", "libdrun.so.0"))
    return found + ["libdrun.so.0", "libdrun.so"]


@functools.lru_cache(maxsize=None)
def library():
    """Loads the library on first use."""
    failures = []
    for path in _candidates():
        try:
            loaded = ctypes.CDLL(path)  # releases the interpreter's lock during calls
        except OSError as error:
            failures.append(str(error))
            continue
        _declare(loaded, path)
        return loaded
    raise DrunError(
        "libdrun was not found: " + "; ".join(failures) + " (DRUN_LIBRARY=/path/to/libdrun.so names it)", ERROR_SYSTEM)


def _declare(loaded, path):
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise DrunError(f"{path} has no {name}: it is older than this Python package", ERROR_SYSTEM) from None
        function.restype = result
        function.argtypes = arguments


def check(status):
    if status == OK:
        return
    lib = library()
    raise DrunError(lib.drun_last_error().decode(errors="replace"), status, lib.drun_last_error_rank(),
                    lib.drun_last_error_host().decode(errors="replace"))


def size_array(values):
    return (ctypes.c_size_t * len(values))(*values)
