"""The part of a rank that has joined in the allreduces of others: zeros."""
from . import _library as lib
from ._engine import call
from ._streams import NO_STREAM, synchronize_stream
from ._tensor import take


def reduce_zeros(count, dtype, op, comm, prescale, postscale, on_gpu):
    """Called in its turn. on_gpu: a function that makes so many bytes of zeros on a GPU; None: zeros of the host."""
    n_bytes = count * lib.ITEMSIZE[dtype]
    zeros = take(bytearray(n_bytes) if on_gpu is None else on_gpu(n_bytes), writable=True)
    call("drun_allreduce", zeros.pointer, zeros.pointer, count, dtype, op, comm,
         lib.call_options(None, prescale, postscale, stream=zeros.stream))
    if zeros.stream == 0 and zeros.caller_stream is NO_STREAM:
        synchronize_stream(0)  # its library may use the memory again on another stream


def factor_of_present(size, n_joined):
    """Makes an average over all ranks one over those that have not joined."""
    return size / (size - n_joined)
