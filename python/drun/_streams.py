"""Streams of GPUs: the end of what a program has enqueued, and what became of drun's calls in it."""
import sys

from . import _library as lib


def synchronize_stream(stream=None, timeout=None):
    """Until a GPU's stream has done all that it got, as torch.cuda.synchronize(); but a call in it that has failed, or that
    another rank has not come to by its deadline, is raised, with the rank at fault, and so is a failure of the job.

    stream: torch's, CuPy's, or the number of a cudaStream_t; None: torch's or CuPy's current one, or the legacy default one.
    timeout: seconds, then DrunError with ERROR_TIMEOUT, which is no failure of the job; None: DRUN_OP_TIMEOUT."""
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
