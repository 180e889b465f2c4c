import unittest

import numpy as np

import drun as hvd


def setUpModule():
    hvd.init()


def of_all(make):
    return [make(rank) for rank in range(hvd.size())]


class Allreduce(unittest.TestCase):
    def test_every_type(self):
        for dtype in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"):
            data = np.arange(5, dtype=dtype) + np.dtype(dtype).type(hvd.rank())
            result = hvd.allreduce(data, op=hvd.Sum, name=dtype)
            self.assertEqual(result.dtype, data.dtype)
            np.testing.assert_array_equal(result, sum(of_all(lambda rank: np.arange(5) + rank)))

    def test_every_reduction(self):
        data = np.array([hvd.rank() + 1.0, 2.0])
        everything = np.array(of_all(lambda rank: [rank + 1.0, 2.0]))
        for op, expected in ((hvd.Sum, everything.sum(0)), (hvd.Average, everything.mean(0)), (hvd.Min, everything.min(0)),
                             (hvd.Max, everything.max(0)), (hvd.Product, everything.prod(0))):
            np.testing.assert_array_equal(hvd.allreduce(data, op=op), expected)

    def test_average_is_the_default(self):
        self.assertEqual(hvd.allreduce(np.array([float(hvd.rank())]))[0], (hvd.size() - 1) / 2)
        self.assertEqual(hvd.allreduce(np.array([1.0]), average=False)[0], hvd.size())
        with self.assertRaisesRegex(ValueError, "op or average"):
            hvd.allreduce(np.array([1.0]), average=True, op=hvd.Sum)

    def test_scales(self):
        result = hvd.allreduce(np.array([3.0]), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
        self.assertEqual(result[0], 6.0 * hvd.size())

    def test_shapes_stay(self):
        for shape in ((), (1,), (2, 3, 4), (0, 3)):
            self.assertEqual(hvd.allreduce(np.ones(shape)).shape, shape)
        self.assertEqual(hvd.allreduce(np.float64(2), op=hvd.Sum), 2 * hvd.size())

    def test_in_place_uses_the_memory_itself(self):
        whole = np.zeros((4, 3), "float32")
        self.assertIs(hvd.allreduce_(whole, op=hvd.Sum), whole)
        whole[1] = 1
        hvd.allreduce_(whole[1:2], op=hvd.Sum)
        np.testing.assert_array_equal(whole[:, 0], [0, hvd.size(), 0, 0])

    def test_large(self):
        data = np.full(1_000_003, hvd.rank() + 1.0, "float32")
        self.assertTrue((hvd.allreduce(data, op=hvd.Sum) == sum(range(1, hvd.size() + 1))).all())

    def test_what_can_t_be_used_is_refused(self):
        for data, why in ((np.ones((4, 4))[:, ::2], "not contiguous"), (np.asfortranarray(np.ones((4, 4))), "not contiguous"),
                          (np.ones(2, ">f8"), "byte order"), (np.array([{}]), "Python objects"),
                          (np.ones(2, "int16"), "can't compute with int16"), (np.ones(2, "complex64"), "complex64")):
            with self.assertRaisesRegex(ValueError, why):
                hvd.allreduce(data)
        fixed = np.ones(2)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "read-only"):
            hvd.allreduce_(fixed)
        hvd.allreduce(fixed)


    def test_adasum(self):
        # The average of equal gradients, the sum of orthogonal ones.
        same = hvd.allreduce(np.array([1.0, 2.0]), op=hvd.Adasum)
        np.testing.assert_allclose(same, [1.0, 2.0])
        mine = np.zeros(hvd.size())
        mine[hvd.rank()] = 3
        np.testing.assert_allclose(hvd.allreduce(mine, op=hvd.Adasum), np.full(hvd.size(), 3.0))
        # In a group each tensor is reduced separately.
        for result, expected in zip(hvd.grouped_allreduce([mine, np.array([1.0, 2.0])], op=hvd.Adasum),
                                    (np.full(hvd.size(), 3.0), [1.0, 2.0])):
            np.testing.assert_allclose(result, expected)


class Grouped(unittest.TestCase):
    def test_types_and_sizes_are_mixed(self):
        def make(rank):
            return [np.full((2, 2), rank, "float32"), np.full(3, rank, "int64"), np.full(400_000, rank, "float64"),
                    np.zeros(0, "float32"), np.array(rank, "float32")]

        given = make(hvd.rank())
        total = sum(range(hvd.size()))
        for result, like in zip(hvd.grouped_allreduce(given, op=hvd.Sum, name="group"), make(total)):
            np.testing.assert_array_equal(result, like)
            self.assertEqual((result.dtype, result.shape), (like.dtype, like.shape))
        handle = hvd.grouped_allreduce_async_(given, op=hvd.Sum)
        for result, own, like in zip(hvd.synchronize(handle), given, make(total)):
            self.assertIs(result, own)
            np.testing.assert_array_equal(own, like)

    def test_empty(self):
        self.assertEqual(hvd.grouped_allreduce([]), [])


class Compressed(unittest.TestCase):
    def test_halves_are_rounded_once(self):
        data = np.linspace(-3, 3, 1000, dtype="float32") * (hvd.rank() + 1)
        for compression, bits in ((hvd.Compression.fp16, 11), (hvd.Compression.bf16, 8)):
            result = hvd.allreduce(data, op=hvd.Sum, compression=compression)
            self.assertEqual(result.dtype, data.dtype)
            exact = np.linspace(-3, 3, 1000) * sum(range(1, hvd.size() + 1))
            np.testing.assert_allclose(result, exact, rtol=2.0 ** (2 - bits) * hvd.size(), atol=1e-6)

    def test_bfloat16_is_to_nearest_even_and_knows_nan(self):
        given = np.array([1 + 2**-8, 1 + 3 * 2**-8, np.nan, np.inf, -0.0, 3e38], "float32")
        compressed, ctx = hvd.Compression.bf16.compress(given)
        result = hvd.Compression.bf16.decompress(compressed, ctx)
        np.testing.assert_array_equal(result[:2], [1, 1 + 2**-6])
        self.assertTrue(np.isnan(result[2]) and np.isinf(result[3]) and np.signbit(result[4]) and np.isfinite(result[5]))

    def test_integers_are_left_alone(self):
        self.assertEqual(hvd.allreduce(np.array([70001]), op=hvd.Max, compression=hvd.Compression.fp16)[0], 70001)

    def test_of_the_user(self):
        class Negative(hvd.Compression.none):
            @staticmethod
            def compress(tensor):
                return -tensor, "ctx"

            @staticmethod
            def decompress(tensor, ctx):
                assert ctx == "ctx"
                return -tensor

        self.assertEqual(hvd.allreduce(np.array([2.0]), op=hvd.Min, compression=Negative)[0], 2.0)


class Allgather(unittest.TestCase):
    def test_rows_may_differ(self):
        mine = np.full((hvd.rank(), 2), hvd.rank(), "float32")
        np.testing.assert_array_equal(hvd.allgather(mine), np.concatenate(of_all(lambda r: np.full((r, 2), r, "float32"))))

    def test_types_that_are_only_moved(self):
        for dtype in ("bool", "int16", "complex64", "datetime64[s]", "S3"):
            mine = np.array([1, 0]).astype(dtype)
            result = hvd.synchronize(hvd.allgather_async(mine))
            self.assertEqual(result.dtype, mine.dtype)
            np.testing.assert_array_equal(result, np.concatenate([mine] * hvd.size()))

    def test_numbers_become_rows(self):
        np.testing.assert_array_equal(hvd.allgather(np.array(hvd.rank())), np.arange(hvd.size()))

    def test_other_dimensions_must_be_the_same(self):
        if hvd.size() == 1:
            return
        with self.assertRaisesRegex(hvd.DrunError, f"rank {hvd.size() - 1} and rank 0 gave") if hvd.rank() == 0 else \
                self.assertRaises(hvd.DrunError) as caught:
            hvd.allgather(np.ones((2, 3 if hvd.rank() == hvd.size() - 1 else 4)))
        self.assertEqual(caught.exception.status, hvd.ERROR_MISMATCH)
        hvd.barrier()  # all have raised the error; the job still works


class Broadcast(unittest.TestCase):
    def test_from_each(self):
        for root in range(hvd.size()):
            mine = np.full((2, 2), hvd.rank(), "int16")
            result = hvd.broadcast(mine, root, name=f"from {root}")
            self.assertTrue((result == root).all() and (mine == hvd.rank()).all())
            self.assertIs(hvd.broadcast_(mine, root), mine)
            self.assertTrue((mine == root).all())

    def test_parameters(self):
        mine = {"b": np.full(3, hvd.rank()), "a": np.array(float(hvd.rank())), "note": "text", "n": 3}
        hvd.broadcast_parameters(mine, hvd.size() - 1)
        self.assertTrue((mine["b"] == hvd.size() - 1).all() and mine["a"] == hvd.size() - 1)
        several = [np.full(2, hvd.rank()), np.full((), hvd.rank())]
        hvd.broadcast_parameters(several)
        self.assertTrue((several[0] == 0).all() and several[1] == 0)


class Alltoall(unittest.TestCase):
    def test_even(self):
        mine = np.arange(2 * hvd.size()) + 100 * hvd.rank()
        expected = np.concatenate(of_all(lambda r: np.arange(2 * hvd.rank(), 2 * hvd.rank() + 2) + 100 * r))
        np.testing.assert_array_equal(hvd.alltoall(mine), expected)

    def test_splits(self):
        # Rank r sends i rows to rank i.
        splits = np.arange(hvd.size())
        mine = np.repeat(splits, splits)[:, None] * 10 + hvd.rank()
        for given in (splits, list(splits)):
            result, received = hvd.alltoall(mine, splits=given)
            np.testing.assert_array_equal(received, [hvd.rank()] * hvd.size())
            expected = np.concatenate(of_all(lambda r: np.full((hvd.rank(), 1), 10 * hvd.rank() + r)))
            np.testing.assert_array_equal(result, expected)

    def test_wrong_splits_are_refused(self):
        for splits in ([1], [-1] + [2] * hvd.size(), [3] * hvd.size()):
            with self.assertRaisesRegex(ValueError, "splits|rows"):
                hvd.alltoall(np.ones(hvd.size() * 2), splits=splits)


class Reducescatter(unittest.TestCase):
    def test_even_and_uneven(self):
        for rows in (hvd.size() * 2, hvd.size() * 2 + 1, hvd.size() - 1, 0):
            mine = np.arange(rows * 3.0).reshape(rows, 3) + hvd.rank()
            whole = sum(of_all(lambda r: np.arange(rows * 3.0).reshape(rows, 3) + r))
            result = hvd.reducescatter(mine, op=hvd.Sum)
            base, more = divmod(rows, hvd.size())
            begin = hvd.rank() * base + min(hvd.rank(), more)
            np.testing.assert_array_equal(result, whole[begin:begin + base + (hvd.rank() < more)])

    def test_average_asynchronous(self):
        handle = hvd.reducescatter_async(np.full((hvd.size(), 2), float(hvd.rank())))
        np.testing.assert_array_equal(hvd.synchronize(handle), [[(hvd.size() - 1) / 2] * 2])


class Grouped(unittest.TestCase):
    def test_asynchronous_ones(self):
        size = hvd.size()
        handle = hvd.grouped_allgather_async([np.array([hvd.rank()]), np.zeros((1, 2), "int8")], name="several")
        gathered = hvd.synchronize(handle)
        self.assertTrue(hvd.poll(handle))
        np.testing.assert_array_equal(gathered[0], np.arange(size))
        self.assertEqual(gathered[1].shape, (size, 2))
        [mine] = hvd.synchronize(hvd.grouped_reducescatter_async([np.arange(float(size))], op=hvd.Sum))
        self.assertEqual(mine.tolist(), [float(hvd.rank() * size)])
