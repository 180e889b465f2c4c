from drun.torch import SyncBatchNorm  # noqa: F401
