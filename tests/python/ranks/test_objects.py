import threading
import unittest

import drun as hvd


def setUpModule():
    hvd.init()


class Keys(unittest.TestCase):
    def test_a_key_is_set_read_and_deleted(self):
        if hvd.rank() == 0:
            hvd.kv_set("large", b"x" * 10_000)
            hvd.kv_set("text", "größe")
        self.assertEqual(hvd.kv_get("large"), b"x" * 10_000)
        self.assertEqual(hvd.kv_get("text", timeout=10).decode(), "größe")
        hvd.barrier()
        if hvd.rank() == hvd.size() - 1:
            self.assertIs(hvd.kv_delete("large"), True)
            self.assertIs(hvd.kv_delete("large"), False)
            hvd.kv_set("large", b"")
        hvd.barrier()
        self.assertEqual(hvd.kv_get("large"), b"")
        with self.assertRaises(hvd.DrunError) as caught:
            hvd.kv_get("absent", timeout=0.01)
        self.assertEqual(caught.exception.status, hvd.ERROR_TIMEOUT)


class Objects(unittest.TestCase):
    def test_broadcast(self):
        mine = {"epoch": 3, "from": hvd.rank()}
        self.assertEqual(hvd.broadcast_object(mine, root_rank=hvd.size() - 1), {"epoch": 3, "from": hvd.size() - 1})

    def test_broadcast_by_a_function(self):
        self.assertEqual(hvd.broadcast_object_fn(root_rank=0)(["from", hvd.rank()]), ["from", 0])

    def test_large_and_none(self):
        self.assertIsNone(hvd.broadcast_object(None))
        large = "x" * 3_000_000
        self.assertEqual(hvd.broadcast_object(large if hvd.rank() == 0 else None), large)

    def test_allgather_of_different_sizes(self):
        self.assertEqual(hvd.allgather_object("r" * hvd.rank()), ["r" * rank for rank in range(hvd.size())])

    def test_a_root_that_can_t_pickle_tells_all(self):
        obj = threading.Lock() if hvd.rank() == 0 else None
        expected = TypeError if hvd.rank() == 0 else hvd.DrunError
        with self.assertRaisesRegex(expected, "pickle"):
            hvd.broadcast_object(obj)
        self.assertEqual(hvd.broadcast_object("still works"), "still works")

    def test_an_error_in_a_process_set_names_the_rank_of_the_job(self):
        last = hvd.size() - 1
        if last < 2:
            return  # the place in the set is the rank
        pair = hvd.add_process_set([last - 1, last])
        if pair.included():
            with self.assertRaises(TypeError if hvd.rank() == last else hvd.DrunError) as caught:
                hvd.allgather_object(threading.Lock() if hvd.rank() == last else 1, process_set=pair)
            if hvd.rank() != last:
                self.assertEqual(caught.exception.rank, last)
        hvd.remove_process_set(pair)

    def test_one_that_can_t_pickle_tells_all_in_allgather(self):
        last = hvd.size() - 1
        with self.assertRaises(TypeError if hvd.rank() == last else hvd.DrunError) as caught:
            hvd.allgather_object(threading.Lock() if hvd.rank() == last else 1)
        if hvd.rank() != last:
            self.assertEqual(caught.exception.rank, last)
