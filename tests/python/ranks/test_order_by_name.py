"""Ranks that begin collectives in different orders, under names."""
import random
import socket
import threading
import unittest
from multiprocessing import connection

import numpy as np

import drun as hvd
from drun import _by_name, _order_table
from drun._tensor import take


def ones(n=2):
    return np.ones(n, "float32")


class OrderByName(unittest.TestCase):
    def setUp(self):
        hvd.shutdown()
        hvd.init(order_by_name=True)

    def tearDown(self):
        hvd.shutdown()
        hvd.init()

    def test_random_orders(self):
        names = [f"n{number}" for number in range(20)]
        mine = random.Random(hvd.rank())
        for _ in range(50):  # 1,000 calls
            mine.shuffle(names)
            handles = {name: hvd.allreduce_async(ones() * int(name[1:]), name=name, op=hvd.Sum) for name in names}
            mine.shuffle(names)
            for name in names:
                self.assertEqual(hvd.synchronize(handles[name]).tolist(), [int(name[1:]) * hvd.size()] * 2, name)

    def test_blocking_calls_pass_those_that_others_have_not_begun(self):
        if hvd.rank() == 0:
            first = hvd.allreduce_async(ones(), name="late", op=hvd.Sum)
        self.assertEqual(hvd.allgather(ones(), name="between").tolist(), [1.0] * 2 * hvd.size())
        hvd.barrier()
        self.assertEqual(hvd.broadcast(np.array([hvd.rank()]), hvd.size() - 1, name="root").tolist(), [hvd.size() - 1])
        if hvd.rank() != 0:
            first = hvd.allreduce_async(ones(), name="late", op=hvd.Sum)
        self.assertEqual(hvd.synchronize(first).tolist(), [hvd.size()] * 2)

    def test_all_kinds_in_turn(self):
        parts = hvd.alltoall(np.full((hvd.size(), 2), hvd.rank()), splits=[1] * hvd.size())[0]
        self.assertEqual(parts[:, 0].tolist(), list(range(hvd.size())))
        self.assertEqual(hvd.reducescatter(np.ones((hvd.size(), 3)), op=hvd.Sum).tolist(), [[hvd.size()] * 3])
        self.assertEqual(hvd.grouped_allreduce([ones(), np.ones(1)], op=hvd.Sum)[1].tolist(), [hvd.size()])
        self.assertEqual(hvd.allgather_object({"rank": hvd.rank()}), [{"rank": rank} for rank in range(hvd.size())])
        self.assertEqual(hvd.broadcast_object([hvd.rank()], 0), [0])

    def test_memory_of_a_gpu_on_some_ranks_is_refused_at_once(self):
        if hvd.size() == 1:
            return
        given = take(np.ones((hvd.size(), 2), "float32"))
        if hvd.rank() == 1:
            given.stream = 7
        for call in (lambda: hvd.broadcast(given, 0, name="where"), lambda: hvd.allgather(given, name="where"),
                     lambda: hvd.alltoall(given, name="where")):
            with self.assertRaisesRegex(hvd.DrunError, r"rank 1 called it with .*, on a GPU, rank 0 with [^G]*$"):
                call()
        self.assertEqual(hvd.allreduce(ones(), name="where").tolist(), [1, 1])

    def test_an_error_of_one_call_leaves_the_others_possible(self):
        if hvd.size() == 1:
            return
        for _ in range(2):
            with self.assertRaisesRegex(hvd.DrunError, r"allreduce 'shape': rank 1 called it with float32 \[3\] \(average\), "
                                                       r"rank 0 with float32 \[2\] \(average\)") as caught:
                hvd.allreduce(ones(3 if hvd.rank() == 1 else 2), name="shape")
            self.assertEqual((caught.exception.status, caught.exception.rank), (hvd.ERROR_MISMATCH, 1))
        self.assertEqual(hvd.allreduce(ones(), name="shape", op=hvd.Sum).tolist(), [hvd.size()] * 2)

    def test_names_of_calls_under_way_differ(self):
        hvd.barrier()
        if hvd.rank() == 0:
            kept = hvd.allreduce_async(ones(), name="twice")
            if hvd.size() > 1:
                with self.assertRaisesRegex(ValueError, "allreduce 'twice' was begun again before it had ended"):
                    hvd.allreduce_async(ones(), name="twice")
        hvd.barrier()
        if hvd.rank() != 0:
            kept = hvd.allreduce_async(ones(), name="twice")
        self.assertEqual(hvd.synchronize(kept).tolist(), [1.0, 1.0])

    def test_sets_of_ranks(self):
        if hvd.size() < 4:
            return
        pair, rest = hvd.add_process_set([0, 1]), hvd.add_process_set(range(1, hvd.size()))
        of_pair = of_rest = None
        order = [pair, rest] if hvd.rank() % 2 else [rest, pair]
        for one in order:
            if one.included() and one is pair:
                of_pair = hvd.allreduce_async(ones(), name="same", op=hvd.Sum, process_set=pair)
            elif one.included():
                of_rest = hvd.allreduce_async(ones(), name="same", op=hvd.Sum, process_set=rest)
        for handle, size in ((of_pair, 2), (of_rest, hvd.size() - 1)):
            if handle is not None:
                self.assertEqual(hvd.synchronize(handle).tolist(), [size] * 2)
        self.assertTrue(hvd.remove_process_set(pair))
        self.assertTrue(hvd.remove_process_set(rest))

    def test_a_set_with_the_number_of_another_one(self):
        if hvd.size() < 3:
            return
        for ranks in ([0, 1], [1, 2]):
            one = hvd.add_process_set(ranks)
            if one.included():
                self.assertEqual(hvd.allreduce(ones(), op=hvd.Sum, process_set=one).tolist(), [2, 2])
            self.assertTrue(hvd.remove_process_set(one))

    def test_what_cannot_be_told_to_rank_0_is_an_error_at_once(self):
        self.assertEqual(hvd.allreduce(ones(), name="a", op=hvd.Sum, prescale_factor=np.float32(0.5)).tolist(), [hvd.size() / 2] * 2)
        with self.assertRaises((TypeError, ValueError)):
            hvd.allreduce(ones(), name="b", prescale_factor="half")
        self.assertEqual(hvd.allreduce(ones(), name="b", op=hvd.Sum).tolist(), [hvd.size()] * 2)

    def test_nothing_of_it_is_left_after_shutdown(self):
        hvd.barrier()
        hvd.shutdown()
        self.assertEqual([thread.name for thread in threading.enumerate() if thread.name in ("drun names", "drun order")], [])
        for thread in threading.enumerate():
            if thread.name in ("drun accept", "drun admit"):
                thread.join(10)
                self.assertFalse(thread.is_alive())

    def test_several_threads(self):
        failures = []

        def work(number):
            try:
                for step in range(20):
                    total = hvd.allreduce(ones() * number, name=f"thread {number} {step}", op=hvd.Sum)
                    assert total.tolist() == [number * hvd.size()] * 2, total
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_ranks_with_less_data_give_zeros(self):
        for batch in range(hvd.rank() + 1):
            left = range(batch, hvd.size())
            self.assertEqual(hvd.allreduce(np.array([float(hvd.rank())]), name="a", op=hvd.Sum)[0], sum(left))
            self.assertEqual(hvd.grouped_allreduce([np.ones(2, "float32")], name="b")[0][0], np.float32(len(left) / hvd.size()))
            hvd.barrier()
        self.assertEqual(hvd.join(), hvd.size() - 1)
        self.assertEqual(hvd.allreduce(ones(), op=hvd.Sum)[0], hvd.size())

    def test_calls_without_a_name_fit_again_after_ranks_had_less_data(self):
        for _ in range(2):
            for _ in range(hvd.rank() + 1):
                hvd.allreduce(ones())
            hvd.join()
            hvd.barrier()
            self.assertEqual(hvd.allreduce(ones(), op=hvd.Sum)[0], hvd.size())

    def test_an_empty_group_is_no_barrier(self):
        if hvd.rank() > 0:
            self.assertEqual(hvd.grouped_allreduce([]), [])
            self.assertEqual(hvd.allreduce(ones(), name="a", op=hvd.Sum)[0], hvd.size() - 1)
        hvd.join()

    def test_join_fails_if_another_rank_has_left(self):
        if hvd.size() == 1:
            return
        if hvd.rank() == 1:
            hvd.shutdown()
        else:
            with self.assertRaisesRegex(hvd.DrunError, "join\\(\\): rank . has left the job without having joined"):
                hvd.join()

    def test_what_needs_all_is_refused_and_the_joined_stay_joined(self):
        if hvd.size() == 1:
            return
        if hvd.rank() == 0:
            self.assertIn(hvd.join(), range(1, hvd.size()))
            return
        with self.assertRaisesRegex(hvd.DrunError, "rank 0 has joined: only barriers and allreduces"):
            hvd.allgather(ones(), name="all")
        self.assertEqual(hvd.allreduce(ones(), name="sum", op=hvd.Sum)[0], hvd.size() - 1)
        self.assertIn(hvd.join(), range(1, hvd.size()))

    def test_a_rank_that_leaves_is_named(self):
        if hvd.size() == 1:
            return
        hvd.barrier()
        if hvd.rank() == 1:
            hvd.shutdown()
        else:
            with self.assertRaisesRegex(hvd.DrunError, "allreduce 'alone': rank 1 has left the job"):
                hvd.allreduce(ones(), name="alone")


class Strangers(unittest.TestCase):
    """Who connects to rank 0 without the secret."""

    def test_keep_nobody_waiting_and_are_not_admitted(self):
        hvd.shutdown()
        hvd.init()
        if hvd.rank() > 0:
            hvd.barrier()
            self.leave(_by_name._connect(20))  # admitted, although the strangers came first
            return
        own, other_end = connection.Pipe()
        coordinator = _by_name._Coordinator(hvd.size(), 100, other_end, 20)
        strangers = []
        if hvd.size() > 1:
            address, port, _ = hvd.kv_get("drun.order").decode().split()
            strangers = [socket.create_connection((address, int(port)), 10) for _ in range(2)]  # the first one says nothing
            strangers[1].sendall((20).to_bytes(4, "big") + b"no digest of a secret")
            self.assertNotIn(b"#WELCOME#", self.all_of(strangers[1]))
        hvd.barrier()
        self.leave(own)
        coordinator.join()
        for one in strangers:
            one.close()

    @staticmethod
    def leave(channel):
        channel.send_bytes(b'["bye"]')
        assert channel.recv_bytes() == b'["bye"]'

    @staticmethod
    def all_of(stranger):
        """What it gets until it is refused."""
        received = b""
        try:
            while part := stranger.recv(4096):
                received += part
        except ConnectionResetError:
            pass
        return received


class Table(unittest.TestCase):
    """The decisions, without a job."""

    def setUp(self):
        self.table = _order_table.OrderTable(2, op_timeout_s=100)

    def begin(self, rank, key, fields=(), waits=False, now=0.0, number=0):
        self.table.begin(rank, number, key, list(fields), waits, now)

    def test_a_call_is_possible_when_all_have_begun_it(self):
        self.begin(0, "b")
        self.begin(0, "a")
        self.begin(1, "a")
        self.assertEqual(self.table.take_messages(), [(0, ["go", 0, "a", 0]), (1, ["go", 0, "a", 0])])
        self.begin(1, "b")
        self.assertEqual(self.table.take_messages(), [(0, ["go", 0, "b", 0]), (1, ["go", 0, "b", 0])])

    def test_ranks_that_wait_for_each_other_are_told_after_some_seconds(self):
        self.begin(0, "allreduce 'x'", waits=True)
        self.begin(1, "allgather 'x'", waits=True)
        self.table.pass_time(10.0)
        self.table.pass_time(10.0 + _order_table.ALL_WAIT_S - 0.1)
        self.assertEqual(self.table.take_messages(), [])
        self.table.pass_time(10.0 + _order_table.ALL_WAIT_S)
        text = "all ranks wait for each other: allreduce 'x' waits for rank 1; allgather 'x' waits for rank 0"
        self.assertEqual([message[3] for _, message in self.table.take_messages()], [text, text])
        self.assertFalse(self.table.has_calls())

    def test_a_rank_that_computes_may_still_begin_what_others_wait_for(self):
        self.begin(0, "x", waits=True)
        self.begin(1, "y")
        for now in (1.0, 50.0, 99.0):
            self.table.pass_time(now)
        self.assertEqual(self.table.take_messages(), [])
        self.assertEqual(self.table.take_warnings(61.0), ["x was begun 61 s ago, but not by rank 1",
                                                          "y was begun 61 s ago, but not by rank 0"])
        self.assertEqual(self.table.take_warnings(62.0), [])
        self.table.pass_time(100.0)
        self.assertEqual([message[3] for _, message in self.table.take_messages()],
                         ["x was begun, but not by rank 1, for 100 s", "y was begun, but not by rank 0, for 100 s"])

    def test_who_has_waited_and_got_its_call_does_not_wait_any_more(self):
        self.begin(0, "x", waits=True)
        self.begin(1, "x", waits=True)
        self.begin(0, "y", waits=True)
        self.table.take_messages()
        self.table.pass_time(1.0)
        self.table.pass_time(90.0)
        self.assertEqual(self.table.take_messages(), [])

    def test_a_wait_that_comes_late_is_not_one_for_the_next_call_of_that_name(self):
        self.begin(0, "x")
        self.begin(1, "x")
        self.table.take_messages()
        self.begin(1, "x", waits=True)
        self.table.wait(0, 0, "x")  # for the first one, which is possible already
        for now in (2.0, 60.0):
            self.table.pass_time(now)
        self.assertEqual(self.table.take_messages(), [])

    def test_a_rank_with_several_threads_is_never_taken_for_stuck(self):
        self.begin(0, "x", waits=True)
        self.begin(1, "y", waits=True)
        self.begin(1, "z", waits=None)
        self.table.pass_time(1.0)
        self.table.pass_time(50.0)
        self.assertEqual(self.table.take_messages(), [])

    def test_a_set_with_a_rank_that_has_joined_is_told_at_once(self):
        table = _order_table.OrderTable(3, 100)
        table.define_set(1, [0, 2])
        table.join(2, _order_table.JOINED)
        table.begin(0, 1, "a", [], False, 0.0)
        self.assertEqual([message[3] for _, message in table.take_messages()],
                         ["a: rank 2 has joined: only calls among all ranks are possible now"])

    def test_a_set_waits_for_its_own_ranks(self):
        table = _order_table.OrderTable(3, 100)
        table.define_set(1, [0, 2])
        table.begin(2, 1, "a", [], False, 0.0)
        table.begin(0, 1, "a", [], False, 0.0)
        self.assertEqual([rank for rank, _ in table.take_messages()], [0, 2])

    def test_zeros_are_possible_for_sums_averages_and_barriers(self):
        def allreduce(op):
            return [8, "float32", op, [2], 1.0, 1.0, False, False]

        self.assertEqual([one.shape for one in _order_table.zeros_of([allreduce(hvd.Sum), allreduce(hvd.Average)])], [[2], [2]])
        self.assertEqual(_order_table.zeros_of([_order_table.BARRIER]), [])
        self.assertIsNone(_order_table.zeros_of([allreduce(hvd.Max)]))
        self.assertIsNone(_order_table.zeros_of(["rows of [] float32"]))

    def test_a_gpu_needs_zeros_there(self):
        self.table.join(1, _order_table.JOINED)
        self.begin(0, "x", [[8, "float32", hvd.Sum, [2], 1.0, 1.0, True, False]])
        self.assertIn("rank 1 has joined and can't make zeros in a GPU's memory", self.table.take_messages()[0][1][3])
        self.table.join(1, _order_table.JOINED_ON_GPU)
        self.begin(0, "x", [[8, "float32", hvd.Sum, [2], 1.0, 1.0, True, False]])
        self.assertEqual([message[0] for _, message in self.table.take_messages()], ["go", "zeros"])

    def test_the_first_that_left_is_named(self):
        table = _order_table.OrderTable(3, 100)
        table.leave(1)
        table.leave(0)
        table.begin(2, 0, "x", [], True, 0.0)
        self.assertEqual([message[3] for _, message in table.take_messages()], ["x: rank 1 has left the job"])

    def test_a_rank_that_was_lost_ends_all(self):
        self.begin(0, "x")
        self.table.lose(1)
        self.assertEqual([message[0] for _, message in self.table.take_messages()], ["failed"])
