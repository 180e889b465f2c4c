"""The NCCL that libdrun uses for memory of GPUs: PyTorch's, if it is installed as a wheel, so that one process has one."""
import ctypes
import functools
import os
import sys

from . import _library as lib

_NAME = "libnccl.so.2"


@functools.lru_cache(maxsize=None)
def prepare():
    """libdrun takes what the process has loaded. torch has loaded its own; without torch it is looked for where pip puts
    it, unless the user has named another one."""
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
    """The version of the NCCL that libdrun uses, as Horovod has it: 22809 is 2.28.9. 0: there is none that will do."""
    prepare()
    version, path = ctypes.c_int(), ctypes.c_char_p()
    status = lib.library().drun_nccl_version(ctypes.byref(version), ctypes.byref(path))
    return version.value if status == lib.OK else 0
