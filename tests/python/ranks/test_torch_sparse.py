"""Gradients of torch.nn.Embedding(sparse=True)."""
import unittest

import torch

import drun as hvd
from drun._sparse import sparse_allreduce_async

ROWS, WIDTH = 12, 3


def setUpModule():
    torch.set_num_threads(1)
    hvd.init()


class Words(torch.nn.Module):
    def __init__(self, sparse):
        super().__init__()
        torch.manual_seed(2)
        self.table = torch.nn.Embedding(ROWS, WIDTH, sparse=sparse)
        self.other = torch.nn.Embedding(4, WIDTH, sparse=sparse)  # used by only some ranks
        self.unused = torch.nn.Embedding(4, WIDTH, sparse=sparse)
        self.out = torch.nn.Linear(WIDTH, 1)

    def forward(self, numbers):
        return self.out(torch.tanh(self.table(numbers))).sum()


def loss_of(model, rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    loss = model(torch.randint(ROWS, (5 + rank,), generator=generator))  # with repetitions
    return loss + model.other(torch.tensor([step])).sum() if rank == 0 else loss


class SparseGradients(unittest.TestCase):
    def check(self, sparse, make, op, passes=1, **arguments):
        alone, model = Words(False), Words(sparse)
        plain = make(alone, False)
        optimizer = hvd.DistributedOptimizer(make(model, sparse), named_parameters=model.named_parameters(), op=op,
                                             backward_passes_per_step=passes, **arguments)
        for step in range(3):
            plain.zero_grad(), optimizer.zero_grad()
            for _ in range(passes):
                (sum(loss_of(alone, rank, step) for rank in range(hvd.size())) / (hvd.size() if op == hvd.Average else 1)).backward()
                loss_of(model, hvd.rank(), step).backward()
            plain.step(), optimizer.step()
            self.assertEqual(model.table.weight.grad.is_sparse, sparse)
            self.assertIsNone(model.unused.weight.grad)
            for (name, expected), got in zip(alone.state_dict().items(), model.state_dict().values()):
                self.assertTrue(torch.allclose(got, expected, rtol=1e-4, atol=1e-5), (name, (got - expected).abs().max()))

    @staticmethod
    def sgd(model, sparse):
        del sparse
        return torch.optim.SGD(model.parameters(), lr=0.1)

    def test_the_model_of_one_rank(self):
        self.check(True, self.sgd, hvd.Sum)
        self.check(True, self.sgd, hvd.Average, gradient_predivide_factor=2.0)
        self.check(False, self.sgd, hvd.Average)

    def test_several_passes_and_small_buckets(self):
        self.check(True, self.sgd, hvd.Average, passes=2, bucket_bytes=32)

    def test_only_rows_that_some_rank_has_used_travel(self):
        model = torch.nn.Embedding(50, 2, sparse=True)
        optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(model.parameters()), lr=0.1))
        hvd.broadcast_parameters(model.state_dict())
        for step in range(3):
            optimizer.zero_grad()
            model(torch.tensor([hvd.rank(), 40 + step])).sum().backward()
            optimizer.step()
            self.assertEqual(model.weight.grad.coalesce().indices().tolist(), [[*range(hvd.size()), 40 + step]])
            self.assertTrue(torch.allclose(model.weight.grad.to_dense()[40 + step], torch.ones(2)))
        self.assertTrue(all(torch.equal(model.weight, one) for one in hvd.allgather(model.weight.detach()[None])))

    def test_sparse_here_and_dense_there(self):
        if hvd.size() == 1:
            return
        weight = torch.nn.Parameter(torch.zeros(4, 2))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), named_parameters=[("table", weight)])
        torch.nn.functional.embedding(torch.tensor([1]), weight, sparse=hvd.rank() == 0).sum().backward()
        with self.assertRaisesRegex(ValueError, f"of table is sparse on 1 ranks and dense on {hvd.size() - 1}"):
            optimizer.step()

    def test_empty_here_and_none_there(self):
        """An optimizer steps on an empty gradient too: either all ranks do or none."""
        self.check_empty(hvd.size() - 1)
        self.check_empty(0)

    def check_empty(self, who):
        torch.manual_seed(3)
        table, other = torch.nn.Embedding(6, 2, sparse=True), torch.nn.Embedding(3, 2, sparse=True)
        named = [("table", table.weight), ("other", other.weight)]
        momentum = torch.optim.SGD([weight for _, weight in named], lr=0.1, momentum=0.9)
        optimizer = hvd.DistributedOptimizer(momentum, named_parameters=named)
        for step in range(5):
            for _, weight in named:
                weight.grad = None
            other(torch.tensor([hvd.rank() % 3])).sum().backward()
            if step % 2 == 0 and hvd.rank() == who:  # no index at all
                table(torch.empty(0, dtype=torch.int64)).sum().backward()
            elif step == 3 and hvd.rank() == who:
                table(torch.tensor([5, 5])).sum().backward()
            optimizer.step()
            self.assertEqual(table.weight.grad is None, step == 1, step)
        for weight in (table.weight, other.weight):
            same = hvd.allgather(weight.detach()[None])
            self.assertTrue(all(torch.equal(one, same[0]) for one in same))

    def test_halves_travel(self):
        self.check_halves(hvd.Compression.fp16)
        self.check_halves(hvd.Compression.bf16)

    def check_halves(self, compression):
        table = torch.nn.Embedding(5, 2, sparse=True)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=1.0), op=hvd.Sum, compression=compression)
        for _ in range(2):
            optimizer.zero_grad()
            (table(torch.tensor([3])) * (1 + hvd.rank())).sum().backward()
            optimizer.synchronize()
            self.assertEqual(table.weight.grad.to_dense()[3].tolist(), [sum(range(1, hvd.size() + 1))] * 2)


class SparseAllreduce(unittest.TestCase):
    def test_sums_and_averages(self):
        mine = torch.sparse_coo_tensor([[0, hvd.rank(), 0], [1, 1, 1]], [1.0, 2.0, 3.0], (8, 2))
        dense = hvd.allreduce(mine.to_dense(), op=hvd.Sum)
        handle = hvd.sparse_allreduce_async(mine, name="sparse", op=hvd.Sum)
        self.assertTrue(torch.equal(hvd.synchronize(handle).to_dense(), dense))
        self.assertTrue(hvd.poll(handle))
        self.assertTrue(torch.equal(handle().to_dense(), dense))
        average = hvd.synchronize(hvd.sparse_allreduce_async(mine))
        self.assertTrue(torch.allclose(average.to_dense(), dense / hvd.size()))

    def test_an_average_of_integers_keeps_its_type(self):
        for dtype in (torch.int32, torch.int64, torch.uint8):
            rank = hvd.rank()
            values = torch.tensor([7, rank + 1], dtype=dtype) * (1 if dtype == torch.uint8 else -1)
            mine = torch.sparse_coo_tensor([[0, 1 + rank]], values, (9,))
            average = hvd.synchronize(hvd.sparse_allreduce_async(mine))
            self.assertEqual(average.dtype, dtype)
            self.assertTrue(torch.equal(average.to_dense(), hvd.allreduce(mine.to_dense())), average)
        with self.assertRaisesRegex(ValueError, "factors are for floating types, not for torch.int64"):
            sparse_allreduce_async(torch.ones(2, dtype=torch.int64).to_sparse(), factor=0.5)

    def test_nobody_has_an_element(self):
        nothing = torch.zeros(4, 2).to_sparse()
        for op in (hvd.Sum, hvd.Average):
            total = hvd.synchronize(hvd.sparse_allreduce_async(nothing, op=op))
            self.assertEqual((total._nnz(), total.shape), (0, (4, 2)))

    def test_what_is_not_possible(self):
        with self.assertRaisesRegex(ValueError, "summed and averaged"):
            hvd.sparse_allreduce_async(torch.zeros(2).to_sparse(), op=hvd.Max)
        with self.assertRaisesRegex(ValueError, "takes sparse tensors"):
            hvd.sparse_allreduce_async(torch.zeros(2))
        with self.assertRaisesRegex(ValueError, "sparse_allreduce_async"):
            hvd.allreduce(torch.zeros(2).to_sparse())
