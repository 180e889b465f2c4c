"""The parts that need torch, and everything else of drun, so that `import drun.torch as hvd` is enough."""
import contextlib
import functools
import warnings

import torch

from . import *  # noqa: F401,F403
from . import _feedback
from ._compression import Compression, SparseCompressor
from ._gradients import BUCKET_BYTES, GradientReducer
from ._objects import broadcast_object
from ._partial import PartialAverage
from ._groups import Group
from ._reductions import Adasum, Average, allreduce_async_
from ._sparse import sparse_allreduce_async  # noqa: F401
from ._sync_batch_norm import SyncBatchNorm  # noqa: F401


class _Distributed:
    """Comes before a class of torch.optim in the list of bases."""

    def synchronize(self):
        """Waits until all gradients are reduced. step() does this too; call it to inspect or clip the gradients, then
        call step() under skip_synchronize()."""
        if self._drun_reducer is not None:
            self._drun_reducer.synchronize()
            if not self._drun_reducer.has_all(self._drun_parameters()):
                # Some were frozen until now: hooks have not seen their gradients.
                late = self._drun_reducer_of(self._drun_reducer.without_own(_trained(self._drun_all_named())))
                late.synchronize()
                late.remove()
                self._drun_start()
        self._drun_synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        self._drun_should_synchronize = False
        try:
            yield
        finally:
            self._drun_should_synchronize = True

    def step(self, closure=None):
        if closure is None:
            if self._drun_should_synchronize:
                if self._drun_synchronized:
                    warnings.warn("optimizer.step() called without optimizer.skip_synchronize() after "
                                  "optimizer.synchronize(): it reduces the gradients a second time")
                self.synchronize()
            result = self._drun_scaled_step(super().step) if self._drun_scales else super().step()
        else:
            def reduced():  # called each time gradients have been computed
                loss = closure()
                if self._drun_should_synchronize:
                    self.synchronize()
                return loss

            result = super().step(reduced)
        self._drun_synchronized = False
        if self._drun_partial is not None:
            if self._drun_partial.lacks(self._drun_parameters()):
                self._drun_start()
            self._drun_partial.average_next()
        return result

    step.hooked = True  # torch calls hooks of a step in the step of the base class; it would put them around this one, too

    def _drun_scaled_step(self, step):
        """With partial_update torch's GradScaler leaves it to the step what to do about gradients that have overflowed: the
        rank takes part in the average. Then the gradients are not divided yet. `step` knows nothing of it."""
        given = {name: self.__dict__.pop(name) for name in ("found_inf", "grad_scale") if name in self.__dict__}
        try:
            if given and given["found_inf"].item():
                return None
            scale = given.get("grad_scale")
            gradients = [p.grad for p in self._drun_parameters() if p.grad is not None]
            if scale is not None and gradients:
                torch._foreach_div_(gradients, float(scale))
            return step()
        finally:
            self.__dict__.update(given)  # the scaler deletes them

    def average_parameters(self):
        """Averages all parameters over the ranks: they are then the same bits on all. Does something only with
        partial_update: call it before the model is tested or saved."""
        if self._drun_partial is not None:
            self._drun_partial.average_all()

    def zero_grad(self, *args, **kwargs):
        if self._drun_reducer is not None:
            if self._drun_reducer.is_under_way():
                raise RuntimeError("zero_grad() between backward() and step() or synchronize(): the gradients are being reduced")
            self._drun_reducer.forget_passes()
        return super().zero_grad(*args, **kwargs)

    def state_dict(self, *args, **kwargs):
        """With topk and threshold also what this rank has not sent yet; with partial_update whose turn it is."""
        state = super().state_dict(*args, **kwargs)
        if self._drun_feedback is not None:
            group = Group(self._drun_options["process_set"])
            state["drun_feedback"] = {"rank": group.rank, "size": group.size,
                                      "kept": self._drun_feedback.state_of(self._drun_parameters())}
        if self._drun_partial is not None:
            state["drun_turn"] = self._drun_partial.turn
        return state

    def load_state_dict(self, state_dict, *args, **kwargs):
        """What a rank has not sent yet belongs to that rank of a job of that size: others begin with nothing."""
        if self._drun_reducer is not None:
            self._drun_reducer.restart()
        self._drun_synchronized = False
        groups = self.param_groups
        result = super().load_state_dict(state_dict, *args, **kwargs)
        # A scheduler of the optimizer that this one replaces has the same list of groups, and sets their learning rates.
        if self.param_groups is not groups:
            groups[:] = self.param_groups
            self.param_groups = groups
        if self._drun_feedback is not None:
            group = Group(self._drun_options["process_set"])
            saved = state_dict.get("drun_feedback", {})
            is_own = (saved.get("rank"), saved.get("size")) == (group.rank, group.size)
            self._drun_feedback.restore(saved["kept"] if is_own else {}, self._drun_parameters())
        if self._drun_partial is not None:
            self._drun_partial.turn = state_dict.get("drun_turn", 0)
        return result

    def add_param_group(self, group):
        super().add_param_group(group)
        if self._drun_named is not None:  # the names of what was added are not known
            named = {id(parameter) for _, parameter in self._drun_named}
            self._drun_named += [(f"parameter.{number}", parameter) for number, parameter in enumerate(self._drun_parameters())
                                 if id(parameter) not in named]
        self._drun_start()

    def set_backward_passes_per_step(self, passes):
        self._drun_options["passes"] = passes
        if self._drun_reducer is not None:
            self._drun_reducer.passes = passes
            self._drun_reducer.restart()

    def __reduce_ex__(self, protocol):
        raise TypeError("a distributed optimizer can't be copied or pickled: its state_dict() can")

    def _drun_parameters(self):
        return [p for group in self.param_groups for p in group["params"]]

    def _drun_all_named(self):
        parameters = self._drun_parameters()
        return list(zip(_names_of(parameters, self._drun_named), parameters))

    def _drun_reducer_of(self, named_parameters):
        return GradientReducer(named_parameters, feedback=self._drun_feedback, **self._drun_options)

    def _drun_start(self):
        if self._drun_reducer is not None:
            self._drun_reducer.remove()
            self._drun_reducer = None
        options = self._drun_options
        named = self._drun_all_named()  # also checks the names, on one rank too
        is_alone = _is_alone(options["process_set"])
        if self._drun_n_parts is not None:
            if not is_alone:
                self._drun_partial = PartialAverage(named, self._drun_n_parts, options["process_set"], options["bucket_bytes"],
                                                    self._drun_partial)
        elif not is_alone or self._drun_feedback is not None:
            self._drun_reducer = self._drun_reducer_of(_trained(named))


def _is_alone(process_set):
    """True if the gradients of this rank stay its own: it is the only one in the set, or not in the set."""
    return not _is_included(process_set) or Group(process_set).size == 1


def _is_included(process_set):
    return process_set is None or process_set.included()


def _trained(named_parameters):
    """Those that are not frozen now."""
    return [(name, p) for name, p in named_parameters if p.requires_grad]


def _names_of(parameters, named):
    """Names are used in errors only, but wrong names indicate a wrong model."""
    if named is None:
        return [f"parameter.{number}" for number in range(len(parameters))]
    if any(not isinstance(one, tuple) for one in named):
        raise ValueError("named_parameters is a sequence of (name, parameter), as from model.named_parameters()")
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"named_parameters has the same name for several parameters: {', '.join(twice)}")
    by_parameter = {id(parameter): name for name, parameter in named}
    n_unnamed = sum(id(parameter) not in by_parameter for parameter in parameters)
    if n_unnamed:
        raise ValueError(f"named_parameters lacks {n_unnamed} of the {len(parameters)} parameters of the optimizer")
    return [by_parameter[id(parameter)] for parameter in parameters]


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none, backward_passes_per_step=1,
                         op=Average, gradient_predivide_factor=1.0, num_groups=0, groups=None, sparse_as_dense=False,
                         process_set=None, bucket_bytes=BUCKET_BYTES, partial_update=None, loss_scale=None):
    """Returns an optimizer of the same class whose step() uses the gradients of all ranks. It replaces the given one,
    whose parameters and state it takes over.

    Gradients are reduced during backward(). With backward_passes_per_step they are summed on each rank first, and
    reduced in the last of these passes. bucket_bytes: size of a bucket (num_groups and groups, Horovod's options for
    that, are ignored). All ranks must have the same parameters in the same order.

    With partial_update=PARTS gradients are not reduced: each rank applies its own, then one of this number of parts of
    the parameters is averaged. Call average_parameters() before the model is tested or saved.

    loss_scale: a function without arguments that returns the factor of the loss in the current backward pass, such as
    torch's GradScaler.get_scale. topk and threshold need it if the loss is scaled: what they keep is divided by it. With
    it, halves that are too large become infinite, which the scaler sees, and are not cut."""
    del num_groups, groups
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"DistributedOptimizer takes an optimizer of torch.optim, not one of {type(optimizer).__module__}: "
                        "there is none for TensorFlow and Keras")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor is for op=Average only")
    if backward_passes_per_step < 1:
        raise ValueError("backward_passes_per_step is at least 1")
    if isinstance(compression, SparseCompressor):
        _feedback.check(op)
    if partial_update is not None:
        if int(partial_update) != partial_update or partial_update < 1:
            raise ValueError(f"partial_update is a number of parts, at least 1, not {partial_update}")
        if compression is not Compression.none or op != Average:
            raise ValueError("partial_update averages parameters, not gradients: it takes no compression and no op")
    cls = type(optimizer.__class__.__name__, (_Distributed, optimizer.__class__), {})
    result = cls.__new__(cls)
    # A learning rate scheduler of the old optimizer may have wrapped its step().
    result.__dict__.update({name: value for name, value in optimizer.__dict__.items() if name != "step"})
    result._drun_named = None if named_parameters is None else list(named_parameters)
    result._drun_options = dict(compression=compression, op=op, passes=backward_passes_per_step,
                                prescale=1.0 / gradient_predivide_factor, postscale=gradient_predivide_factor,
                                process_set=process_set, sparse_as_dense=sparse_as_dense, loss_scale=loss_scale,
                                bucket_bytes=0 if op == Adasum else bucket_bytes)  # each tensor alone
    result._drun_n_parts = None if partial_update is None else int(partial_update)
    result._drun_partial = None
    # torch's GradScaler lets such an optimizer step even if its gradients have overflowed (since torch 2.0).
    result._drun_scales = (partial_update is not None and int(torch.__version__.partition(".")[0]) >= 2
                           and not getattr(optimizer, "_step_supports_amp_scaling", False))
    if result._drun_scales:
        result._step_supports_amp_scaling = True
    result._drun_feedback = (_feedback.Feedback(compression, loss_scale)
                             if isinstance(compression, SparseCompressor) and _is_included(process_set) else None)
    result._drun_reducer = None
    result._drun_synchronized = False
    result._drun_should_synchronize = True
    result._drun_start()
    return result


def broadcast_optimizer_state(optimizer, root_rank=0, process_set=None):
    """Copies root_rank's state and hyperparameters, such as a learning rate from a checkpoint, to the optimizers of all
    ranks."""
    group = Group(process_set)
    is_root = group.rank == group.root(root_rank)
    state = optimizer.state_dict() if is_root else None
    if is_root:
        state.pop("drun_feedback", None)  # each rank keeps its own
        state = _for_each_tensor(state, _OfGpu.of)
    state = broadcast_object(state, root_rank, "optimizer state", process_set)
    if not is_root:
        state = _on_devices(state, optimizer)
        if getattr(optimizer, "_drun_feedback", None) is not None:
            state["drun_feedback"] = optimizer.state_dict()["drun_feedback"]
        optimizer.load_state_dict(state)


class _OfGpu:
    """A tensor of a GPU, in the host's memory. A tensor that is pickled on a GPU would be restored on the GPU of the same
    number, on each rank: with a context there, and all copies in the memory of one GPU."""

    def __init__(self, tensor):
        self.tensor = tensor.cpu()

    @staticmethod
    def of(tensor):
        return _OfGpu(tensor) if tensor.is_cuda else tensor


def _on_devices(state, optimizer):
    """The root's state with its tensors of a GPU on the device of their parameter, of the first parameter of their group,
    or of the first of all. load_state_dict() moves most of them, but not the counts of steps and the learning rates."""
    def moved(values, parameter):
        return _for_each_tensor(values, lambda one: one.tensor.to(parameter.device) if isinstance(one, _OfGpu) else one)

    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    by_number = dict(enumerate(parameters))
    firsts = dict(enumerate((group["params"] or parameters)[0] for group in optimizer.param_groups))
    result = dict(state)
    # Optimizers around others have other keys. load_state_dict() reports other numbers of groups or parameters.
    if isinstance(state.get("param_groups"), list):
        result["param_groups"] = [moved(group, firsts.get(number, parameters[0]))
                                  for number, group in enumerate(state["param_groups"])]
    if isinstance(state.get("state"), dict):
        result["state"] = {number: moved(one, by_number.get(number, parameters[0])) for number, one in state["state"].items()}
    return moved(result, parameters[0])


def _for_each_tensor(state, change):
    if isinstance(state, (torch.Tensor, _OfGpu)):
        return change(state)
    if isinstance(state, dict):
        return {key: _for_each_tensor(value, change) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_for_each_tensor(one, change) for one in state)
    return state


@functools.lru_cache(maxsize=None)
def _stream_beside(device):
    """A stream of that GPU for work beside the backward pass."""
    return torch.cuda.Stream(device, priority=-1)


def ddp_hook(state, bucket):
    """For torch's DistributedDataParallel: model.register_comm_hook(None, drun.torch.ddp_hook) has drun average the
    gradients. `state` may be a process set. On a GPU drun uses a stream of its own: the future waits for it, the
    backward pass doesn't."""
    buffer = bucket.buffer()
    on_stream = contextlib.nullcontext
    if buffer.is_cuda:
        stream = _stream_beside(buffer.device)
        stream.wait_stream(torch.cuda.current_stream(buffer.device))
        buffer.record_stream(stream)  # its memory must not be reused before our stream is done

        def on_stream():
            return torch.cuda.stream(stream)

    future = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)

    def tell(handle):
        with on_stream():  # the stream that the future records and waits for
            try:
                future.set_result(handle.wait())
            except BaseException as error:
                future.set_exception(error)

    with on_stream():
        handle = allreduce_async_(buffer, name=f"ddp bucket {bucket.index()}", process_set=state)
    handle.when_done(tell)
    return future
