"""Reduces the gradients of a model over all ranks while the backward pass still runs.

Large gradients are reduced alone; small ones are packed into buckets, in the reverse order of the parameters, which is
roughly the order in which they are computed. All are copied first: autograd may still change the memory of a gradient,
or share it with another gradient. A bucket is reduced as soon as it is full and all buckets before it have been
launched, so that the order of the collectives is the same on all ranks, even if a rank leaves parameters out. Buckets
of which only the large elements are sent (`_feedback.py`) are gathered in place of an allreduce.

After the buckets each rank announces which parameters it has a gradient of. A parameter that no rank has used gets no
gradient, as with a single rank. A parameter with a sparse gradient on some rank is reduced then, and left out of the
buckets in later steps."""
import threading
import weakref

import torch

from . import _feedback
from . import _halves
from . import _library as lib
from ._compression import Compression
from ._engine import synchronize
from ._reductions import Average, Sum, allreduce_async_
from ._sparse import sparse_allreduce_async, sparse_gradient_of

BUCKET_BYTES = 8 << 20
ALONE_BYTES = 1 << 20  # packing and unpacking a larger one takes longer than one more collective
ALIGNMENT = 8  # of gradients in a bucket, in elements: a GPU moves 16 bytes at once, also of halves

_NONE, _DENSE, _SPARSE = range(3)


def _kind(gradient):
    return _NONE if gradient is None else _SPARSE if gradient.is_sparse else _DENSE


def _copy_all(into, tensors):
    """Copies each tensor, on a GPU by few kernels."""
    if hasattr(torch, "_foreach_copy_"):  # torch 2.1
        torch._foreach_copy_(into, tensors)
    else:
        for one, tensor in zip(into, tensors):
            one.copy_(tensor)


class _Bucket:
    """Gradients of one type on one device, in `flat` on that device, with gaps of zeros."""

    def __init__(self, dtype, device):
        self.dtype = dtype
        self.device = device
        self.names = []
        self.parameters = []
        self.places = []
        self.n_elements = 0  # with the gaps
        self.n_ready = 0
        self.handle = None
        self.context = None  # for Compression.decompress
        self.flat = None

    @property
    def name(self):
        return self.names[0] if len(self.names) == 1 else f"{self.names[0]}..{self.names[-1]}"

    @property
    def next_place(self):
        return -(-self.n_elements // ALIGNMENT) * ALIGNMENT

    def add(self, name, parameter):
        self.names.append(name)
        self.parameters.append(parameter)
        self.places.append(self.next_place)
        self.n_elements = self.next_place + parameter.numel()

    def parts(self, flat):
        """The parameters with their parts of `flat`."""
        for parameter, place in zip(self.parameters, self.places):
            yield parameter, flat.narrow(0, place, parameter.numel()).view(parameter.shape)

    def pack(self):
        """The data to reduce, with zeros for gradients that are missing or sparse on this rank."""
        if self.flat is None:
            self.flat = torch.zeros(self.n_elements, dtype=self.dtype, device=self.device)
        parts, gradients = [], []
        for parameter, part in self.parts(self.flat):
            if _kind(parameter.grad) == _DENSE:
                parts.append(part)
                gradients.append(parameter.grad)
            else:
                part.zero_()
        if parts:
            _copy_all(parts, gradients)
        return self.flat

    def unpack(self, flat):
        """Returns the parts of `flat` whose gradients this rank doesn't have."""
        missing, parts, gradients = {}, [], []
        for parameter, part in self.parts(flat):
            if parameter.grad is None:
                missing[id(parameter)] = part
            elif _kind(parameter.grad) == _DENSE:
                parts.append(part)
                gradients.append(parameter.grad)
        if parts:
            _copy_all(gradients, parts)
        return missing


class GradientReducer:
    def __init__(self, named_parameters, compression, op, passes, prescale, postscale, process_set, bucket_bytes,
                 sparse_as_dense, feedback=None, loss_scale=None):
        self._compression = compression if feedback is None else Compression.none
        self._feedback = feedback
        self._halves = None
        if _halves.is_for(self._compression, op):
            self._halves = _halves.Halves(compression, op, process_set, None if postscale == 1 else postscale,
                                          cuts=loss_scale is None)
        self._arguments = dict(op=op, prescale_factor=prescale, postscale_factor=postscale, process_set=process_set)
        self._sparse_as_dense = sparse_as_dense
        self.passes = passes
        self._named_parameters = named_parameters
        self._bucket_bytes = bucket_bytes
        self._sparse = []
        self._made_dense = {}  # by id: parameters whose gradients travel as dense ones
        self._lock = threading.RLock()  # autograd has a thread for each device, and hooks run there
        self._fill()
        self._next = 0  # the first bucket that is not launched
        self._reset()
        self._hooks = [_after_gradient(parameter, self._make_hook(name, parameter)) for name, parameter in named_parameters]

    def _fill(self):
        """Orders the buckets by the time at which their last gradients are computed."""
        self._buckets, filling = [], {}
        sparse = {id(parameter) for _, parameter in self._sparse}
        for name, parameter in reversed(self._named_parameters):
            if id(parameter) in sparse:
                continue
            n_bytes = parameter.numel() * parameter.element_size()
            kind = parameter.dtype, parameter.device
            if n_bytes >= min(ALONE_BYTES, self._bucket_bytes):
                bucket = _Bucket(*kind)
                self._buckets.append(bucket)
            else:
                bucket = filling.setdefault(kind, _Bucket(*kind))
                if bucket.next_place * parameter.element_size() + n_bytes > self._bucket_bytes:
                    self._buckets.append(bucket)
                    bucket = filling[kind] = _Bucket(*kind)
            bucket.add(name, parameter)
        self._buckets += filling.values()
        self._bucket_of = {id(parameter): bucket for bucket in self._buckets for parameter in bucket.parameters}

    def remove(self):
        for remove in self._hooks:
            remove()

    def has_all(self, parameters):
        """True if no other than this reducer's are trained."""
        return all(id(p) in self._left for p in parameters if p.requires_grad)

    def without_own(self, named_parameters):
        return [(name, p) for name, p in named_parameters if id(p) not in self._left]

    def is_under_way(self):
        return self._next > 0

    def forget_passes(self):
        """For gradients that are given up before any was sent."""
        if self._has_counted:
            self._reset()

    def restart(self):
        """Forgets the passes that were counted."""
        for bucket in self._buckets[: self._next]:
            synchronize(bucket.handle)
        self._reset()

    def _reset(self):
        self._next = 0
        for bucket in self._buckets:
            bucket.n_ready, bucket.handle, bucket.context = 0, None, None
        self._left = {id(parameter): self.passes for _, parameter in self._named_parameters}
        self._has_counted = False

    def _make_hook(self, name, parameter):
        # The model may outlive this optimizer, which another one may replace.
        weak, key = weakref.ref(self), id(parameter)

        def hook(*_):
            reducer = weak()
            if reducer is not None:
                reducer._has_come(name, key)

        return hook

    def _has_come(self, name, key):
        with self._lock:
            self._has_counted = True
            self._left[key] -= 1
            if self._left[key] < 0:
                raise RuntimeError(f"the gradient of {name} was computed more than backward_passes_per_step={self.passes} "
                                   "times before step(): give DistributedOptimizer the number of backward passes per step")
            if self._left[key] == 0 and key in self._bucket_of:
                self._bucket_of[key].n_ready += 1
                self._launch(only_full=True)

    def _launch(self, only_full):
        while self._next < len(self._buckets):
            bucket = self._buckets[self._next]
            if only_full and bucket.n_ready < len(bucket.parameters):
                return
            if self._next == 0 and self._feedback is not None:
                self._feedback.begin_step()
            with torch.no_grad():
                for name, parameter in zip(bucket.names, bucket.parameters):
                    self._check_sparse(name, parameter)
                bucket.handle = self._begin(bucket)
            self._next += 1

    def _is_halved(self, bucket):
        return self._halves is not None and self._halves.takes(bucket.dtype)

    def _begin(self, bucket):
        if self._feedback is not None and _feedback.is_for(bucket.dtype):
            return self._feedback.begin(bucket, bucket.name, **self._arguments)
        if self._is_halved(bucket):
            return self._halves.begin(bucket.pack(), bucket.name)
        compressed, bucket.context = self._compression.compress(bucket.pack())
        return allreduce_async_(compressed, name=bucket.name, **self._arguments)

    def _end(self, bucket):
        """The reduced data of the bucket."""
        reduced = _reduced(bucket.handle)
        if self._is_halved(bucket):
            return self._halves.end(reduced, bucket.dtype)
        return self._compression.decompress(reduced, bucket.context)

    def _check_sparse(self, name, parameter):
        if _kind(parameter.grad) != _SPARSE:
            return
        if self._sparse_as_dense:
            parameter.grad = parameter.grad.to_dense()
            self._made_dense[id(parameter)] = parameter
        elif self._arguments["op"] not in (Sum, Average):
            raise ValueError(f"the gradient of {name} is sparse: with this op it has to become dense, which "
                             "DistributedOptimizer(sparse_as_dense=True) does")

    def synchronize(self):
        """Returns when all gradients are reduced."""
        self._launch(only_full=False)
        named = [one for bucket in self._buckets for one in zip(bucket.names, bucket.parameters)]
        # Number of ranks with a dense gradient, with a sparse one, and with a dense one that was sparse: ranks that have
        # joined add zeros to the sum.
        mine = [(_kind(parameter.grad), id(parameter) in self._made_dense) for _, parameter in named + self._sparse]
        kinds = torch.tensor([[kind == _DENSE, kind == _SPARSE, kind == _DENSE and is_made] for kind, is_made in mine],
                             dtype=torch.int32)
        name = "which gradients there are" + ("" if self._feedback is None else f" ({self._feedback.compression})")
        if named:
            name += f" of {named[0][0]}"  # and not of another optimizer
        handle = allreduce_async_(kinds, op=Sum, name=name, process_set=self._arguments["process_set"])
        missing = {}
        with torch.no_grad():
            for bucket in self._buckets:
                missing.update(bucket.unpack(self._end(bucket)))
            found = []
            counts = _reduced(handle).tolist()
            used = {id(parameter) for (_, parameter), count in zip(named + self._sparse, counts) if any(count)}
            for (name, parameter), (n_dense, n_sparse, n_made_dense) in zip(named, counts):
                if n_dense and n_sparse:
                    self._reset()
                    raise ValueError(f"the gradient of {name} is sparse on {n_sparse} ranks and dense on {n_dense}: "
                                     "DistributedOptimizer(sparse_as_dense=True) takes it")
                if n_sparse:
                    found.append((name, parameter))
                elif n_dense and id(parameter) in missing:
                    parameter.grad = missing[id(parameter)].clone()
                    if n_made_dense == n_dense:
                        self._made_dense[id(parameter)] = parameter
            self._sparse += found
            self._reduce_sparse(used)
            for parameter in self._made_dense.values():  # what an optimizer for sparse gradients wants
                if _kind(parameter.grad) == _DENSE:
                    parameter.grad = parameter.grad.to_sparse(1)
        if found:
            self._fill()
        self._reset()

    def _reduce_sparse(self, used):
        """`used`: parameters of which some rank has a gradient, even an empty one. Every rank gets a gradient for
        these: an optimizer steps on an empty gradient too, so ranks without one would end up in another state."""
        sparse = [one for one in self._sparse if id(one[1]) in used]
        options = self._arguments
        factor = options["prescale_factor"] * options["postscale_factor"]
        handles = [sparse_allreduce_async(sparse_gradient_of(parameter), name, options["op"], options["process_set"],
                                          self._compression, factor) for name, parameter in sparse]
        for (_, parameter), handle in zip(sparse, handles):
            parameter.grad = synchronize(handle)


def _reduced(handle):
    try:
        return synchronize(handle)
    except lib.DrunError as error:
        if error.status == lib.ERROR_MISMATCH:
            error.args = (f"{error.args[0]}; DistributedOptimizer wants the same parameters in the same order on all ranks, and no "
                          "collective of which only some ranks have called it between backward() and step()",)
        raise


def _after_gradient(parameter, hook):
    """Calls hook each time a pass has been added to parameter.grad; returns a function that removes the hook."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch 2.1
        return parameter.register_post_accumulate_grad_hook(hook).remove
    with torch.enable_grad():
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    handle = accumulator.register_hook(hook)

    def remove():
        nonlocal accumulator
        handle.remove()
        accumulator = None  # kept alive until then: torch doesn't

    return remove
