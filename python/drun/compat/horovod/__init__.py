"""Horovod's names for scripts that were written for Horovod, over drun: docs/migrating.md.

Workers of `drun --compat horovod` find this package first. It is never installed under its own name, so that no other
library takes it for Horovod. `__version__` is the version of Horovod whose interface it has."""
import os
import sys

__version__ = "0.28.1"

# drun itself lies beside this package, and is not in the search path if it was not installed.
_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
try:
    import drun
except ImportError:
    sys.path.append(_HOME)
    import drun
if os.path.dirname(os.path.dirname(os.path.realpath(drun.__file__))) != os.path.realpath(_HOME):
    raise ImportError(f"horovod of {os.path.dirname(os.path.abspath(__file__))} belongs to drun's package beside it, but "
                      f"{os.path.dirname(drun.__file__)} was imported: set PYTHONPATH so that they are of one installation")


def run(*args, **kwargs):
    """horovod.run: see horovod.runner."""
    from .runner import run as run_job

    return run_job(*args, **kwargs)
