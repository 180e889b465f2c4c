"""Waits for GPU streams, and reports failures of drun's calls in them."""
import sys

from . import _library as lib


def synchronize_stream(stream=None, timeout=None):
    """Waits until a GPU's stream has done all its work, like torch.cuda.synchronize(). Raises the error, with the
    faulty rank, if a call in the stream has failed or another rank has not joined it by its deadline; raises a failure
    of the job too.

    stream: torch's, CuPy's, or the number of a cudaStream_t; None: torch's or CuPy's current one, or the legacy default
    one. timeout: seconds, then DrunError with ERROR_TIMEOUT, which is not a failure of the job; None:
    DRUN_OP_TIMEOUT."""
    milliseconds = 0 if timeout is None else max(1, int(timeout * 1000))
    lib.check(lib.library().drun_synchronize(_number_of(_current() if stream is None else stream), milliseconds))


def _current():
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_initialized():
        return torch.cuda.current_stream()
    return cupy.cuda.get_current_stream() if cupy is not None else 0


def _number_of(stream):
    for attribute in ("cuda_stream", "ptr"):
        number = getattr(stream, attribute, None)
        if number is not None:
            return number
    return stream
