import unittest

import numpy as np

import drun as hvd


class Join(unittest.TestCase):
    def setUp(self):
        hvd.shutdown()
        hvd.init(join=True)

    def tearDown(self):
        hvd.shutdown()
        hvd.init()

    def test_ranks_with_less_data_give_zeros(self):
        # Rank r has r + 1 batches.
        for batch in range(hvd.rank() + 1):
            left = range(batch, hvd.size())
            self.assertEqual(hvd.allreduce(np.array([float(hvd.rank())]), op=hvd.Sum)[0], sum(left))
            self.assertEqual(hvd.grouped_allreduce([np.ones(2, "float32")])[0][0], np.float32(len(left) / hvd.size()))
            hvd.barrier()
        self.assertEqual(hvd.join(), hvd.size() - 1)
        self.assertEqual(hvd.allreduce(np.array([1.0]), op=hvd.Sum)[0], hvd.size())

    def test_the_last_is_named(self):
        for _ in range(2 - min(hvd.rank(), 1)):  # rank 0 has one more batch
            hvd.allreduce(np.ones(3))
        self.assertEqual(hvd.join(), 0)

    def test_what_needs_all_is_refused_on_every_rank(self):
        if hvd.size() == 1:
            return
        with self.assertRaisesRegex(hvd.DrunError, "rank 0 has joined: only barriers and allreduces") as caught:
            if hvd.rank() == 0:
                hvd.join()
            else:
                hvd.allgather(np.ones(3))
        self.assertEqual(caught.exception.status, hvd.ERROR_UNSUPPORTED)


class JoinTogether(unittest.TestCase):
    def test_needs_no_preparation(self):
        hvd.init()
        self.assertEqual(hvd.join(), hvd.size() - 1)
