import copy
import unittest
import warnings

import torch
import torch.nn.functional as F

import drun.torch as hvd


def setUpModule():
    torch.set_num_threads(1)
    hvd.init()


def model_of(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def batches(n=5, size=24):
    generator = torch.Generator().manual_seed(7)
    return [(torch.randn(size, 6, generator=generator), torch.randint(3, (size,), generator=generator)) for _ in range(n)]


def part(tensor, pieces=1, piece=0):
    n_parts = hvd.size() * pieces
    at = hvd.rank() * pieces + piece
    return tensor[len(tensor) * at // n_parts: len(tensor) * (at + 1) // n_parts]


def alone(make_optimizer):
    """The result of one rank with all of the data."""
    model = model_of()
    optimizer = make_optimizer(model.parameters())
    for inputs, labels in batches():
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    return model


def same_everywhere(model):
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    return all(torch.equal(flat, one) for one in hvd.allgather(flat[None]))


class SameModel(unittest.TestCase):
    """The same model as on one rank with the same batches."""

    def check(self, make_optimizer, tolerance=1e-5, passes=1, **arguments):
        model = model_of(hvd.rank())
        hvd.broadcast_parameters(model.state_dict(), 0)
        optimizer = hvd.DistributedOptimizer(make_optimizer(model.parameters()), backward_passes_per_step=passes, **arguments)
        for inputs, labels in batches():
            optimizer.zero_grad()
            for piece in range(passes):
                loss = F.cross_entropy(model(part(inputs, passes, piece)), part(labels, passes, piece))
                (loss / passes).backward()
            optimizer.step()
        self.assertTrue(same_everywhere(model))
        for got, expected in zip(model.parameters(), alone(make_optimizer).parameters()):
            self.assertTrue(torch.allclose(got, expected, rtol=tolerance, atol=tolerance), (got - expected).abs().max())

    def sgd(self, parameters):
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)

    def test_sgd(self):
        self.check(self.sgd)

    def test_adam(self):
        self.check(lambda parameters: torch.optim.Adam(parameters, lr=0.01), tolerance=1e-4)

    def test_a_bucket_for_each_parameter(self):
        self.check(self.sgd, bucket_bytes=1)

    def test_large_ones_by_themselves(self):
        for memory_format in (torch.contiguous_format, torch.channels_last):
            torch.manual_seed(4)
            model = torch.nn.Sequential(torch.nn.Conv2d(256, 128, 3, padding=1), torch.nn.Tanh(), torch.nn.Conv2d(128, 1, 1))
            model = model.to(memory_format=memory_format)
            unused = torch.nn.Parameter(torch.ones(512, 600))
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD([*model.parameters(), unused], lr=0.1), op=hvd.Sum)
            inputs = torch.randn(4, 256, 2, 2, generator=torch.Generator().manual_seed(8))
            expected = torch.autograd.grad(model(inputs).sum(), model[0].weight)[0]
            loss = model(part(inputs)).sum()
            if hvd.rank() == 0:
                loss = loss + unused.sum()
            loss.backward()
            before = model[0].weight.grad.data_ptr()
            optimizer.synchronize()
            self.assertEqual(model[0].weight.grad.data_ptr(), before)
            self.assertTrue(torch.allclose(model[0].weight.grad, expected, rtol=1e-3, atol=1e-4))
            self.assertTrue(torch.equal(unused.grad, torch.ones(512, 600)))

    def test_gradients_whose_memory_autograd_goes_on_with(self):
        # autograd passes the gradient of the sum unchanged to both terms.
        for shaped in (lambda p: p.squeeze(0), lambda p: p.view(-1), lambda p: p.reshape(300_000)):
            x = torch.linspace(1, 2, 300_000)
            w, p = torch.nn.Parameter(torch.ones(300_000)), torch.nn.Parameter(torch.ones(1, 300_000))
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD([w, p], lr=0.1), op=hvd.Sum)
            (w * x + shaped(p)).mul(hvd.rank() + 1.0).sum().backward()
            optimizer.synchronize()
            total = hvd.size() * (hvd.size() + 1) / 2
            self.assertTrue(torch.allclose(w.grad, total * x))
            self.assertTrue(torch.equal(p.grad, torch.full((1, 300_000), total)))

    def test_several_backward_passes_per_step(self):
        self.check(self.sgd, passes=2)

    def test_predivided(self):
        self.check(self.sgd, gradient_predivide_factor=4.0)

    def test_compressed(self):
        self.check(self.sgd, tolerance=3e-3, compression=hvd.Compression.fp16)
        self.check(self.sgd, tolerance=3e-2, compression=hvd.Compression.bf16)

    def test_groups_of_parameters(self):
        def make(parameters):
            parameters = list(parameters)
            return torch.optim.SGD([{"params": parameters[:2], "lr": 0.2}, {"params": parameters[2:]}], lr=0.1)

        self.check(make)


class Optimizer(unittest.TestCase):
    def test_of_another_library_is_refused_by_name(self):
        class SGD:
            pass

        SGD.__module__ = "keras.src.optimizers.sgd"
        with self.assertRaisesRegex(TypeError, "not one of keras.src.optimizers.sgd: there is none for TensorFlow and Keras"):
            hvd.DistributedOptimizer(SGD())

    def distributed(self, model, **arguments):
        return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), **arguments)

    def test_is_one_of_its_class(self):
        model = model_of()
        inner = torch.optim.SGD(model.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.StepLR(inner, 1, gamma=0.5)  # one before wrapping, one after
        optimizer = hvd.DistributedOptimizer(inner, named_parameters=model.named_parameters())
        self.assertIsInstance(optimizer, torch.optim.SGD)
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
        model(torch.ones(1, 6) * hvd.rank()).sum().backward()
        optimizer.step()
        self.assertTrue(same_everywhere(model))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            schedule.step()
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.5)

    def test_a_parameter_that_some_ranks_use(self):
        model = model_of()
        extra = torch.nn.Parameter(torch.zeros(4))
        unused = torch.nn.Parameter(torch.ones(2))
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([*model.parameters(), extra, unused], lr=1.0, weight_decay=0.5), op=hvd.Sum, bucket_bytes=64)
        loss = model(torch.ones(1, 6)).sum()
        if hvd.rank() == hvd.size() - 1:
            loss = loss + extra.sum()
        loss.backward()
        optimizer.step()
        self.assertEqual(extra.tolist(), [-1.0] * 4)
        # Parameters that no rank has used are left alone: no weight decay.
        self.assertIsNone(unused.grad)
        self.assertEqual(unused.tolist(), [1.0, 1.0])
        self.assertTrue(same_everywhere(model))

    def test_clipping_between_synchronize_and_step(self):
        model = model_of()
        optimizer = self.distributed(model, op=hvd.Sum)
        model(torch.full((1, 6), 1.0 + hvd.rank())).sum().backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.001)
        before = [p.detach().clone() for p in model.parameters()]
        with optimizer.skip_synchronize():
            optimizer.step()
        moved = sum(((p.detach() - old) ** 2).sum() for p, old in zip(model.parameters(), before)) ** 0.5
        self.assertAlmostEqual(moved.item(), 0.001, places=5)
        self.assertTrue(same_everywhere(model))

    def test_mistakes(self):
        if hvd.size() == 1:
            return
        model = model_of()
        optimizer = self.distributed(model)
        model(torch.ones(1, 6)).sum().backward()
        with self.assertRaisesRegex(RuntimeError, "zero_grad.. between backward"):
            optimizer.zero_grad()
        with self.assertRaisesRegex(RuntimeError, "more than backward_passes_per_step=1 times"):
            model(torch.ones(1, 6)).sum().backward()
        optimizer.load_state_dict(optimizer.state_dict())  # starts over
        optimizer.zero_grad()
        model(torch.ones(1, 6)).sum().backward()
        optimizer.step()
        for named, why in (([("a", p) for p in model.parameters()], "same name"), ([], "lacks 4 of the 4"),
                           (list(model.parameters()), "sequence of")):
            with self.assertRaisesRegex(ValueError, why):
                self.distributed(model, named_parameters=named)

    def test_adasum_takes_each_gradient_by_itself(self):
        first, second = torch.nn.Parameter(torch.zeros(hvd.size())), torch.nn.Parameter(torch.zeros(2))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first, second], lr=1.0), op=hvd.Adasum)
        (first[hvd.rank()] + second.sum()).backward()  # orthogonal gradients, and equal ones
        optimizer.step()
        self.assertTrue(torch.allclose(first, torch.full((hvd.size(),), -1.0)))
        self.assertTrue(torch.allclose(second, torch.full((2,), -1.0)))

    def test_parameters_that_are_unfrozen_later(self):
        for arguments in ({}, {"compression": hvd.Compression.topk(1)}, {"partial_update": 1}):
            model = model_of()
            for p in model[0].parameters():
                p.requires_grad_(False)
            optimizer = self.distributed(model, **arguments)
            for step in range(4):
                if step == 2:
                    model.requires_grad_(True)
                optimizer.zero_grad()
                model(torch.full((1, 6), 1.0 + hvd.rank())).sum().backward()
                optimizer.step()
                self.assertTrue(same_everywhere(model), (arguments, step))
            self.assertFalse(torch.equal(model[0].weight, model_of()[0].weight))

    def test_passes_that_are_given_up(self):
        model = model_of()
        optimizer = self.distributed(model, backward_passes_per_step=2, op=hvd.Sum)
        for n_passes in (1, 2):
            optimizer.zero_grad()
            for _ in range(n_passes):
                model(torch.ones(1, 6)).sum().backward()
        optimizer.synchronize()
        self.assertEqual(model[2].bias.grad.tolist(), [2.0 * hvd.size()] * 3)

    def test_halves_of_large_gradients(self):
        """Finite gradients have finite averages, and infinities and NaN pass."""
        for compression, large in ((hvd.Compression.fp16, 60000.0), (hvd.Compression.bf16, 2.0**127)):
            for op in (hvd.Average, hvd.Sum):
                weight = torch.nn.Parameter(torch.zeros(4))
                optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), compression=compression, op=op)
                (weight * torch.tensor([large, 3.0e38, float("inf"), float("nan")])).sum().backward()
                optimizer.synchronize()
                if hvd.size() == 1:
                    continue  # nothing travels
                if op == hvd.Average:
                    self.assertAlmostEqual(weight.grad[0].item() / large, 1, places=2)
                    self.assertTrue(weight.grad[1].isfinite())
                self.assertTrue(weight.grad[2].isinf() and weight.grad[3].isnan())

    def test_halves_of_scaled_losses(self):
        """A value that is too large becomes infinite: the scaler looks for those."""
        weight = torch.nn.Parameter(torch.zeros(2))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), compression=hvd.Compression.fp16,
                                             loss_scale=lambda: 65536.0)
        (weight * torch.tensor([70000.0 * hvd.size(), 1.0])).sum().backward()
        optimizer.synchronize()
        self.assertEqual(weight.grad.tolist(), [float("inf") if hvd.size() > 1 else 70000.0, 1.0])

    def test_halves_that_are_divided_before_and_after(self):
        weight = torch.nn.Parameter(torch.zeros(2))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), compression=hvd.Compression.fp16,
                                             gradient_predivide_factor=0.5)
        (weight * torch.tensor([3e-8, 1.0])).sum().backward()  # the first is less than half of the smallest half
        optimizer.synchronize()
        self.assertGreater(weight.grad[0].item(), 0)
        self.assertEqual(weight.grad[1].item(), 1.0)

    def test_no_copy(self):
        with self.assertRaisesRegex(TypeError, "can't be copied or pickled: its state_dict.. can"):
            copy.deepcopy(self.distributed(model_of()))

    def test_in_a_process_set(self):
        if hvd.size() == 1:
            return
        some = hvd.add_process_set([0, hvd.size() - 1] if hvd.size() > 2 else [0])
        for compression in (hvd.Compression.none, hvd.Compression.topk(0.5)):
            weight = torch.nn.Parameter(torch.zeros(1))
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), process_set=some, compression=compression)
            (weight * hvd.rank()).sum().backward()
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
            self.assertEqual(weight.item(), -sum(some.ranks) / some.size() if some.included() else -hvd.rank())
        hvd.remove_process_set(some)

    def test_sparse_gradients(self):
        table = torch.nn.Embedding(5, 2, sparse=True)
        with torch.no_grad():
            table.weight.zero_()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=1.0), op=hvd.Sum, sparse_as_dense=True)
        if hvd.rank() == 0:  # the others have never had a gradient, and step on a sparse one as well
            table(torch.tensor([1])).sum().backward()
        optimizer.step()
        self.assertTrue(table.weight.grad.is_sparse)
        self.assertEqual(table.weight[1, 0].item(), -1)
        optimizer.zero_grad()
        table(torch.tensor([hvd.rank() % 4, 4])).sum().backward()
        optimizer.step()
        self.assertEqual(table.weight[4, 0].item(), -hvd.size())
        if hvd.size() > 1:
            table.weight.grad = None
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=1.0), named_parameters=[("t", table.weight)],
                                                 op=hvd.Adasum)
            with self.assertRaisesRegex(ValueError, "the gradient of t is sparse"):
                table(torch.tensor([0])).sum().backward()

    def test_closures(self):
        model = model_of()
        optimizer = hvd.DistributedOptimizer(torch.optim.LBFGS(model.parameters(), max_iter=3))
        inputs, labels = batches(1)[0]

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(part(inputs)), part(labels))
            loss.backward()
            return hvd.allreduce(loss.detach()) + 0 * loss  # the same decisions on every rank

        optimizer.step(closure)
        self.assertTrue(same_everywhere(model))

    def test_a_new_group_of_parameters(self):
        for is_named in (False, True):
            model, more = model_of(), torch.nn.Linear(3, 1, bias=False)
            hvd.broadcast_parameters(more.named_parameters())
            optimizer = self.distributed(model, named_parameters=list(model.named_parameters()) if is_named else None)
            optimizer.add_param_group({"params": list(more.parameters())})
            more(model(torch.full((1, 6), float(hvd.rank())))).sum().backward()
            optimizer.step()
            self.assertTrue(same_everywhere(model) and same_everywhere(more))

    def test_a_closure_that_clips(self):
        model = model_of()
        optimizer = self.distributed(model, op=hvd.Sum)

        def closure():
            optimizer.zero_grad()
            loss = model(torch.full((1, 6), 1.0 + hvd.rank())).sum()
            loss.backward()
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.001)
            return loss

        before = [p.detach().clone() for p in model.parameters()]
        with optimizer.skip_synchronize():
            optimizer.step(closure)
        moved = sum(((p.detach() - old) ** 2).sum() for p, old in zip(model.parameters(), before)) ** 0.5
        self.assertAlmostEqual(moved.item(), 0.001, places=5)
        self.assertTrue(same_everywhere(model))

    def test_one_that_is_gone_has_no_part_in_the_next(self):
        model = model_of()
        for _ in range(3):
            optimizer = self.distributed(model, op=hvd.Sum)
            optimizer.zero_grad()
            model(torch.ones(1, 6)).sum().backward()
            optimizer.synchronize()
            self.assertEqual(model[2].bias.grad.tolist(), [float(hvd.size())] * 3)


class State(unittest.TestCase):
    def test_is_loaded_for_older_schedulers_too(self):
        model = model_of()
        inner = torch.optim.SGD(model.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.StepLR(inner, 1, gamma=0.5)
        optimizer = hvd.DistributedOptimizer(inner)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the scheduler's own optimizer makes no steps
            schedule.step()
            state = optimizer.state_dict()
            state["param_groups"][0]["momentum"] = 0.25
            optimizer.load_state_dict(state)
            schedule.step()
        self.assertEqual((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]), (0.25, 0.25))
        self.assertIs(optimizer.param_groups, inner.param_groups)

    def test_of_optimizers_around_others(self):
        """Their state has other keys, and loading it may leave the groups as they are."""
        class Around(torch.optim.SGD):
            def state_dict(self):
                return {"base": super().state_dict(), "slow": torch.ones(2)}

            def load_state_dict(self, state_dict):
                self.slow = state_dict["slow"]

        optimizer = hvd.DistributedOptimizer(Around(model_of().parameters(), lr=0.5))
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        optimizer.load_state_dict(optimizer.state_dict())
        self.assertEqual((optimizer.param_groups[0]["lr"], len(optimizer.param_groups[0]["params"])), (0.5, 4))

    def test_is_loaded_without_a_second_call_of_the_hooks_of_a_step(self):
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model_of().parameters(), lr=1.0))
        step = type(optimizer).step
        optimizer.load_state_dict(optimizer.state_dict())
        self.assertIs(type(optimizer).step, step)  # torch has put nothing around it
        if hasattr(optimizer, "register_step_post_hook"):  # torch 2.0
            called = []
            optimizer.register_step_post_hook(lambda *_: called.append(1))
            optimizer.step()
            self.assertEqual(called, [1])

    def test_of_a_checkpoint_that_only_the_root_has(self):
        for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.Adam(p, lr=0.1)):
            model = model_of()
            optimizer = make(model.parameters())
            if hvd.rank() == 0:
                model(torch.ones(1, 6)).sum().backward()
                optimizer.step()
                optimizer.param_groups[0]["lr"] = 0.025
            hvd.broadcast_parameters(model.state_dict(), root_rank=0)
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
            self.assertEqual(optimizer.param_groups[0]["lr"], 0.025)
            distributed = hvd.DistributedOptimizer(optimizer)
            distributed.zero_grad()
            model(torch.full((1, 6), float(hvd.rank()))).sum().backward()
            distributed.step()
            self.assertTrue(same_everywhere(model))

    def test_other_orders_of_dimensions(self):
        weight = torch.full((2, 3, 4, 4), float(hvd.rank())).to(memory_format=torch.channels_last)
        weight[0, 1] += 5
        hvd.broadcast_parameters([("weight", weight)], 0)
        self.assertEqual((weight[0, 0, 0, 0].item(), weight[0, 1, 2, 2].item()), (0.0, 5.0))
        self.assertFalse(weight.is_contiguous())

    def test_everything_is_in_drun_torch(self):
        for name in ("init", "rank", "allreduce_async_", "Compression", "DistributedOptimizer", "ProcessSet", "Adasum"):
            self.assertTrue(hasattr(hvd, name), name)
