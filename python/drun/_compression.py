"""How gradients travel: as 16-bit floats in place of float32 and float64, which libdrun sums in float32 and rounds once;
or only their large elements."""
import sys

from ._tensor import Bfloat16Array


class Compressor:
    """Base class, also for the user's own: compress returns the tensor to reduce and the context for decompress."""

    @staticmethod
    def compress(tensor):
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        raise NotImplementedError


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


class FP16Compressor(Compressor):
    @staticmethod
    def compress(tensor):
        if not _is_wide(tensor):
            return tensor, None
        if _is_torch(tensor):
            return tensor.half(), tensor.dtype
        with sys.modules["numpy"].errstate(over="ignore"):  # a value that is too large becomes infinity, as everywhere
            return tensor.astype("float16"), tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        if ctx is None:
            return tensor
        return tensor.to(ctx) if _is_torch(tensor) else tensor.astype(ctx)


class BF16Compressor(Compressor):
    @staticmethod
    def compress(tensor):
        if not _is_wide(tensor):
            return tensor, None
        if _is_torch(tensor):
            return tensor.bfloat16(), tensor.dtype
        return Bfloat16Array(_upper_halves(tensor)), tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        if ctx is None:
            return tensor
        if isinstance(tensor, Bfloat16Array):
            return (tensor.bits.astype("uint32") << 16).view("float32").astype(ctx)
        return tensor.to(ctx)


class SparseCompressor(Compressor):
    """Sends the elements that `_feedback.py` selects. It keeps the others for the next step, so it needs an optimizer."""

    def compress(self, tensor):
        raise ValueError(f"{self}: elements that are not sent are kept for the next step, which only DistributedOptimizer "
                         "can do")

    decompress = compress


class TopKCompressor(SparseCompressor):
    def __init__(self, fraction):
        self.fraction = float(fraction)
        if not 0 < self.fraction <= 1:
            raise ValueError(f"topk: the fraction is above 0 and at most 1, not {fraction}")

    def __str__(self):
        return f"topk={self.fraction:.9g}"


class ThresholdCompressor(SparseCompressor):
    def __init__(self, value):
        self.value = float(value)
        if not 0 <= self.value < float("inf"):
            raise ValueError(f"threshold: a number that is not negative, not {value}")

    def __str__(self):
        return f"threshold={self.value:.9g}"


class Compression:
    """`none`, `fp16` or `bf16`, for allreduce and DistributedOptimizer. For DistributedOptimizer also topk(fraction),
    which sends the elements of the largest absolute values, this fraction of each tensor; and threshold(value), which
    sends those of at least this absolute value. Both keep what they don't send for the next step."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
    topk = TopKCompressor
    threshold = ThresholdCompressor


def _is_torch(tensor):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(tensor, torch.Tensor)


def _is_wide(tensor):
    name = str(getattr(tensor, "dtype", "")).rpartition(".")[2]
    if not name:
        raise TypeError(f"compression takes tensors of torch and arrays of numpy, not {type(tensor).__name__}")
    return name in ("float32", "float64")


def _upper_halves(values):
    """Rounds to nearest, ties to even; a NaN stays a NaN."""
    numpy = sys.modules["numpy"]
    with numpy.errstate(over="ignore"):
        single = numpy.ascontiguousarray(values, "float32").reshape(values.shape)
    bits = single.view("uint32")
    rounded = (bits + (((bits >> 16) & 1) + 0x7FFF)) >> 16
    return numpy.where(numpy.isnan(single), (bits >> 16) | 0x40, rounded).astype("uint16")
