"""allreduce, grouped_allreduce, reducescatter: in place, into a new tensor, asynchronous."""
import ctypes

from . import _join
from . import _library as lib
from ._compression import Compression
from ._engine import CombinedHandle, call
from ._collective import Collective
from ._groups import Group
from ._tensor import take
from ._wants_gradient import autograd_for
from ._zeros import factor_of_present

Average = lib.AVG
Sum = lib.SUM
Product = lib.PROD
Min = lib.MIN
Max = lib.MAX
Adasum = lib.ADASUM


def chosen_op(op, average):
    """`average` is the older form of `op`."""
    if average is not None:
        if op is not None:
            raise ValueError("give op or average, not both")
        return Average if average else Sum
    return Average if op is None else op


def _reduce(group, source, target, op, name, prescale, postscale, requests=None, kind=_join.ALLREDUCE):
    """Called in its turn."""
    if source.stream is not None:
        _join.note_device(source.object)
    postscale *= _join.announce(group, kind, source.dtype, op, source.count, source.stream is not None, prescale, postscale)
    call("drun_allreduce", source.pointer, target.pointer, source.count, source.dtype, op, group.comm,
         lib.call_options(name, prescale, postscale, requests, source.stream))


def _announced(source, op, prescale, postscale, is_mean_of_present=False):
    """As _order_table.Zeros."""
    return [source.dtype, source.type_name, int(op), [int(n) for n in source.shape], float(prescale), float(postscale),
            source.stream is not None, is_mean_of_present]


class _Allreduce(Collective):
    kind = "allreduce"
    is_one_call = True

    def __init__(self, tensor, in_place, op, name, prescale, postscale, process_set, kind=_join.ALLREDUCE):
        group = Group(process_set)
        self._source = take(tensor, in_place, name)
        super().__init__(group, name, (self._source.caller_stream,))
        self._source.check_reducible("allreduce")
        self._target = self._source if in_place else self._source.new()
        self._op, self._prescale, self._postscale = op, prescale, postscale
        self._announced_as = kind

    def work(self, requests=None):
        factor = factor_of_present(self.group.size, self.n_joined) if self._is_mean_of_present() else 1.0
        _reduce(self.group, self._source, self._target, self._op, self.name, self._prescale, self._postscale * factor, requests,
                self._announced_as)
        return self._target.object

    def _is_mean_of_present(self):
        return self._announced_as == _join.MEAN_OF_PRESENT

    def fields(self):
        return [_announced(self._source, self._op, self._prescale, self._postscale, self._is_mean_of_present())]


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0, process_set=None):
    """The average, or the reduction `op`, over all ranks, as a new tensor. The input is multiplied by prescale_factor,
    the result by postscale_factor. Differentiable."""
    op = chosen_op(op, average)
    autograd = autograd_for(tensor)
    if autograd:
        return autograd.allreduce(tensor, name, compression, op, prescale_factor, postscale_factor, process_set)
    compressed, ctx = compression.compress(tensor)
    one = _Allreduce(compressed, False, op, name, prescale_factor, postscale_factor, process_set)
    return compression.decompress(one.run(), ctx)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=None):
    """Like allreduce, in place."""
    return _Allreduce(tensor, True, chosen_op(op, average), name, prescale_factor, postscale_factor, process_set).run()


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                    process_set=None):
    """Returns a handle for synchronize() and poll(). Don't change the tensor before the call is done."""
    return _Allreduce(tensor, False, chosen_op(op, average), name, prescale_factor, postscale_factor, process_set).begin()


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                     process_set=None):
    return _Allreduce(tensor, True, chosen_op(op, average), name, prescale_factor, postscale_factor, process_set).begin()


def mean_of_present_async_(tensor, name, process_set):
    """The average over the ranks that have not joined, in place."""
    return _Allreduce(tensor, True, Average, name, 1.0, 1.0, process_set, _join.MEAN_OF_PRESENT).begin()


class _GroupedAllreduce(Collective):
    kind = "grouped_allreduce"
    is_one_call = True  # a group

    def __init__(self, tensors, in_place, op, name, prescale, postscale, process_set):
        group = Group(process_set)
        self._sources = [take(tensor, in_place, name) for tensor in tensors]
        super().__init__(group, name, [source.caller_stream for source in self._sources])
        for source in self._sources:
            source.check_reducible("grouped_allreduce")
        self._targets = self._sources if in_place else [source.new() for source in self._sources]
        self._arguments = (op, prescale, postscale)

    def work(self, requests=None):
        # libdrun merges small tensors of the same type that follow each other. Ranks that have joined can't take part
        # in groups.
        together = not _join.announces(self.group) and not self.n_joined
        op, prescale, postscale = self._arguments
        if together:
            call("drun_group_start")
        try:
            for number in self._by_type():
                name = None if self.name is None else f"{self.name}.{number}"
                _reduce(self.group, self._sources[number], self._targets[number], op, name, prescale, postscale, requests)
        except BaseException:
            if together:
                call("drun_group_cancel")
            raise
        if together:
            call("drun_group_end")
        return [target.object for target in self._targets]

    def _by_type(self):
        return sorted(range(len(self._sources)), key=lambda number: self._sources[number].dtype)

    def fields(self):
        """In the order of work()."""
        return [_announced(self._sources[number], *self._arguments) for number in self._by_type()]


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=None):
    """allreduce of a list of tensors; small ones are merged."""
    op = chosen_op(op, average)
    autograd = next((found for found in map(autograd_for, tensors) if found), None)
    if autograd:
        return [autograd.allreduce(tensor, name, compression, op, prescale_factor, postscale_factor, process_set)
                for tensor in tensors]
    compressed, contexts = zip(*map(compression.compress, tensors)) if tensors else ((), ())
    several = _GroupedAllreduce(compressed, False, op, name, prescale_factor, postscale_factor, process_set)
    return [compression.decompress(result, ctx) for result, ctx in zip(several.run(), contexts)]


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=None):
    return _GroupedAllreduce(tensors, True, chosen_op(op, average), name, prescale_factor, postscale_factor,
                             process_set).run()


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                            process_set=None):
    return _GroupedAllreduce(tensors, False, chosen_op(op, average), name, prescale_factor, postscale_factor,
                             process_set).begin()


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                             process_set=None):
    return _GroupedAllreduce(tensors, True, chosen_op(op, average), name, prescale_factor, postscale_factor,
                             process_set).begin()


class _Reducescatter(Collective):
    kind = "reducescatter"

    def __init__(self, tensor, op, name, prescale, postscale, process_set):
        group = Group(process_set)
        self._source = take(tensor)
        super().__init__(group, name, (self._source.caller_stream,))
        self._source.check_reducible("reducescatter")
        self._arguments = (op, name, prescale, postscale)
        if not self._source.shape:
            raise ValueError("reducescatter deals out the first dimension, and one number alone has none")
        # The first `more` ranks get one more row.
        self._rows, self._more = divmod(self._source.rows, self.group.size)
        if self._more and self._source.stream is not None:
            raise ValueError(f"reducescatter of a GPU's tensor: its {self._source.rows} rows can't be divided among "
                             f"{self.group.size} ranks")

    def work(self, requests=None):
        _join.announce(self.group, _join.OTHER)
        target = self._source.new_rows(self._rows + (self.group.rank < self._more))
        if self._more:
            self._reduce_padded(target)
        else:
            self._reduce(self._source.pointer, target.pointer, self._rows)
        return target.object

    def _reduce(self, given, got, block):
        op, name, prescale, postscale = self._arguments
        call("drun_reduce_scatter", given, got, block * self._source.row_count, self._source.dtype, op, self.group.comm,
             lib.call_options(name, prescale, postscale, stream=self._source.stream))

    def _reduce_padded(self, target):
        """libdrun requires blocks of equal size."""
        size, block, row_bytes = self.group.size, self._rows + 1, self._source.row_count * self._source.itemsize
        padded = (ctypes.c_char * (size * block * row_bytes))()
        received = (ctypes.c_char * (block * row_bytes))()
        at = self._source.pointer
        for rank in range(size):
            n_bytes = (self._rows + (rank < self._more)) * row_bytes
            ctypes.memmove(ctypes.addressof(padded) + rank * block * row_bytes, at, n_bytes)
            at += n_bytes
        self._reduce(ctypes.addressof(padded), ctypes.addressof(received), block)
        ctypes.memmove(target.pointer, received, target.n_bytes)

    def fields(self):
        op, _, prescale, postscale = self._arguments
        return [str(_announced(self._source, op, prescale, postscale))]


def reducescatter(tensor, name=None, compression=Compression.none, op=Average, process_set=None, prescale_factor=1.0,
                  postscale_factor=1.0):
    """Reduces like allreduce, but each rank gets only its part of the first dimension; if that can't be divided evenly,
    the first ranks get one more row."""
    autograd = autograd_for(tensor)
    if autograd:
        return autograd.reducescatter(tensor, name, compression, op, process_set, prescale_factor, postscale_factor)
    compressed, ctx = compression.compress(tensor)
    one = _Reducescatter(compressed, op, name, prescale_factor, postscale_factor, process_set)
    return compression.decompress(one.run(), ctx)


def reducescatter_async(tensor, name=None, op=Average, process_set=None, prescale_factor=1.0, postscale_factor=1.0):
    return _Reducescatter(tensor, op, name, prescale_factor, postscale_factor, process_set).begin()


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average, process_set=None,
                          prescale_factor=1.0, postscale_factor=1.0):
    return [reducescatter(tensor, None if name is None else f"{name}.{number}", compression, op, process_set, prescale_factor, postscale_factor)
            for number, tensor in enumerate(tensors)]


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=None, prescale_factor=1.0, postscale_factor=1.0):
    return CombinedHandle([reducescatter_async(tensor, None if name is None else f"{name}.{number}", op, process_set,
                                               prescale_factor, postscale_factor) for number, tensor in enumerate(tensors)])
