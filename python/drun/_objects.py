"""Python objects: pickled and sent as bytes."""
import ctypes
import pickle

from . import _join
from . import _library as lib
from ._collective import Steps
from ._data_movement import broadcast_
from ._engine import call
from ._groups import Group


def _pickled(obj):
    """(bytes, None) or (None, error)."""
    try:
        return pickle.dumps(obj, pickle.HIGHEST_PROTOCOL), None
    except Exception as error:  # the object's own code may raise anything
        try:
            import cloudpickle  # pickles lambdas and names of __main__; pickle.loads reads its output

            return cloudpickle.dumps(obj), None
        except Exception:
            return None, error


def broadcast_object(obj=None, root_rank=0, name=None, process_set=None):
    """root_rank's object, on every rank."""
    group = Group(process_set)
    root = group.root(root_rank)
    mine, failure = _pickled(obj) if group.rank == root else (None, None)

    def work():
        _join.announce(group, _join.OTHER)
        # A root that has nothing to send announces it, because the others wait for it.
        size = (ctypes.c_int64 * 1)(-1 if mine is None else len(mine))
        options = lib.call_options(name)
        call("drun_broadcast", size, 1, lib.INT64, root, group.comm, options)
        if failure is not None:
            raise failure
        if size[0] < 0:
            raise lib.DrunError(f"broadcast_object: rank {root_rank} could not pickle its object", lib.ERROR_ARGUMENT, root_rank)
        data = (ctypes.c_char * size[0])()
        if mine is not None:
            data[:] = mine
        call("drun_broadcast", data, size[0], lib.UINT8, root, group.comm, options)
        return data.raw

    data = Steps("broadcast_object", group, name, work, [f"an object of root {root_rank}"]).run()
    return obj if group.rank == root else pickle.loads(data)


def broadcast_object_fn(root_rank=0, name=None, process_set=None):
    """Returns broadcast_object as a function of the object alone."""
    return lambda obj=None: broadcast_object(obj, root_rank, name, process_set)


def allgather_object(obj, name=None, process_set=None):
    """The objects of all ranks, in a list."""
    group = Group(process_set)
    mine, failure = _pickled(obj)

    def work():
        _join.announce(group, _join.OTHER)
        size = (ctypes.c_int64 * 1)(-1 if mine is None else len(mine))
        sizes = (ctypes.c_int64 * group.size)()
        options = lib.call_options(name)
        call("drun_allgather", size, sizes, 1, lib.INT64, group.comm, options)
        if failure is not None:
            raise failure
        for rank, n_bytes in enumerate(sizes):
            if n_bytes < 0:
                raise lib.DrunError(f"allgather_object: {group.name_of(rank)} could not pickle its object",
                                    lib.ERROR_ARGUMENT, group.job_rank(rank))
        data = (ctypes.c_char * sum(sizes))()
        call("drun_allgatherv", (ctypes.c_char * len(mine)).from_buffer_copy(mine), len(mine), data, lib.size_array(sizes),
             None, lib.UINT8, group.comm, options)
        return list(sizes), data.raw

    sizes, data = Steps("allgather_object", group, name, work).run()
    result, at = [], 0
    for n_bytes in sizes:
        result.append(pickle.loads(data[at:at + n_bytes]))
        at += n_bytes
    return result


def broadcast_parameters(params, root_rank=0, process_set=None):
    """In place: a model's state_dict(), named_parameters() or parameters(), a dict or list of arrays. Values in a dict
    that are not tensors are left alone."""
    if hasattr(params, "items"):
        named = sorted(params.items(), key=lambda item: str(item[0]))
    else:
        named = [one if isinstance(one, tuple) else (None, one) for one in params]
    for name, tensor in named:
        if tensor is None or isinstance(tensor, (bool, int, float, str)):
            continue
        is_contiguous = getattr(tensor, "is_contiguous", None)
        if is_contiguous is None or is_contiguous():
            broadcast_(tensor, root_rank, name, process_set)
        else:  # torch with another order of the dimensions: channels_last
            copy = tensor.detach().contiguous()
            broadcast_(copy, root_rank, name, process_set)
            tensor.detach().copy_(copy)
