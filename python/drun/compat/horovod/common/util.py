"""Horovod's questions about its own build."""
import contextlib
import os
import re

from . import basics


def extension_available(ext_base_name, verbose=False):
    """True for the frontends that are there."""
    del verbose
    return ext_base_name in ("torch", "tensorflow")


def check_extension(ext_name, ext_env_var=None, pkg_path=None, *args):
    """Raises ImportError for a frontend that is not there."""
    del ext_env_var, pkg_path, args
    if not extension_available(ext_name.rpartition(".")[2]):
        raise ImportError(f"drun has no {ext_name}")


def gpu_available(ext_base_name, verbose=False):
    del verbose
    if ext_base_name == "tensorflow":
        import tensorflow

        return bool(tensorflow.config.list_physical_devices("GPU"))
    import torch

    return torch.cuda.is_available()


def mpi_built(verbose=False):
    return basics.mpi_built()


def gloo_built(verbose=False):
    return basics.gloo_built()


def nccl_built(verbose=False):
    return bool(basics.nccl_built())


def ddl_built(verbose=False):
    return False


def ccl_built(verbose=False):
    return False


@contextlib.contextmanager
def env(**kwargs):
    """The process's environment with other values (None: without the variable) in the block."""
    before = {name: os.environ.get(name) for name in kwargs}

    def set_all(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    set_all(kwargs)
    try:
        yield
    finally:
        set_all(before)


def num_rank_is_power_2(num_rank):
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(values, n):
    """n lists of nearly the same length."""
    each, more = divmod(len(values), n)
    ends = [(number + 1) * each + min(number + 1, more) for number in range(n)]
    return [values[begin:end] for begin, end in zip([0] + ends, ends)]


def is_version_greater_equal_than(ver, target):
    """True if the version `ver` is `target` or newer. Both as 2.6.0."""
    if not isinstance(ver, str) or not isinstance(target, str):
        raise ValueError(f"versions are strings, not {ver!r} and {target!r}")
    if target.count(".") < 2:
        raise ValueError(f"a version has three numbers, and {target!r} has not")
    return _version_numbers(ver) >= _version_numbers(target)


def _version_numbers(version):
    return [int(re.match(r"\d+", part).group()) for part in version.split(".")[:3]]


def is_iterable(value):
    return hasattr(value, "__iter__")
