import unittest

import numpy as np
import torch

import drun as hvd


def setUpModule():
    torch.set_num_threads(1)
    hvd.init()


def whole(make):
    return [make(rank) for rank in range(hvd.size())]


class Tensors(unittest.TestCase):
    def test_every_type(self):
        for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
                      torch.float64):
            mine = (torch.arange(5) + hvd.rank()).to(dtype)
            result = hvd.allreduce(mine, op=hvd.Sum)
            self.assertEqual(result.dtype, dtype)
            self.assertTrue(torch.equal(result, sum(whole(lambda r: torch.arange(5) + r)).to(dtype)))

    def test_in_place_and_views(self):
        mine = torch.zeros(3, 2)
        mine[1] = 1
        hvd.allreduce_(mine[1], op=hvd.Sum)
        self.assertEqual(mine[:, 0].tolist(), [0, hvd.size(), 0])

    def test_memory_shared_with_numpy_is_the_same_memory(self):
        memory = np.full(4, float(hvd.rank() + 1))
        hvd.broadcast_(torch.from_numpy(memory), 0)
        self.assertEqual(memory.tolist(), [1.0] * 4)

    def test_numbers(self):
        self.assertEqual(hvd.allreduce(torch.tensor(float(hvd.rank()))).item(), (hvd.size() - 1) / 2)

    def test_moves(self):
        for dtype in (torch.bool, torch.int16, torch.complex64, torch.bfloat16):
            mine = torch.ones(hvd.rank() + 1, 2).to(dtype)
            result = hvd.allgather(mine)
            self.assertEqual((result.dtype, tuple(result.shape)), (dtype, (sum(range(1, hvd.size() + 1)), 2)))
        result, received = hvd.alltoall(torch.arange(hvd.size()), splits=torch.ones(hvd.size(), dtype=torch.int32))
        self.assertEqual((result.tolist(), received.tolist()), ([hvd.rank()] * hvd.size(), [1] * hvd.size()))
        self.assertEqual(hvd.reducescatter(torch.ones(hvd.size(), 2), op=hvd.Sum).tolist(), [[float(hvd.size())] * 2])

    def test_what_can_t_be_used_is_refused(self):
        for tensor, why in ((torch.ones(3, 4).t(), "not contiguous"), (torch.ones(3, 3).to_sparse(), "sparse"),
                            (torch.ones(2, device="meta"), "on meta: drun takes those on the CPU"),
                            (torch.ones(2, dtype=torch.complex64).conj(), "conj"),
                            (torch.ones(2, dtype=torch.int16), "can't compute with int16")):
            with self.assertRaisesRegex(ValueError, why):
                hvd.allreduce(tensor)

    def test_compression(self):
        mine = torch.linspace(-1, 1, 100) * (hvd.rank() + 1)
        for compression in (hvd.Compression.none, hvd.Compression.fp16, hvd.Compression.bf16):
            result = hvd.allreduce(mine, op=hvd.Sum, compression=compression)
            exact = torch.linspace(-1, 1, 100) * sum(range(1, hvd.size() + 1))
            self.assertTrue(torch.allclose(result, exact, rtol=0.02))


class Autograd(unittest.TestCase):
    """The loss is the sum of the losses of all ranks; rank r weights its own by r + 1."""

    def gradient(self, collective, shape):
        given = torch.ones(shape, requires_grad=True)
        result = collective(given)
        (result * (hvd.rank() + 1)).sum().backward()
        return given.grad

    def test_allreduce(self):
        weights = sum(range(1, hvd.size() + 1))
        self.assertTrue((self.gradient(lambda t: hvd.allreduce(t, op=hvd.Sum), (2, 3)) == weights).all())
        self.assertTrue((self.gradient(lambda t: hvd.allreduce(t, postscale_factor=2.0), 3) == 2 * weights / hvd.size()).all())
        half = self.gradient(lambda t: hvd.allreduce(t, op=hvd.Sum, compression=hvd.Compression.fp16), 3)
        self.assertTrue((half == weights).all())

    def test_allgather(self):
        weights = sum(range(1, hvd.size() + 1))
        self.assertTrue((self.gradient(hvd.allgather, (hvd.rank() + 1, 2)) == weights).all())
        self.assertTrue((self.gradient(hvd.allgather, ()) == weights).all())

    def test_broadcast(self):
        weights = sum(range(1, hvd.size() + 1))
        self.assertTrue((self.gradient(lambda t: hvd.broadcast(t, 0), 3) == (weights if hvd.rank() == 0 else 0)).all())

    def test_alltoall(self):
        gradient = self.gradient(hvd.alltoall, hvd.size())
        self.assertEqual(gradient.tolist(), [rank + 1.0 for rank in range(hvd.size())])

    def test_reducescatter(self):
        gradient = self.gradient(lambda t: hvd.reducescatter(t, op=hvd.Sum), hvd.size() + 1)
        self.assertEqual(gradient.tolist(), [1.0] + [rank + 1.0 for rank in range(hvd.size())])

    def test_others_have_no_gradient(self):
        given = torch.ones(2, requires_grad=True)
        with self.assertRaisesRegex(ValueError, "sums or averages"):
            hvd.allreduce(given, op=hvd.Max).sum().backward()
        with torch.no_grad():
            self.assertFalse(hvd.allreduce(given, op=hvd.Max).requires_grad)
