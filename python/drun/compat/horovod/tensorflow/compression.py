"""Compression of TensorFlow's tensors before they are reduced."""
import tensorflow as tf

from drun._compression import Compressor, NoneCompressor


class _Half(Compressor):
    dtype = None

    @classmethod
    def compress(cls, tensor):
        """Integers stay as they are."""
        return (tf.cast(tensor, cls.dtype), tensor.dtype) if tensor.dtype.is_floating else (tensor, None)

    @staticmethod
    def decompress(tensor, ctx):
        return tensor if ctx is None else tf.cast(tensor, ctx)


class FP16Compressor(_Half):
    dtype = tf.float16


class BF16Compressor(_Half):
    dtype = tf.bfloat16


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
