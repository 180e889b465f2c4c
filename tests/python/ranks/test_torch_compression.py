"""DistributedOptimizer with topk, threshold and partial_update. test_training.py compares it with drun/training.hpp."""
import io
import unittest

import torch

import drun.torch as hvd
from drun import _feedback, _partial

NAN, INF = float("nan"), float("inf")


def setUpModule():
    torch.set_num_threads(1)
    hvd.init()


def exact(n, step, rank=None, dtype=torch.float32):
    """Small multiples of 2^-10: their sums are exact."""
    generator = torch.Generator().manual_seed(1000 * step + (hvd.rank() if rank is None else rank))
    return torch.randint(-64, 65, (n,), generator=generator).to(dtype) / 1024


def parameters(dtype=torch.float32):
    return [torch.nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in ((300, 7), (5,), (40,))]


def step_of(optimizer, trained, step):
    """A backward pass with the gradients of this step."""
    optimizer.zero_grad()
    sum((p * exact(p.numel(), 10 * step + number, dtype=p.dtype).view(p.shape)).sum()
        for number, p in enumerate(trained)).backward()
    optimizer.step()


def same_everywhere(tensors):
    flat = torch.cat([one.detach().flatten() for one in tensors])
    return all(torch.equal(flat, one) for one in hvd.allgather(flat[None]))


class Choice(unittest.TestCase):
    def chosen(self, values, fraction, dtype=torch.float32):
        values = torch.tensor(values, dtype=dtype)
        chosen = torch.zeros(len(values), dtype=torch.bool)
        _feedback._choose_top(values, chosen, fraction)
        return chosen.nonzero().flatten().tolist()

    def test_the_largest_absolute_values(self):
        for dtype in (torch.float32, torch.float64):
            self.assertEqual(self.chosen([0.5, -3, 2, 0.25], 0.5, dtype), [1, 2])
            self.assertEqual(self.chosen([1, -1, 1, 1, 0], 0.4, dtype), [0, 1])  # of equal ones the first
            self.assertEqual(self.chosen([1, INF, NAN, -INF], 0.25, dtype), [2])
            self.assertEqual(self.chosen([0, 0, 0], 1, dtype), [0, 1, 2])
            self.assertEqual(self.chosen([], 0.5, dtype), [])

    def test_number(self):
        for n, fraction, expected in ((0, 0.5, 0), (10, 1e-9, 1), (10, 0.1, 1), (10, 0.11, 2), (100, 0.07, 7), (10, 1, 10),
                                      (3, 0.999, 3)):
            self.assertEqual(_feedback.top_k_count(n, fraction), expected, (n, fraction))

    def test_least_number_of_a_threshold(self):
        for threshold in (0.0, 0.1, 0.3, 0.7, 1.0, 1e-50, 1e-44, 1e300):
            least = _feedback._least(threshold, torch.float32)
            self.assertGreaterEqual(least, threshold)
            below = torch.nextafter(torch.tensor(least), torch.tensor(-1.0)).item()
            self.assertTrue(below < threshold or below == torch.finfo(torch.float32).max, (threshold, least, below))
            self.assertEqual(_feedback._least(threshold, torch.float64), threshold)

    def test_rows(self):
        for index in (torch.int32, torch.int64):
            for value in (torch.float32, torch.float64):
                indices, values = torch.tensor([3, 7], dtype=index), torch.tensor([-0.1, NAN], dtype=value)
                got = _feedback._unpacked(_feedback._packed(indices, values), index, value)
                self.assertTrue(torch.equal(got[0], indices))
                self.assertTrue(torch.equal(got[1].nan_to_num(5.0), values.nan_to_num(5.0)))


class Feedback(unittest.TestCase):
    def distributed(self, trained, compression, **arguments):
        return hvd.DistributedOptimizer(torch.optim.SGD(trained, lr=1.0), compression=compression, **arguments)

    def test_nothing_is_lost(self):
        for compression in (hvd.Compression.topk(0.01), hvd.Compression.topk(0.3), hvd.Compression.threshold(0.06)):
            for dtype in (torch.float32, torch.float64):
                for bucket_bytes in (8 << 20, 1):
                    trained = parameters(dtype)
                    optimizer = self.distributed(trained, compression, op=hvd.Sum, bucket_bytes=bucket_bytes)
                    for step in range(5):
                        step_of(optimizer, trained, step)
                    self.assertTrue(same_everywhere(trained))
                    kept = optimizer.state_dict()["drun_feedback"]["kept"]
                    self.assertTrue(any(one.any() for one in kept.values()))
                    for number, p in enumerate(trained):
                        given = sum(exact(p.numel(), 10 * step + number, rank, dtype).view(p.shape)
                                    for step in range(5) for rank in range(hvd.size()))
                        self.assertTrue(torch.equal(hvd.allreduce(kept[number], op=hvd.Sum) - p.detach(), given))

    def test_number_that_is_sent(self):
        trained = parameters()
        optimizer = self.distributed(trained, hvd.Compression.topk(0.1), op=hvd.Sum)
        step_of(optimizer, trained, 0)
        for p in trained:
            n_sent = _feedback.top_k_count(p.numel(), 0.1)
            self.assertLessEqual(int(p.count_nonzero()), n_sent * hvd.size())
            self.assertGreaterEqual(int(p.count_nonzero()), 1)

    def test_everything_is_the_average(self):
        for compression in (hvd.Compression.topk(1), hvd.Compression.threshold(0)):
            trained, dense = parameters(), parameters()
            for step in range(2):
                step_of(self.distributed(trained, compression), trained, step)
                step_of(self.distributed(dense, hvd.Compression.none), dense, step)
            for got, expected in zip(trained, dense):
                self.assertTrue(torch.allclose(got, expected, rtol=1e-6, atol=1e-7))

    def test_other_types_travel_whole(self):
        weight = torch.nn.Parameter(torch.zeros(9, dtype=torch.bfloat16))
        optimizer = self.distributed([weight], hvd.Compression.topk(0.1), op=hvd.Sum)
        weight.sum().backward()
        optimizer.step()
        self.assertEqual(weight.tolist(), [-hvd.size()] * 9)

    def test_a_parameter_that_some_ranks_use(self):
        """Rank 0 keeps what it has of it until it uses it again."""
        extra, unused = (torch.nn.Parameter(torch.zeros(2)) for _ in range(2))
        optimizer = self.distributed([extra, unused], hvd.Compression.topk(0.5), op=hvd.Sum)
        last = hvd.size() - 1

        def step(rank_0_uses_it):
            optimizer.zero_grad(set_to_none=True)
            if hvd.rank() == last or rank_0_uses_it:
                (extra * torch.tensor([4.0, 1.0])).sum().backward()
            optimizer.step()

        step(True)  # the first element of each rank travels
        self.assertIsNone(unused.grad)
        self.assertEqual(extra.tolist(), [-4.0 * hvd.size(), 0.0])
        if hvd.size() == 1:
            return
        step(False)
        self.assertEqual(extra.tolist(), [-4.0 * (hvd.size() + 1), 0.0])
        self.assertTrue(same_everywhere([extra]))
        kept = optimizer.state_dict()["drun_feedback"]["kept"][0]
        self.assertEqual(kept.tolist(), [0.0, 2.0 if hvd.rank() == last else 1.0])

    def test_goes_on_from_its_state(self):
        whole, first = parameters(), parameters()
        uninterrupted = self.distributed(whole, hvd.Compression.topk(0.05))
        optimizer = self.distributed(first, hvd.Compression.topk(0.05))
        for step in range(3):
            step_of(uninterrupted, whole, step)
            step_of(optimizer, first, step)
        file = io.BytesIO()
        torch.save(optimizer.state_dict(), file)
        file.seek(0)
        second = [torch.nn.Parameter(p.detach().clone()) for p in first]
        optimizer = self.distributed(second, hvd.Compression.topk(0.05))
        optimizer.load_state_dict(torch.load(file))
        for step in range(3, 6):
            step_of(uninterrupted, whole, step)
            step_of(optimizer, second, step)
        for got, expected in zip(second, whole):
            self.assertTrue(torch.equal(got, expected))

    def test_the_state_of_another_rank_has_no_part(self):
        trained = parameters()
        optimizer = self.distributed(trained, hvd.Compression.threshold(0.05))
        step_of(optimizer, trained, 0)
        state = optimizer.state_dict()
        self.assertTrue(state["drun_feedback"]["kept"])
        for key, value in (("rank", hvd.rank() + 1), ("size", hvd.size() + 1)):
            optimizer.load_state_dict({**state, "drun_feedback": {**state["drun_feedback"], key: value}})
            self.assertFalse(optimizer.state_dict()["drun_feedback"]["kept"])
        optimizer.load_state_dict(state)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        kept = optimizer.state_dict()["drun_feedback"]["kept"]
        self.assertEqual(kept.keys(), state["drun_feedback"]["kept"].keys())
        for number, one in state["drun_feedback"]["kept"].items():
            self.assertTrue(torch.equal(kept[number], one))

    def test_follows_the_factor_of_the_loss(self):
        """As of torch's GradScaler: what is kept does not change when the factor does."""
        for compression in (hvd.Compression.topk(0.05), hvd.Compression.threshold(0.05)):
            plain, scaled = parameters(), parameters()
            factor = 1.0
            optimizers = (self.distributed(plain, compression, op=hvd.Sum),
                          self.distributed(scaled, compression, op=hvd.Sum, loss_scale=lambda: factor))
            for step, factor in enumerate((1024.0, 1024.0, 512.0, 4096.0)):
                step_of(optimizers[0], plain, step)
                optimizers[1].zero_grad()
                (factor * sum((p * exact(p.numel(), 10 * step + number).view(p.shape)).sum()
                              for number, p in enumerate(scaled))).backward()
                optimizers[1].synchronize()
                for p in scaled:
                    p.grad.div_(factor)
                with optimizers[1].skip_synchronize():
                    optimizers[1].step()
                for got, expected in zip(scaled, plain):
                    self.assertTrue(torch.equal(got, expected), (str(compression), step))
            kept = [optimizer.state_dict()["drun_feedback"]["kept"] for optimizer in optimizers]
            self.assertTrue(all(torch.equal(kept[0][number], kept[1][number]) for number in kept[0]))

    def test_what_is_not_finite_leaves_what_is_kept(self):
        weight = torch.nn.Parameter(torch.zeros(4))
        optimizer = self.distributed([weight], hvd.Compression.topk(0.25), op=hvd.Sum)
        for gradient, kept in (([8, 1, 2, 0.25], [0, 1, 2, 0.25]), ([INF, NAN, -INF, 0.5], [0, 1, 2, 0.75]),
                               ([0, 0, 0, 0], [0, 1, 0, 0.75])):
            optimizer.zero_grad()
            (weight * torch.tensor(gradient)).sum().backward()
            optimizer.synchronize()
            self.assertEqual(weight.grad.isfinite().all(), INF not in gradient)  # all ranks see it
            self.assertEqual(optimizer.state_dict()["drun_feedback"]["kept"][0].tolist(), kept)

    def test_stays_when_parameters_are_added(self):
        trained = parameters()
        optimizer = self.distributed(trained, hvd.Compression.threshold(10), op=hvd.Sum)
        step_of(optimizer, trained, 0)
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(3))]})
        kept = optimizer.state_dict()["drun_feedback"]["kept"]
        for number, p in enumerate(trained):
            self.assertTrue(torch.equal(kept[number], exact(p.numel(), number).view(p.shape)))

    def test_mistakes(self):
        for make in (lambda: hvd.Compression.topk(0), lambda: hvd.Compression.topk(1.5), lambda: hvd.Compression.topk(NAN),
                     lambda: hvd.Compression.threshold(-1), lambda: hvd.Compression.threshold(NAN)):
            with self.assertRaises(ValueError):
                make()
        with self.assertRaisesRegex(ValueError, "topk=0.1: .* only DistributedOptimizer"):
            hvd.allreduce(torch.zeros(3), compression=hvd.Compression.topk(0.1))
        with self.assertRaisesRegex(ValueError, "for op=Sum and op=Average"):
            self.distributed(parameters(), hvd.Compression.threshold(0.1), op=hvd.Adasum)


class Partial(unittest.TestCase):
    def distributed(self, trained, parts, **arguments):
        return hvd.DistributedOptimizer(torch.optim.SGD(trained, lr=1.0), partial_update=parts, **arguments)

    def test_parts(self):
        for counts in ([7], [3, 0, 5], [1, 1, 1], [], [10, 2]):
            for n_parts in (1, 2, 5, 20):
                pieces = [piece for number in range(n_parts) for piece in _partial.part_of(counts, number, n_parts)]
                elements = [(tensor, place) for tensor, begin, n in pieces for place in range(begin, begin + n)]
                self.assertEqual(elements, [(tensor, place) for tensor, n in enumerate(counts) for place in range(n)])
                lengths = [sum(n for _, _, n in _partial.part_of(counts, number, n_parts)) for number in range(n_parts)]
                self.assertLessEqual(max(lengths) - min(lengths), 1)

    def test_one_part_after_the_other(self):
        for bucket_bytes in (8 << 20, 20):
            trained = [torch.nn.Parameter(torch.zeros(2, 3)), torch.nn.Parameter(torch.zeros(4, dtype=torch.float64))]
            optimizer = self.distributed(trained, 2, bucket_bytes=bucket_bytes)
            mean = (hvd.size() - 1) / 2

            def step():
                optimizer.zero_grad()
                sum((p * -float(hvd.rank())).sum() for p in trained).backward()
                optimizer.step()
                return torch.cat([p.detach().flatten().double() for p in trained]).tolist()

            own = float(hvd.rank())
            self.assertEqual(step(), [mean] * 5 + [own] * 5)
            self.assertEqual(step(), [mean + own] * 5 + [2 * mean] * 5)
            optimizer.average_parameters()
            self.assertEqual(torch.cat([p.detach().flatten().double() for p in trained]).tolist(), [2 * mean] * 10)
            self.assertTrue(same_everywhere([trained[0]]))
            self.assertEqual(step(), [3 * mean] * 5 + [2 * mean + own] * 5)  # the first part again

    def test_a_rank_whose_gradients_have_overflowed(self):
        """torch's GradScaler (since 2.0) has the step decide: without a step of its own the rank takes part in the average."""
        weight = torch.nn.Parameter(torch.full((2,), 8.0))
        optimizer = self.distributed([weight], 1)
        optimizer._drun_scales = True
        (weight * 2.0 * hvd.size()).sum().backward()
        optimizer.found_inf, optimizer.grad_scale = torch.tensor(float(hvd.rank() == 0)), torch.tensor(2.0)
        optimizer.step()
        self.assertEqual(weight.tolist(), [8.0 - (hvd.size() - 1)] * 2)
        if hvd.size() == 1 or not hasattr(torch, "amp") or not hasattr(torch.amp, "GradScaler"):  # torch 2.3
            return
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        weight = torch.nn.Parameter(torch.full((2,), 8.0))
        optimizer = self.distributed([weight], 1)
        scaler.scale((weight * (INF if hvd.rank() == 0 else hvd.size())).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        self.assertEqual(weight.tolist(), [8.0 - (hvd.size() - 1)] * 2)

    def test_parameters_that_are_frozen_are_averaged_on(self):
        trained = parameters()
        optimizer = self.distributed(trained, 3)
        step_of(optimizer, trained, 0)
        trained[0].requires_grad_(False)
        added = torch.nn.Parameter(torch.zeros(3))
        optimizer.add_param_group({"params": [added]})
        for step in range(1, 4):
            step_of(optimizer, trained[1:] + [added], step)
        optimizer.average_parameters()
        self.assertTrue(same_everywhere(trained + [added]))

    def test_a_step_that_only_one_rank_makes(self):
        if hvd.size() == 1:
            return
        trained = parameters()
        optimizer = self.distributed(trained, 1)
        sum(p.sum() for p in trained).backward()
        optimizer._drun_partial.n_steps = hvd.rank()
        with self.assertRaisesRegex(hvd.DrunError, "all ranks call step.. equally often"):
            optimizer.step()
        hvd.shutdown()
        hvd.init()

    def test_a_rank_that_has_joined_has_no_part_in_the_average(self):
        if hvd.size() == 1:
            return
        hvd.shutdown()
        hvd.init(join=True)
        try:
            weight = torch.nn.Parameter(torch.zeros(3))
            optimizer = self.distributed([weight], 1)
            for step in range(2 if hvd.rank() else 1):
                optimizer.zero_grad()
                (weight * -6.0).sum().backward()
                optimizer.step()
                self.assertEqual(weight.tolist(), [6.0 * (step + 1)] * 3)
            hvd.join()
        finally:
            hvd.shutdown()
            hvd.init()

    def test_other_orders_of_dimensions(self):
        weight = torch.nn.Parameter(torch.zeros(2, 3, 2, 2).to(memory_format=torch.channels_last))
        optimizer = self.distributed([weight], 2)
        (weight * -float(hvd.rank())).sum().backward()
        optimizer.step()
        self.assertEqual(weight[0].flatten().tolist(), [(hvd.size() - 1) / 2] * 12)
        self.assertEqual(weight[1].flatten().tolist(), [float(hvd.rank())] * 12)

    def test_goes_on_from_its_state(self):
        trained = parameters()
        optimizer = self.distributed(trained, 3)
        step_of(optimizer, trained, 0)
        again = self.distributed(parameters(), 3)
        again.load_state_dict(optimizer.state_dict())
        self.assertEqual(again.state_dict().get("drun_turn"), 1 if hvd.size() > 1 else None)
        again.add_param_group({"params": [torch.nn.Parameter(torch.zeros(3))]})
        self.assertEqual(again.state_dict().get("drun_turn"), 1 if hvd.size() > 1 else None)

    def test_mistakes(self):
        for parts in (0, 1.5, -2):
            with self.assertRaisesRegex(ValueError, "number of parts"):
                self.distributed(parameters(), parts)
        with self.assertRaisesRegex(ValueError, "not gradients"):
            self.distributed(parameters(), 2, compression=hvd.Compression.fp16)
