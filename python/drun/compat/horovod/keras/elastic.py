"""States and callbacks in a job whose ranks stay the same."""
from .._keras.frontend import KerasState, run  # noqa: F401
from .callbacks import _own

CommitStateCallback = _own.CommitStateCallback
UpdateBatchStateCallback = _own.UpdateBatchStateCallback
UpdateEpochStateCallback = _own.UpdateEpochStateCallback
