"""GPU streams: the one that a call is ordered on, and waits that report failures of drun's calls."""
import contextlib
import sys

from . import _library as lib


class TorchStream:
    """torch's current stream of a GPU when a call is made. The call is ordered on it."""

    def __init__(self, torch, device):
        self._torch = torch
        self._device = device
        self._stream = torch.cuda.current_stream(device)

    @property
    def number(self):
        return self._stream.cuda_stream

    def current(self):
        """A context in which it is the current stream, in any thread: memory that is allocated there belongs to it."""
        return self._torch.cuda.stream(self._stream)

    def order_current(self):
        """Makes the stream that is current now wait for what this one has been given."""
        now = self._torch.cuda.current_stream(self._device)
        if now != self._stream:
            now.wait_stream(self._stream)


class NoStream:
    """For memory whose library says itself on which stream it is used, and for memory of the host."""

    current = staticmethod(contextlib.nullcontext)

    @staticmethod
    def order_current():
        pass


NO_STREAM = NoStream()


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
