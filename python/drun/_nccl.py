"""Chooses the NCCL that libdrun uses for GPU memory: PyTorch's, if it is installed as a wheel, so that the process
loads only one."""
import ctypes
import functools
import os
import sys

from . import _library as lib

_NAME = "libnccl.so.2"


@functools.lru_cache(maxsize=None)
def prepare():
    """Loads NCCL for libdrun, which uses one that the process has loaded. torch has loaded its own; without torch,
    searches where pip installs it, unless the user has named another one."""
    if os.environ.get("DRUN_NCCL_LIB") or _is_loaded():
        return
    for folder in sys.path:
        path = os.path.join(folder, "nvidia", "nccl", "lib", _NAME)
        if os.path.isfile(path):
            try:
                ctypes.CDLL(path)
            except OSError:
                continue
            return


def _is_loaded():
    try:
        ctypes.CDLL(_NAME, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def nccl_built():
    """The version of the NCCL that libdrun uses, in Horovod's form: 22809 is 2.28.9. 0: no usable NCCL."""
    prepare()
    version, path = ctypes.c_int(), ctypes.c_char_p()
    status = lib.library().drun_nccl_version(ctypes.byref(version), ctypes.byref(path))
    return version.value if status == lib.OK else 0
