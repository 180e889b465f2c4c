"""Replicas whose parameters are averaged one part at a time, as in drun/training/partial.hpp. Each rank applies its own
gradients; after each step the next part is averaged. The parts have the same size, whatever the parameters are."""
import torch

from . import _library as lib
from ._engine import synchronize
from ._reductions import Sum, allreduce_async_, mean_of_present_async_


class PartialAverage:
    def __init__(self, named_parameters, n_parts, process_set, bucket_bytes, before=None):
        """before: the PartialAverage that this one replaces. Its parameters stay: those that are frozen now differ between
        the ranks until they have been averaged."""
        known = set() if before is None else before._known
        self._named = [(name, p) for name, p in named_parameters if p.requires_grad or id(p) in known]
        self._known = {id(p) for _, p in self._named}
        self._n_parts = n_parts
        self._process_set = process_set
        self._bucket_bytes = bucket_bytes
        self.turn = 0 if before is None else before.turn  # number of the part that is averaged next
        self.n_steps = 0 if before is None else before.n_steps

    def lacks(self, parameters):
        """True if a parameter is trained that is not averaged."""
        return any(p.requires_grad and id(p) not in self._known for p in parameters)

    def average_next(self):
        what = f"part {self.turn + 1} of {self._n_parts} in step {self.n_steps + 1}"
        try:
            compared = None
            if any(p.is_cuda for _, p in self._named):
                # NCCL compares no names, and parts are of the same size.
                compared = allreduce_async_(torch.zeros(1, device="cpu"), op=Sum, name=what, process_set=self._process_set)
            self._average(part_of([p.numel() for _, p in self._named], self.turn, self._n_parts), what)
            if compared is not None:
                synchronize(compared)
        except lib.DrunError as error:
            if error.status == lib.ERROR_MISMATCH:
                error.args = (f"{error.args[0]}; with partial_update all ranks call step() equally often",)
            raise
        self.turn = (self.turn + 1) % self._n_parts
        self.n_steps += 1

    def average_all(self):
        """Does not change whose turn it is."""
        self._average([(number, 0, p.numel()) for number, (_, p) in enumerate(self._named) if p.numel()], "all parameters")

    @torch.no_grad()
    def _average(self, pieces, what):
        flat = {number: self._named[number][1].detach().reshape(-1) for number, _, _ in pieces}  # a copy if not contiguous
        under_way = []
        for bucket in self._lay_out(pieces):
            views = [flat[number][begin: begin + count] for number, begin, count in bucket]
            packed = views[0] if len(views) == 1 else torch.cat(views)
            first, last = (self._named[piece[0]][0] for piece in (bucket[0], bucket[-1]))
            name = f"{what}, {len(under_way)}: {first}" + (f"..{last}" if last != first else "")
            under_way.append((mean_of_present_async_(packed, name, self._process_set), views, packed))
        for handle, views, packed in under_way:
            synchronize(handle)
            if len(views) > 1:
                for view, part in zip(views, packed.split([len(view) for view in views])):
                    view.copy_(part)
        for number, values in flat.items():
            parameter = self._named[number][1]
            if values.data_ptr() != parameter.data_ptr():
                parameter.copy_(values.view(parameter.shape))

    def _lay_out(self, pieces):
        """Lists of pieces that travel together: of one type on one device, of at most bucket_bytes."""
        buckets, kind, room = [], None, 0
        for number, begin, count in pieces:
            parameter = self._named[number][1]
            most = max(self._bucket_bytes // parameter.element_size(), 1)
            while count:
                n = min(count, most)
                if not buckets or kind != (parameter.dtype, parameter.device) or n > room:
                    buckets.append([])
                    kind, room = (parameter.dtype, parameter.device), most
                buckets[-1].append((number, begin, n))
                begin, count, room = begin + n, count - n, room - n
        return buckets


def part_of(counts, number, n_parts):
    """Pieces (tensor, begin, count) of part `number` of all elements of tensors of these sizes. The lengths of parts differ
    by at most one element."""
    each, longer = divmod(sum(counts), n_parts)
    begin_of_part = each * number + min(number, longer)
    end_of_part = begin_of_part + each + (number < longer)
    pieces, begin = [], 0
    for tensor, count in enumerate(counts):
        first, last = max(begin_of_part, begin), min(end_of_part, begin + count)
        if first < last:
            pieces.append((tensor, first - begin, last - first))
        begin += count
    return pieces
