"""allgather, broadcast, alltoall and barrier."""
import ctypes
import sys
import zlib

from . import _join
from . import _library as lib
from ._collective import Collective, Steps
from ._engine import CombinedHandle, call
from ._groups import Group
from ._order_table import BARRIER
from ._tensor import take
from ._wants_gradient import autograd_for


class _Allgather(Collective):
    kind = "allgather"

    def __init__(self, tensor, name, process_set):
        group = Group(process_set)
        self._source = take(tensor)
        super().__init__(group, name, (self._source.caller_stream,))
        self.rows = None  # of each rank, after the work

    def work(self, requests=None):
        _join.announce(self.group, _join.OTHER)
        source = self._source
        rows = self.rows = _exchange_rows(self.group, source, self.name)
        target = source.new_rows(sum(rows))
        dtype, factor = source.moved_as()
        options = lib.call_options(self.name, stream=source.stream)
        if all(n == source.rows for n in rows):
            call("drun_allgather", source.pointer, target.pointer, source.count * factor, dtype, self.group.comm, options)
        else:
            row = source.row_count * factor
            call("drun_allgatherv", source.pointer, source.count * factor, target.pointer,
                 lib.size_array([n * row for n in rows]), None, dtype, self.group.comm, options)
        return target.object

    def fields(self):
        return [f"rows of {list(self._source.row_shape)} {self._source.type_name}{self._source.where()}"]


def _exchange_rows(group, source, name):
    """Returns the first dimension of every rank's tensor; raises if anything else differs."""
    look = zlib.crc32(repr((source.row_shape, source.type_name)).encode())
    mine = (ctypes.c_int64 * 2)(source.rows, look)
    said = (ctypes.c_int64 * (2 * group.size))()
    call("drun_allgather", mine, said, 2, lib.INT64, group.comm, lib.call_options(name))
    for rank in range(group.size):
        if said[2 * rank + 1] != said[1]:
            raise lib.DrunError(
                f"allgather: {group.name_of(rank)} and {group.name_of(0)} gave tensors that differ in type or in more than "
                f"the first dimension; here it is {source.type_name} {list(source.shape)}", lib.ERROR_MISMATCH,
                group.job_rank(rank))
    return said[::2]


def allgather(tensor, name=None, process_set=None):
    """The tensors of all ranks, concatenated along the first dimension, which may differ between ranks."""
    autograd = autograd_for(tensor)
    if autograd:
        return autograd.allgather(tensor, name, process_set)
    return _Allgather(tensor, name, process_set).run()


def allgather_async(tensor, name=None, process_set=None):
    return _Allgather(tensor, name, process_set).begin()


def allgather_parts_async(tensor, name=None, process_set=None):
    """The same for torch; the result is the part of each rank."""
    one = _Allgather(tensor, name, process_set)
    return CombinedHandle([one.begin()], lambda gathered: gathered.split(one.rows))


def grouped_allgather(tensors, name=None, process_set=None):
    return [allgather(tensor, None if name is None else f"{name}.{number}", process_set)
            for number, tensor in enumerate(tensors)]


def grouped_allgather_async(tensors, name=None, process_set=None):
    return CombinedHandle([allgather_async(tensor, None if name is None else f"{name}.{number}", process_set)
                           for number, tensor in enumerate(tensors)])


class _Broadcast(Collective):
    kind = "broadcast"
    is_one_call = True

    def __init__(self, tensor, in_place, root_rank, name, process_set):
        group = Group(process_set)
        self._root = group.root(root_rank)
        self._source = take(tensor, in_place, name)
        self._target = self._source if in_place else None
        super().__init__(group, name, (self._source.caller_stream,))

    def work(self, requests=None):
        _join.announce(self.group, _join.OTHER)
        if self._target is None:
            self._target = self._source.copy() if self.group.rank == self._root else self._source.new()
        dtype, factor = self._target.moved_as()
        call("drun_broadcast", self._target.pointer, self._target.count * factor, dtype, self._root, self.group.comm,
             lib.call_options(self.name, requests=requests, stream=self._target.stream))
        return self._target.object

    def fields(self):
        root = self.group.job_rank(self._root)
        return [f"{self._source.type_name} {list(self._source.shape)} of root {root}{self._source.where()}"]


def broadcast(tensor, root_rank, name=None, process_set=None):
    """root_rank's tensor, as a new tensor."""
    autograd = autograd_for(tensor)
    if autograd:
        return autograd.broadcast(tensor, root_rank, name, process_set)
    return _Broadcast(tensor, False, root_rank, name, process_set).run()


def broadcast_(tensor, root_rank, name=None, process_set=None):
    """Broadcasts in place."""
    return _Broadcast(tensor, True, root_rank, name, process_set).run()


def broadcast_async(tensor, root_rank, name=None, process_set=None):
    return _Broadcast(tensor, False, root_rank, name, process_set).begin()


def broadcast_async_(tensor, root_rank, name=None, process_set=None):
    return _Broadcast(tensor, True, root_rank, name, process_set).begin()


class _Alltoall(Collective):
    kind = "alltoall"

    def __init__(self, tensor, splits, name, process_set):
        group = Group(process_set)
        self._source = take(tensor)
        super().__init__(group, name, (self._source.caller_stream,))
        self._has_splits = splits is not None
        size, rows = self.group.size, self._source.rows
        if not self._source.shape:
            raise ValueError("alltoall deals out the first dimension, and one number alone has none")
        if splits is None:
            each, more = divmod(rows, size)
            if more:
                raise ValueError(f"alltoall without splits: {rows} rows can't be divided among {size} ranks")
            self._splits = [each] * size
        else:
            self._splits = [int(n) for n in (splits.tolist() if hasattr(splits, "tolist") else splits)]
            if len(self._splits) != size or min(self._splits) < 0 or sum(self._splits) != rows:
                raise ValueError(f"alltoall: splits {self._splits} must have one number per rank ({size}), which add up to "
                                 f"the {rows} rows of the tensor")

    def work(self, requests=None):
        _join.announce(self.group, _join.OTHER)
        source, size, comm = self._source, self.group.size, self.group.comm
        given = (ctypes.c_int64 * size)(*self._splits)
        got = (ctypes.c_int64 * size)()
        call("drun_alltoall", given, got, 1, lib.INT64, comm, lib.call_options(self.name))
        target = source.new_rows(sum(got))
        dtype, factor = source.moved_as()
        row = source.row_count * factor
        call("drun_alltoallv", source.pointer, lib.size_array([n * row for n in self._splits]), None, target.pointer,
             lib.size_array([n * row for n in got]), None, dtype, comm, lib.call_options(self.name, stream=source.stream))
        return (target.object, _as_given(source, list(got))) if self._has_splits else target.object

    def fields(self):
        return [f"rows of {list(self._source.row_shape)} {self._source.type_name}{self._source.where()}"]


def _as_given(source, numbers):
    """The received splits, as a tensor if the splits were given as one."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(source.object, torch.Tensor):
        return torch.tensor(numbers, dtype=torch.int32)
    if numpy is not None and isinstance(source.object, numpy.ndarray):
        return numpy.array(numbers, "int32")
    return numbers


def _beside_given(splits):
    """A function that moves the received splits to the device of the given ones, as work of the current stream; None if
    they are there."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(splits, torch.Tensor) or splits.device.type == "cpu":
        return None

    def move(result):
        rows, received = result
        if not isinstance(received, torch.Tensor):  # as the data is none
            return result
        if splits.device.type == "cuda":
            received = received.pin_memory()  # so that the host need not wait for the stream
        return rows, received.to(splits.device, non_blocking=True)

    return move


def alltoall(tensor, splits=None, name=None, process_set=None):
    """Sends splits[i] rows of the first dimension to rank i; without splits every rank gets the same number. The
    received rows are in the order of ranks. With splits returns (received rows, number of rows from each rank)."""
    autograd = autograd_for(tensor)
    if autograd:
        return autograd.alltoall(tensor, splits, name, process_set)
    result = _Alltoall(tensor, splits, name, process_set).run()
    move = _beside_given(splits)
    return move(result) if move else result


def alltoall_async(tensor, splits=None, name=None, process_set=None):
    handle = _Alltoall(tensor, splits, name, process_set).begin()
    move = _beside_given(splits)
    return CombinedHandle([handle], move) if move else handle


def barrier(process_set=None):
    """Returns when all ranks have called it."""
    group = Group(process_set)

    def work():
        _join.announce(group, _join.BARRIER)
        call("drun_barrier", group.comm, None)

    Steps("barrier", group, None, work, [BARRIER]).run()
