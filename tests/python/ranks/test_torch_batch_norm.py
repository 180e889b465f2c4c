"""SyncBatchNorm over the ranks' parts of a batch equals BatchNorm over the whole batch."""
import unittest

import torch

import drun as hvd


def setUpModule():
    torch.set_num_threads(1)
    hvd.init()


def rows_of(rank, n_rows):
    """Parts of different sizes; with three ranks or more, the first part is empty."""
    first = 0 if hvd.size() < 3 else 1
    if rank < first:
        return slice(0, 0)
    n_parts, part = hvd.size() - first, rank - first
    return slice(n_rows * part * part // n_parts ** 2, n_rows * (part + 1) ** 2 // n_parts ** 2)


def everywhere(tensor):
    return hvd.allreduce(tensor, op=hvd.Sum)


class SyncBatchNorm(unittest.TestCase):
    def compare(self, whole, part, shape, dtype=torch.float64, tolerance=1e-9, offset=2.0, steps=2):
        generator = torch.Generator().manual_seed(3)
        mine = rows_of(hvd.rank(), shape[0])
        for _ in range(steps):
            batch = (3 * torch.randn(shape, generator=generator, dtype=torch.float64) + offset).to(dtype)
            factor = torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
            results = []
            for norm, rows in ((whole, slice(None)), (part, mine)):
                norm.zero_grad()
                given = batch[rows].clone().requires_grad_()
                result = norm(given)
                ((result * factor[rows]) ** 2).sum().backward()
                results.append((result, given.grad, norm))
            (expected, expected_gradient, _), (result, gradient, _) = results
            self.assertEqual(result.dtype, dtype)
            self.close(result, expected[mine], tolerance)
            self.close(gradient, expected_gradient[mine], tolerance)
            for expected, got in zip(whole.parameters(), part.parameters()):
                self.close(everywhere(got.grad), expected.grad, tolerance * shape[0])
            for expected, got in zip(whole.buffers(), part.buffers()):
                self.close(got, expected, tolerance)

    def close(self, got, expected, tolerance):
        self.assertEqual(got.shape, expected.shape)
        self.assertTrue(torch.allclose(got, expected, rtol=tolerance, atol=tolerance),
                        (got - expected).abs().max() if got.numel() else None)

    def test_statistics_and_gradients(self):
        for shape, make in (((13, 4), torch.nn.BatchNorm1d), ((9, 3, 5), torch.nn.BatchNorm1d),
                            ((11, 2, 3, 4), torch.nn.BatchNorm2d), ((7, 2, 2, 3, 2), torch.nn.BatchNorm3d)):
            for arguments in ({}, {"affine": False}, {"momentum": None, "eps": 0.01}, {"track_running_stats": False}):
                whole = make(shape[1], **arguments).double()
                part = hvd.SyncBatchNorm(shape[1], **arguments).double()
                self.compare(whole, part, shape)
                whole.eval(), part.eval()
                self.compare(whole, part, shape, steps=1)

    def test_single_precision_far_from_zero(self):
        self.compare(torch.nn.BatchNorm1d(3), hvd.SyncBatchNorm(3), (64, 3), torch.float32, 2e-3, offset=500.0)

    def test_halves(self):
        norm = hvd.SyncBatchNorm(2)
        given = torch.arange(8.0).view(4, 2).bfloat16().requires_grad_()
        result = norm(given)
        result.float().square().sum().backward()
        self.assertEqual((result.dtype, given.grad.dtype, norm.weight.grad.dtype), (torch.bfloat16, torch.bfloat16, torch.float32))
        self.assertLess(result.float().mean(0).abs().max().item(), 0.02)

    def test_takes_the_place_of_others_in_a_model(self):
        torch.manual_seed(5)
        model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU(),
                                    torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3), torch.nn.BatchNorm1d(3)))
        weights = {id(weight) for weight in model.parameters()}
        names = list(model.state_dict())
        synchronized = hvd.SyncBatchNorm.convert_sync_batchnorm(model)
        self.assertEqual(sum(isinstance(one, hvd.SyncBatchNorm) for one in synchronized.modules()), 2)
        self.assertEqual({id(weight) for weight in synchronized.parameters()}, weights)
        self.assertEqual(list(synchronized.state_dict()), names)

    def test_trains_the_model_of_one_rank(self):
        def make():
            torch.manual_seed(5)
            return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()

        models = make(), hvd.SyncBatchNorm.convert_sync_batchnorm(make())
        alone = torch.optim.SGD(models[0].parameters(), lr=0.5)
        together = hvd.DistributedOptimizer(torch.optim.SGD(models[1].parameters(), lr=0.5), op=hvd.Sum)
        generator = torch.Generator().manual_seed(9)
        mine = rows_of(hvd.rank(), 24)
        for _ in range(4):
            batch = torch.randn(24, 4, generator=generator).double()
            for model, optimizer, rows in ((models[0], alone, slice(None)), (models[1], together, mine)):
                optimizer.zero_grad()
                ((model(batch[rows]) - batch[rows].sum(1, keepdim=True)) ** 2).sum().div(24).backward()
                optimizer.step()
        for expected, got in zip(models[0].state_dict().values(), models[1].state_dict().values()):
            self.close(got, expected, 1e-9)

    def test_one_value_alone_is_refused_on_all_ranks(self):
        given = torch.zeros(1 if hvd.rank() == 0 else 0, 2)
        with self.assertRaisesRegex(ValueError, "more than (one|1) value per channel"):
            hvd.SyncBatchNorm(2)(given)
        with self.assertRaisesRegex(ValueError, r"takes \(samples, 3, ...\), not \[4, 2\]"):
            hvd.SyncBatchNorm(3)(torch.zeros(4, 2))

    def test_in_a_process_set(self):
        if hvd.size() < 3:
            return
        some = hvd.add_process_set([0, hvd.size() - 1])
        if some.included():
            given = torch.full((2, 1), float(some.rank()))
            self.close(hvd.SyncBatchNorm(1, eps=1e-9, process_set=some)(given), 2 * given - 1, 1e-6)
        hvd.remove_process_set(some)
