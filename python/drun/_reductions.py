"""allreduce, grouped_allreduce, reducescatter: in place, into a new tensor, asynchronous."""
import ctypes

from . import _join
from . import _library as lib
from ._compression import Compression
from ._engine import call, engine
from ._process_sets import Group
from ._tensor import take
from ._wants_gradient import autograd_for

Average = lib.AVG
Sum = lib.SUM
Product = lib.PROD
Min = lib.MIN
Max = lib.MAX
Adasum = lib.ADASUM

# Tensors up to this size travel together in a group: a copy is cheaper than a call of their own.
FUSED_BYTES = 1 << 20


def _chosen(op, average):
    """`average` is the older way to say it."""
    if average is not None:
        if op is not None:
            raise ValueError("give op or average, not both")
        return Average if average else Sum
    return Average if op is None else op


def _reduce(group, source, target, op, name, prescale, postscale):
    """In its turn."""
    source.check_reducible("allreduce")
    _reduce_memory(group, source.pointer, target.pointer, source.count, source.dtype, op, name, prescale, postscale)


def _reduce_memory(group, source, target, count, dtype, op, name, prescale, postscale):
    _join.announce(group, _join.ALLREDUCE, dtype, op, count)
    call("drun_allreduce", source, target, count, dtype, op, group.comm, lib.call_options(name, prescale, postscale))


def _allreduce_work(tensor, in_place, op, name, prescale, postscale, process_set):
    group = Group(process_set)
    source = take(tensor, writable=in_place)
    source.check_reducible("allreduce")

    def work():
        target = source if in_place else source.new()
        _reduce(group, source, target, op, name, prescale, postscale)
        return target.object

    return work


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0, process_set=None):
    """The average, or what `op` says, over all ranks, in a new tensor. What is given is multiplied by prescale_factor, the
    result by postscale_factor. Gradients flow through it."""
    op = _chosen(op, average)
    autograd = autograd_for(tensor)
    if autograd:
        return autograd.allreduce(tensor, name, compression, op, prescale_factor, postscale_factor, process_set)
    compressed, ctx = compression.compress(tensor)
    work = _allreduce_work(compressed, False, op, name, prescale_factor, postscale_factor, process_set)
    return compression.decompress(engine.run(work), ctx)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, process_set=None):
    """As allreduce, in place."""
    return engine.run(
        _allreduce_work(tensor, True, _chosen(op, average), name, prescale_factor, postscale_factor, process_set))


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                    process_set=None):
    """Returns a handle for synchronize() and poll(). Until then the tensor is not to be changed."""
    return engine.submit(
        _allreduce_work(tensor, False, _chosen(op, average), name, prescale_factor, postscale_factor, process_set))


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                     process_set=None):
    return engine.submit(
        _allreduce_work(tensor, True, _chosen(op, average), name, prescale_factor, postscale_factor, process_set))


def _grouped_work(tensors, in_place, op, name, prescale, postscale, process_set):
    group = Group(process_set)
    sources = [take(tensor, writable=in_place) for tensor in tensors]
    for source in sources:
        source.check_reducible("grouped_allreduce")

    def work():
        targets = sources if in_place else [source.new() for source in sources]
        together = {}
        for number, (source, target) in enumerate(zip(sources, targets)):
            if op != Adasum and source.n_bytes <= FUSED_BYTES:  # Adasum looks at each tensor as a whole
                together.setdefault(source.dtype, []).append((source, target))
            else:
                _reduce(group, source, target, op, _numbered(name, number), prescale, postscale)
        for dtype, pairs in together.items():
            _reduce_together(group, dtype, pairs, op, name, prescale, postscale)
        return [target.object for target in targets]

    return work


def _numbered(name, number):
    return None if name is None else f"{name}.{number}"


def _reduce_together(group, dtype, pairs, op, name, prescale, postscale):
    memory = (ctypes.c_char * sum(source.n_bytes for source, _ in pairs))()
    begin = ctypes.addressof(memory)
    at = begin
    for source, _ in pairs:
        ctypes.memmove(at, source.pointer, source.n_bytes)
        at += source.n_bytes
    count = sum(source.count for source, _ in pairs)
    _reduce_memory(group, begin, begin, count, dtype, op, name, prescale, postscale)
    at = begin
    for _, target in pairs:
        ctypes.memmove(target.pointer, at, target.n_bytes)
        at += target.n_bytes


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=None):
    """allreduce of a list of tensors; small ones travel together."""
    op = _chosen(op, average)
    autograd = next((found for found in map(autograd_for, tensors) if found), None)
    if autograd:
        return [autograd.allreduce(tensor, name, compression, op, prescale_factor, postscale_factor, process_set)
                for tensor in tensors]
    compressed, contexts = zip(*map(compression.compress, tensors)) if tensors else ((), ())
    work = _grouped_work(compressed, False, op, name, prescale_factor, postscale_factor, process_set)
    return [compression.decompress(result, ctx) for result, ctx in zip(engine.run(work), contexts)]


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=None):
    return engine.run(
        _grouped_work(tensors, True, _chosen(op, average), name, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                            process_set=None):
    return engine.submit(
        _grouped_work(tensors, False, _chosen(op, average), name, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                             process_set=None):
    return engine.submit(
        _grouped_work(tensors, True, _chosen(op, average), name, prescale_factor, postscale_factor, process_set))


def _reducescatter_work(tensor, op, name, prescale, postscale, process_set):
    group = Group(process_set)
    source = take(tensor)
    source.check_reducible("reducescatter")
    if not source.shape:
        raise ValueError("reducescatter deals out the first dimension, and one number alone has none")

    def work():
        _join.announce(group, _join.OTHER)
        rows, more = divmod(source.rows, group.size)  # the first `more` ranks get a row more
        target = source.new_rows(rows + (group.rank < more))
        options = lib.call_options(name, prescale, postscale)
        row_bytes = source.row_count * source.itemsize
        given, got, block = source.pointer, target.pointer, rows
        if more:
            # libdrun wants blocks of one size.
            block = rows + 1
            padded = (ctypes.c_char * (group.size * block * row_bytes))()
            received = (ctypes.c_char * (block * row_bytes))()
            at = source.pointer
            for rank in range(group.size):
                n_bytes = (rows + (rank < more)) * row_bytes
                ctypes.memmove(ctypes.addressof(padded) + rank * block * row_bytes, at, n_bytes)
                at += n_bytes
            given, got = ctypes.addressof(padded), ctypes.addressof(received)
        call("drun_reduce_scatter", given, got, block * source.row_count, source.dtype, op, group.comm, options)
        if more:
            ctypes.memmove(target.pointer, got, target.n_bytes)
        return target.object

    return work


def reducescatter(tensor, name=None, compression=Compression.none, op=Average, process_set=None, prescale_factor=1.0,
                  postscale_factor=1.0):
    """What allreduce would give, of which each rank gets its part of the first dimension; the first ranks get one row more
    where that can't be divided."""
    autograd = autograd_for(tensor)
    if autograd:
        return autograd.reducescatter(tensor, name, compression, op, process_set, prescale_factor, postscale_factor)
    compressed, ctx = compression.compress(tensor)
    work = _reducescatter_work(compressed, op, name, prescale_factor, postscale_factor, process_set)
    return compression.decompress(engine.run(work), ctx)


def reducescatter_async(tensor, name=None, op=Average, process_set=None, prescale_factor=1.0, postscale_factor=1.0):
    return engine.submit(_reducescatter_work(tensor, op, name, prescale_factor, postscale_factor, process_set))


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average, process_set=None,
                          prescale_factor=1.0, postscale_factor=1.0):
    return [reducescatter(tensor, _numbered(name, number), compression, op, process_set, prescale_factor, postscale_factor)
            for number, tensor in enumerate(tensors)]
