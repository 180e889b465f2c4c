"""join(): a rank that has no more data takes part in the reductions of the others with zeros.

A rank that has joined must know which collectives the others call. So if join is enabled, every collective begins with
a small allgather in which each rank announces its call."""
import collections
import ctypes
import struct
import sys

from . import _by_name
from . import _library as lib
from ._engine import call, engine
from ._groups import Group
from ._zeros import factor_of_present, reduce_zeros

# Kinds of calls that are announced; only the ranks of a job see the numbers. MEAN_OF_PRESENT: an allreduce with op=AVG
# that is divided by the number of ranks that have not joined.
JOIN, ALLREDUCE, MEAN_OF_PRESENT, BARRIER, OTHER = range(5)

enabled = False
_joined = set()  # as of the last exchange
_device = None  # torch's, of the last tensor on a GPU that was reduced
_namespace = None  # the library and the device of the last one, if DLPack shared it (https://data-apis.org/array-api)

# on_gpu: the call's memory is that of a GPU; of JOIN: this rank can make zeros there.
_Call = collections.namedtuple("_Call", "kind dtype op count on_gpu prescale postscale",
                               defaults=(0, 0, 0, False, 1.0, 1.0))
_PACKED = struct.Struct("=qqqqqdd")


def announces(group):
    return enabled and group.is_global and _by_name.order is None


def announce(group, *fields):
    """Called before each collective, in its turn, with the fields of _Call. Returns the factor of the result."""
    if not announces(group):
        return 1.0
    mine = _Call(*fields)
    said = _exchange(group, mine)
    _check_possible(said)
    return _factor(mine, said)


def note_device(tensor):
    """Called with the user's tensor on a GPU that is being reduced."""
    global _device, _namespace
    torch = sys.modules.get("torch")
    _namespace = None
    if torch is not None and isinstance(tensor, torch.Tensor):
        _device = tensor.device
    elif hasattr(tensor, "__array_namespace__") and not hasattr(tensor, "__cuda_array_interface__"):
        _namespace = (tensor.__array_namespace__(), tensor.device)


def join(device=None):
    """Announces that this rank has no more data, and waits until all ranks have joined; returns the last one to join.
    Until then this rank adds zeros to the others' allreduces (sums and averages). If their data is on GPUs, so are the
    zeros: on `device`, or, if that is None or -1, on the GPU of this rank's last such tensor, else on the current GPU of
    torch or CuPy (TensorFlow's are always on that of the last tensor). Ranks that join at different times need
    init(join=True) or calls that are ordered by name."""
    group = Group(None)
    # Here, because another thread may serve, in which another GPU is the current one.
    by_name = _by_name.order
    zeros_on_gpu = _zeros_on_gpu(None if device == -1 else device) if enabled or by_name else None
    if by_name:
        return by_name.join(zeros_on_gpu)
    return engine.run(lambda: _serve(group, zeros_on_gpu) if enabled else _meet(group))


def _meet(group):
    try:
        _exchange(group, _Call(JOIN))
    except lib.DrunError as error:
        if error.status == lib.ERROR_MISMATCH:
            error.args = (f"{error.args[0]}; ranks that join before others need init(join=True) or DRUN_JOIN=1 on all ranks",)
        raise
    forget()
    return group.size - 1


def _serve(group, zeros_on_gpu):
    mine = _Call(JOIN, on_gpu=zeros_on_gpu is not None)
    while True:
        before = set(_joined)
        said = _exchange(group, mine)
        if len(_joined) == group.size:
            last = max(_joined - before)
            forget()
            return last
        _check_possible(said)
        theirs = _theirs(said)
        if theirs.kind == BARRIER:
            call("drun_barrier", group.comm, None)
        else:
            reduce_zeros(theirs.count, theirs.dtype, theirs.op, group.comm, theirs.prescale,
                         theirs.postscale * _factor(theirs, said), zeros_on_gpu if theirs.on_gpu else None)


def forget():
    _joined.clear()


def _theirs(said):
    """The call of those that have not joined."""
    return next(one for one in said if one.kind != JOIN)


def _factor(theirs, said):
    return factor_of_present(len(said), len(_joined)) if theirs.kind == MEAN_OF_PRESENT else 1.0


def _check_possible(said):
    if not _joined:
        return
    first, theirs = min(_joined), _theirs(said)
    if theirs.kind == OTHER or (theirs.kind in (ALLREDUCE, MEAN_OF_PRESENT) and theirs.op not in (lib.SUM, lib.AVG)):
        raise lib.DrunError(f"rank {first} has joined: only barriers and allreduces that sum or average are possible now",
                            lib.ERROR_UNSUPPORTED, first)
    without = [rank for rank in sorted(_joined) if not said[rank].on_gpu]
    if theirs.on_gpu and without:
        raise lib.DrunError(f"rank {without[0]} has joined and can't make zeros in a GPU's memory, where the data of the others "
                            "is: it has imported neither torch with CUDA nor CuPy, or joined for the CPU",
                            lib.ERROR_UNSUPPORTED, without[0])


def _zeros_on_gpu(device):
    """A function that makes so many bytes of zeros on a GPU; None if there is none."""
    if device is None and _namespace is not None:
        library, there = _namespace
        return lambda n_bytes: library.zeros(n_bytes, dtype=library.uint8, device=there)
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available():
        if device is None:
            device = _device or torch.cuda.current_device()
        where = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        return (lambda n_bytes: torch.zeros(n_bytes, dtype=torch.uint8, device=where)) if where.type == "cuda" else None
    if cupy is None:
        return None
    where = cupy.cuda.Device() if device is None else cupy.cuda.Device(device)

    def zeros(n_bytes):
        with where:
            return cupy.zeros(n_bytes, "uint8")

    return zeros


def _exchange(group, mine):
    """What each rank announces."""
    given = (ctypes.c_char * _PACKED.size).from_buffer_copy(_PACKED.pack(*mine))
    got = (ctypes.c_char * (_PACKED.size * group.size))()
    call("drun_allgather", given, got, _PACKED.size, lib.UINT8, group.comm, lib.call_options("join"))
    said = [_Call(*fields) for fields in _PACKED.iter_unpack(got)]
    _joined.clear()
    _joined.update(rank for rank, one in enumerate(said) if one.kind == JOIN)
    return said
