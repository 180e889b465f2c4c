"""Without numpy or torch: arrays of the standard library. Goes first, so that nothing else has imported them."""
import array
import contextlib
import ctypes
import io
import os
import sys
import threading
import unittest

import drun as hvd
from drun import _library


def setUpModule():
    assert "numpy" not in sys.modules and "torch" not in sys.modules
    hvd.init(op_timeout=60)


class Place(unittest.TestCase):
    def test_is_what_drun_says(self):
        self.assertTrue(hvd.is_initialized())
        for call, name, alone in ((hvd.rank, "RANK", 0), (hvd.size, "WORLD_SIZE", 1), (hvd.local_rank, "LOCAL_RANK", 0),
                                  (hvd.local_size, "LOCAL_SIZE", 1), (hvd.cross_rank, "CROSS_RANK", 0),
                                  (hvd.cross_size, "CROSS_SIZE", 1)):
            self.assertEqual(call(), int(os.environ.get(name, alone)), name)

    def test_is_homogeneous_where_hosts_have_as_many_ranks(self):
        sizes = hvd.allgather_object(hvd.local_size())
        self.assertIs(hvd.is_homogeneous(), len(set(sizes)) == 1)

    def test_init_again_does_nothing(self):
        hvd.init()
        self.assertTrue(hvd.is_initialized())

    def test_no_framework_is_imported(self):
        self.assertNotIn("numpy", sys.modules)
        self.assertNotIn("torch", sys.modules)

    def test_is_known_in_a_forked_child(self):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                hvd.barrier()
            except hvd.DrunError as error:
                os.write(writer, f"{hvd.rank()} {error.status}".encode())
            finally:
                os._exit(0)
        os.close(writer)
        said = os.read(reader, 100)
        os.close(reader)
        os.waitpid(child, 0)
        self.assertEqual(said.decode(), f"{hvd.rank()} {hvd.ERROR_STATE}")


class Library(unittest.TestCase):
    def test_structures_have_their_c_layout(self):
        self.assertEqual(ctypes.sizeof(_library.InitOptions), 24)
        self.assertEqual(_library.CallOptions.prescale.offset, 24)

    def test_version_is_the_package_s(self):
        self.assertEqual(hvd.version(), hvd.__version__)


class Arrays(unittest.TestCase):
    def test_allreduce_in_place_and_not(self):
        data = array.array("d", [hvd.rank(), 1])
        total = hvd.allreduce(data, op=hvd.Sum)
        self.assertEqual(list(total), [sum(range(hvd.size())), hvd.size()])
        self.assertEqual(list(data), [hvd.rank(), 1])
        self.assertIs(hvd.allreduce_(data, op=hvd.Sum), data)
        self.assertEqual(data, total)

    def test_integers_of_every_size(self):
        for code in "bBiIlLqQ":
            self.assertEqual(list(hvd.allreduce(array.array(code, [3]), op=hvd.Max)), [3], code)

    def test_two_byte_integers_can_be_moved_and_not_added(self):
        data = array.array("h", [hvd.rank()])
        self.assertEqual(list(hvd.allgather(data)), list(range(hvd.size())))
        with self.assertRaisesRegex(ValueError, "can't compute with 'h'; it can with int8"):
            hvd.allreduce(data)

    def test_bytearray_is_broadcast(self):
        data = bytearray(b"root" if hvd.rank() == 0 else b"????")
        hvd.broadcast_(data, 0)
        self.assertEqual(data, b"root")

    def test_bytes_are_read_only(self):
        self.assertEqual(hvd.broadcast(b"abc", 0), b"abc")
        with self.assertRaisesRegex(ValueError, "read-only"):
            hvd.broadcast_(b"abc", 0)

    def test_what_is_no_tensor_is_refused(self):
        with self.assertRaisesRegex(TypeError, "a tensor of torch, an array of numpy or CuPy, what has __dlpack__, or a buffer is wanted, not float"):
            hvd.allreduce(1.0)

    def test_what_is_not_contiguous_is_refused(self):
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            hvd.allreduce(memoryview(array.array("d", range(4)))[::2])

    def test_nothing_at_all(self):
        self.assertEqual(len(hvd.allreduce(array.array("d"))), 0)
        self.assertEqual(len(hvd.allgather(array.array("d"))), 0)

    def test_root_must_be_there(self):
        with self.assertRaisesRegex(ValueError, "root_rank"):
            hvd.broadcast_(bytearray(1), hvd.size())


class Asynchronous(unittest.TestCase):
    def test_many_are_done_in_their_order(self):
        handles = [hvd.allreduce_async(array.array("q", [i, hvd.rank()]), op=hvd.Sum, name=f"n{i}") for i in range(50)]
        ranks = sum(range(hvd.size()))
        for i, handle in reversed(list(enumerate(handles))):
            self.assertEqual(list(hvd.synchronize(handle)), [i * hvd.size(), ranks])
            self.assertTrue(hvd.poll(handle))

    def test_blocking_calls_keep_behind_asynchronous_ones(self):
        data = array.array("d", [1.0] * 100000)
        handle = hvd.allreduce_async_(data, op=hvd.Sum)
        hvd.allreduce_(data, op=hvd.Sum)  # works on the first one's result
        hvd.barrier()
        self.assertTrue(hvd.poll(handle))
        self.assertEqual(data[0], hvd.size() ** 2)

    def test_an_error_comes_out_of_synchronize_every_time(self):
        handle = hvd.allreduce_async(array.array("i", [1]), op=17, name="odd")
        for _ in range(2):
            with self.assertRaises(hvd.DrunError) as caught:
                hvd.synchronize(handle)
            self.assertEqual(caught.exception.status, hvd.ERROR_ARGUMENT)

    def test_a_callback_may_call_collectives(self):
        done = threading.Event()
        seen = []

        def after(handle):
            seen.extend(hvd.allreduce(handle.wait(), op=hvd.Sum))
            done.set()

        hvd.allreduce_async(array.array("d", [1]), op=hvd.Sum).when_done(after)
        self.assertTrue(done.wait(60))
        self.assertEqual(seen, [hvd.size() ** 2])

    def test_what_nobody_waits_for_is_done_all_the_same(self):
        data = array.array("d", [1.0] * 300000)
        hvd.allreduce_async_(data, op=hvd.Sum)
        hvd.allreduce_async(array.array("d", [1.0] * 300000))  # its memory must be kept until it is done
        hvd.barrier()
        self.assertEqual(data[-1], hvd.size())

    def test_several_steps_and_one_keep_their_order(self):
        handles = []
        for i in range(10):
            handles.append(hvd.allgather_async(array.array("q", [i])))
            handles.append(hvd.allreduce_async(array.array("q", [i]), op=hvd.Sum))
            handles.append(hvd.grouped_allreduce_async([array.array("q", [i]), array.array("d", [i])], op=hvd.Sum))
        for i in reversed(range(10)):
            self.assertEqual(list(handles[3 * i].wait()), [i] * hvd.size())
            self.assertEqual(list(handles[3 * i + 1].wait()), [i * hvd.size()])
            self.assertEqual([one[0] for one in handles[3 * i + 2].wait()], [i * hvd.size()] * 2)

    def test_from_several_threads_that_wait_for_one(self):
        handle = hvd.allreduce_async(array.array("d", [1.0] * 100000), op=hvd.Sum)
        seen = []
        threads = [threading.Thread(target=lambda: seen.append(handle.wait()[0])) for _ in range(4)]
        for thread in threads:
            thread.start()
        while not hvd.poll(handle):
            pass
        for thread in threads:
            thread.join(60)
        self.assertEqual(seen, [hvd.size()] * 4)

    def test_a_callback_that_raises_harms_nobody(self):
        seen = io.StringIO()
        done = threading.Event()
        with contextlib.redirect_stderr(seen):
            hvd.allreduce_async(array.array("d", [1])).when_done(lambda handle: 1 / 0)
            hvd.allreduce_async(array.array("d", [1])).when_done(lambda handle: done.set())
            self.assertTrue(done.wait(60))
        self.assertIn("ZeroDivisionError", seen.getvalue())

    def test_the_tensor_is_kept_until_the_end(self):
        handles = [hvd.allreduce_async(array.array("d", [i] * 1000)) for i in range(20)]
        self.assertEqual([hvd.synchronize(handle)[999] for handle in handles], list(range(20)))


class ProcessSets(unittest.TestCase):
    def test_global_set_is_all(self):
        self.assertEqual(hvd.global_process_set.ranks, list(range(hvd.size())))
        self.assertEqual(hvd.global_process_set.rank(), hvd.rank())
        data = array.array("d", [1])
        self.assertEqual(list(hvd.allreduce(data, op=hvd.Sum, process_set=hvd.global_process_set)), [hvd.size()])

    def test_wrong_ranks_are_refused(self):
        for ranks in ([], [hvd.size()], [-1]):
            with self.assertRaisesRegex(ValueError, "a process set has some of the ranks"):
                hvd.add_process_set(ranks)
        with self.assertRaisesRegex(ValueError, "there is a process set with the ranks"):
            hvd.add_process_set(range(hvd.size()))

    def test_one_that_was_not_added_is_refused(self):
        with self.assertRaisesRegex(ValueError, "has not been given to add_process_set"):
            hvd.barrier(process_set=hvd.ProcessSet([0]))

    def test_each_works_by_itself(self):
        if hvd.size() == 1:
            return
        even = hvd.add_process_set(range(0, hvd.size(), 2))
        last = hvd.add_process_set(hvd.ProcessSet([hvd.size() - 1]))
        self.assertEqual((even.process_set_id, last.process_set_id), (1, 2))
        self.assertEqual(even.included(), hvd.rank() % 2 == 0)
        mine = array.array("q", [hvd.rank()])
        if even.included():
            self.assertEqual((even.rank(), even.size()), (hvd.rank() // 2, (hvd.size() + 1) // 2))
            self.assertEqual(list(hvd.allgather(mine, process_set=even)), even.ranks)
            self.assertEqual(hvd.broadcast(mine, even.ranks[-1], process_set=even)[0], even.ranks[-1])
            self.assertEqual(hvd.synchronize(hvd.allreduce_async(mine, op=hvd.Sum, process_set=even))[0], sum(even.ranks))
            self.assertEqual(hvd.allgather_object(hvd.rank(), process_set=even), even.ranks)
            with self.assertRaisesRegex(ValueError, "root_rank 1 is not in"):
                hvd.broadcast(mine, 1, process_set=even)
        else:
            with self.assertRaisesRegex(ValueError, f"this rank, {hvd.rank()}, is not in"):
                hvd.barrier(process_set=even)
        if last.included():
            hvd.barrier(process_set=last)
        self.assertTrue(hvd.remove_process_set(even))
        self.assertFalse(hvd.remove_process_set(even))
        self.assertFalse(hvd.remove_process_set(hvd.global_process_set))
        self.assertTrue(hvd.remove_process_set(last))
        hvd.barrier()

    def test_from_init(self):
        several = hvd.size() > 1
        hvd.shutdown()
        first = hvd.ProcessSet([0])
        hvd.init(process_sets=[first] if several else [])
        if several and hvd.rank() == 0:
            self.assertEqual(list(hvd.allreduce(array.array("d", [5]), process_set=first)), [5])
        hvd.shutdown()
        self.assertIsNone(first.process_set_id)
        hvd.init(op_timeout=60)
