"""Horovod's classes for compression, and drun's."""
from drun._compression import Compression, Compressor, FP16Compressor, NoneCompressor  # noqa: F401
