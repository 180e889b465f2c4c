"""BatchNorm over the batches of all ranks."""
import torch
import torch.nn.functional as F

from ._groups import Group
from ._reductions import Sum, allreduce_


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """Like torch.nn.BatchNorm1d, 2d and 3d, with the mean and variance over the batches of all ranks, which may differ
    in size and be empty. Every rank must run forward and backward equally often. The gradients of weight and bias are
    this rank's part, like those of all other parameters."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_set=None, **factory):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, **factory)
        self.process_set = process_set

    @classmethod
    def convert_sync_batchnorm(cls, module, process_set=None):
        """The module with each BatchNorm in it replaced by a SyncBatchNorm that has the same parameters and buffers."""
        result = module
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and not isinstance(module, cls):
            result = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_set)
            result._parameters.update(module._parameters)
            result._buffers.update(module._buffers)
            result.train(module.training)
        for name, child in module.named_children():
            setattr(result, name, cls.convert_sync_batchnorm(child, process_set))
        return result

    def _check_input_dim(self, tensor):
        if tensor.dim() < 2 or tensor.shape[1] != self.num_features:
            raise ValueError(f"SyncBatchNorm({self.num_features}) takes (samples, {self.num_features}, ...), "
                             f"not {list(tensor.shape)}")

    def forward(self, tensor):
        uses_running = not self.training and self.running_mean is not None
        if uses_running or Group(self.process_set).size == 1:
            return super().forward(tensor)
        self._check_input_dim(tensor)
        result, mean, var, count = _Normalize.apply(tensor, self.weight, self.bias, self.eps, self.process_set)
        if self.training and self.running_mean is not None:
            self._follow(mean, var, count)
        return result

    @torch.no_grad()
    def _follow(self, mean, var, count):
        self.num_batches_tracked += 1
        # No number is read from the device: that would wait for it in each layer.
        part = self.momentum if self.momentum is not None else self.num_batches_tracked.to(mean.dtype).reciprocal()
        unbiased = var * (count / (count - 1)).to(var.dtype)
        self.running_mean.mul_(1 - part).add_(mean * part)
        self.running_var.mul_(1 - part).add_(unbiased * part)


class _Normalize(torch.autograd.Function):
    """(result, mean, variance, number of values per channel); all on the tensor's device"""

    @staticmethod
    def forward(ctx, tensor, weight, bias, eps, process_set):
        channels, others = tensor.shape[1], [d for d in range(tensor.dim()) if d != 1]
        n_values = tensor.numel() // max(channels, 1)
        wide = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()
        # float64, so that the square of a large mean doesn't swallow a small variance.
        sums = torch.zeros(2 * channels + 1, dtype=torch.float64, device=tensor.device)
        if n_values:
            var, mean = torch.var_mean(wide, others, unbiased=False)
            mean, var = mean.double(), var.double()
            sums[:channels] = n_values * mean
            sums[channels:-1] = n_values * (var + mean * mean)
        sums[-1] = n_values
        allreduce_(sums, op=Sum, name="SyncBatchNorm", process_set=process_set)
        count = sums[-1].clone()
        if n_values <= 1 and count.item() <= 1:
            raise ValueError("SyncBatchNorm wants more than one value per channel in the batches of all ranks together")
        mean = sums[:channels] / count
        var = (sums[channels:-1] / count - mean * mean).clamp_(min=0)
        mean, var = mean.to(wide.dtype), var.to(wide.dtype)
        ctx.save_for_backward(wide, weight, mean, var, count)
        ctx.others, ctx.eps, ctx.process_set, ctx.dtype = others, eps, process_set, tensor.dtype
        ctx.mark_non_differentiable(mean, var, count)
        # The sums cover all ranks: normalize by given statistics.
        weight, bias = (None if one is None else one.to(wide.dtype) for one in (weight, bias))
        result = F.batch_norm(wide, mean, var, weight, bias, False, 0.0, eps) if n_values else wide.clone()
        return result.to(tensor.dtype), mean, var, count

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient, *_):
        tensor, weight, mean, var, count = ctx.saved_tensors
        shape = [1, -1] + [1] * (tensor.dim() - 2)
        gradient = gradient.to(tensor.dtype)
        scale = (var + ctx.eps).rsqrt()
        normal = (tensor - mean.view(shape)) * scale.view(shape)
        of_bias, of_weight = gradient.sum(ctx.others), (gradient * normal).sum(ctx.others)
        of_tensor = None
        if ctx.needs_input_grad[0]:
            means = torch.cat([of_bias, of_weight]).double() / count
            allreduce_(means, op=Sum, name="SyncBatchNorm, backward", process_set=ctx.process_set)
            of_bias_everywhere, of_weight_everywhere = means.to(tensor.dtype).chunk(2)
            of_tensor = gradient - of_bias_everywhere.view(shape) - normal * of_weight_everywhere.view(shape)
            of_tensor = (of_tensor * (scale if weight is None else scale * weight.to(scale.dtype)).view(shape)).to(ctx.dtype)
        of_weight = of_weight.to(weight.dtype) if ctx.needs_input_grad[1] else None
        of_bias = of_bias.to(weight.dtype) if ctx.needs_input_grad[2] else None
        return of_tensor, of_weight, of_bias, None, None
