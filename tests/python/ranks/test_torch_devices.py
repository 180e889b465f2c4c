"""Placement of memory and order of streams on GPUs, without one: by torch's device "meta", whose tensors have no data, so
that to read a number of theirs is an error; by its fake tensors; and by a stand-in for a stream."""
import array
import contextlib
import threading
import time
import unittest
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import drun as hvd
from drun import _gradients, _partial, _sync_batch_norm
from drun import torch as drun_torch
from drun._tensor import take


def setUpModule():
    torch.set_num_threads(1)
    hvd.init()


@contextlib.contextmanager
def fake_tensors():
    """Tensors have a device and no data. Devices need not be there."""
    with FakeTensorMode(), mock.patch.object(torch.cuda, "_lazy_init"):
        yield


def parameter(shape, device, dtype=torch.float32):
    result = torch.nn.Parameter(torch.empty(shape, dtype=dtype, device=device))
    result.grad = torch.empty_like(result)
    return result


class Buckets(unittest.TestCase):
    def test_are_where_their_parameters_are(self):
        with torch.no_grad():
            named = [("a", parameter((3, 4), "meta")), ("b", parameter((5,), "cpu")), ("c", parameter((7,), "meta")),
                     ("d", parameter((2,), "meta", torch.float16)), ("e", parameter((600000,), "meta"))]
            reducer = _gradients.GradientReducer.__new__(_gradients.GradientReducer)
            reducer._named_parameters, reducer._sparse, reducer._bucket_bytes = named, [], _gradients.BUCKET_BYTES
            reducer._fill()
            found = {}
            for bucket in reducer._buckets:
                flat = bucket.pack()
                found[tuple(bucket.names)] = (str(flat.device), flat.dtype, flat.numel())
                self.assertEqual(bucket.unpack(flat), {})
        self.assertEqual(found, {
            ("e",): ("meta", torch.float32, 600000), ("c", "a"): ("meta", torch.float32, 20),
            ("b",): ("cpu", torch.float32, 5), ("d",): ("meta", torch.float16, 2)})

    def test_gradients_begin_at_aligned_places_with_zeros_between_them(self):
        with torch.no_grad():
            bucket = _gradients._Bucket(torch.float32, torch.device("cpu"))
            for name, n in (("a", 3), ("none", 0), ("b", 16), ("c", 1)):
                one = parameter((n,), "cpu")
                one.grad.fill_(7)
                bucket.add(name, one)
            self.assertEqual(bucket.places, [0, 8, 8, 24])
            self.assertEqual(bucket.pack().tolist(), [7.0] * 3 + [0.0] * 5 + [7.0] * 17)

    def test_a_missing_gradient_gets_memory_on_the_parameters_device(self):
        with torch.no_grad():
            bucket = _gradients._Bucket(torch.float32, torch.device("meta"))
            absent = parameter((3,), "meta")
            absent.grad = None
            bucket.add("absent", absent)
            missing = bucket.unpack(bucket.pack())
            self.assertEqual(missing[id(absent)].device, torch.device("meta"))


class BatchNorm(unittest.TestCase):
    def test_stays_on_the_device_and_reads_nothing_from_it(self):
        class Group:
            size = 2

            def __init__(self, _):
                pass

        reduced = []

        def allreduce_(tensor, **_):
            reduced.append(tensor.device.type)

        for momentum in (0.1, None):
            with mock.patch.object(_sync_batch_norm, "Group", Group), \
                    mock.patch.object(_sync_batch_norm, "allreduce_", allreduce_):
                norm = hvd.SyncBatchNorm(4, momentum=momentum, device="meta")
                given = torch.empty((8, 4, 3), device="meta", requires_grad=True)
                result = norm(given)
                result.sum().backward()
                self.assertEqual({one.device.type for one in (result, given.grad, norm.running_var, norm.weight.grad)}, {"meta"})
        self.assertEqual(reduced, ["meta"] * 4)


class OptimizerState(unittest.TestCase):
    def test_travels_on_the_cpu_and_ends_where_it_was(self):
        """As of Adam with capturable=True and a learning rate that is a tensor: torch leaves the count of steps, and
        numbers of groups, on the device where they are."""
        with fake_tensors():
            state = {"state": {0: {"exp_avg": torch.empty(3, device="cuda:0"), "step": torch.empty((), device="cuda:0")},
                               1: {"exp_avg": torch.empty(3, device="cuda:0"), "step": torch.empty(())}},
                     "param_groups": [{"lr": torch.empty((), device="cuda:0"), "params": [0, 1], "betas": (0.9, 0.99)}],
                     "drun_turn": 3}
            sent = drun_torch._for_each_tensor(state, drun_torch._OfGpu.of)
            on_its_way = []
            drun_torch._for_each_tensor(
                sent, lambda one: on_its_way.append(one.tensor if isinstance(one, drun_torch._OfGpu) else one))
            self.assertEqual([tensor.device.type for tensor in on_its_way], ["cpu"] * 5)

            optimizer = torch.optim.SGD([torch.empty(3, device="cuda:1"), torch.empty(3, device="cuda:1")], lr=0.1)
            got = drun_torch._on_devices(sent, optimizer)
            self.assertEqual({key: str(one.device) for key, one in got["state"][0].items()}, {"exp_avg": "cuda:1", "step": "cuda:1"})
            self.assertEqual({key: str(one.device) for key, one in got["state"][1].items()}, {"exp_avg": "cuda:1", "step": "cpu"})
            self.assertEqual(str(got["param_groups"][0]["lr"].device), "cuda:1")
        self.assertEqual((got["param_groups"][0]["betas"], got["drun_turn"]), ((0.9, 0.99), 3))


    def test_of_an_optimizer_is_what_travels(self):
        """Pickled on a GPU, it would be restored on the root's GPU by every rank."""
        for number, root in ((0, 0), (1, 0)):
            given, sent = [], [None]

            class Group:
                rank = number

                def __init__(self, _):
                    pass

                @staticmethod
                def root(rank):
                    return rank

            def broadcast_object(state, *_):
                given.append(state)
                return sent[0]

            with fake_tensors(), mock.patch.object(drun_torch, "Group", Group), \
                    mock.patch.object(drun_torch, "broadcast_object", broadcast_object):
                device = f"cuda:{number}"
                tensor = torch.empty(3, device=device)
                optimizer = torch.optim.SGD([tensor], lr=0.1, momentum=0.9)
                optimizer.state[tensor]["momentum_buffer"] = torch.empty(3, device=device)
                state = optimizer.state_dict()
                sent[0] = drun_torch._for_each_tensor(
                    {**state, "state": {0: {"momentum_buffer": torch.empty(3, device="cuda:0")}}}, drun_torch._OfGpu.of)
                drun_torch.broadcast_optimizer_state(optimizer, root)
                if number == root:
                    self.assertEqual(given[0]["state"][0]["momentum_buffer"].tensor.device.type, "cpu")
                else:
                    self.assertEqual(given, [None])
                self.assertEqual(str(optimizer.state[tensor]["momentum_buffer"].device), device)


class PartOfTheParameters(unittest.TestCase):
    def test_has_a_name_that_the_host_compares(self):
        """NCCL would average another part of a rank that has missed a step."""
        called = []
        with fake_tensors(), mock.patch.object(_partial, "synchronize"), mock.patch.object(
                _partial, "allreduce_async_", lambda tensor, **how: called.append((tensor.device.type, how["name"]))
                ), mock.patch.object(_partial.PartialAverage, "_average"):
            average = _partial.PartialAverage([("a", parameter((4,), "cuda:0"))], 2, None, 100)
            for _ in range(3):
                average.average_next()
        self.assertEqual(called, [("cpu", "part 1 of 2 in step 1"), ("cpu", "part 2 of 2 in step 2"),
                                  ("cpu", "part 1 of 2 in step 3")])


class Joined(unittest.TestCase):
    def test_where_zeros_are_made(self):
        """By default on the GPU of the last tensor; another thread may make them, where another GPU is current."""
        def device_of(given):
            zeros = hvd._join._zeros_on_gpu(given)
            if zeros is None:
                return None
            with mock.patch.object(torch, "zeros") as made:
                zeros(3)
            return str(made.call_args.kwargs["device"])

        with fake_tensors():
            reduced = torch.empty(1, device="cuda:4")
        with mock.patch.object(torch.cuda, "is_available", lambda: True), \
                mock.patch.object(torch.cuda, "current_device", lambda: 2), mock.patch.object(hvd._join, "_device", None):
            self.assertEqual(device_of(None), "cuda:2")
            self.assertEqual(device_of(1), "cuda:1")
            self.assertEqual(device_of("cuda:3"), "cuda:3")
            self.assertIsNone(device_of("cpu"))
            hvd._join.note_device(reduced)
            self.assertEqual(device_of(None), "cuda:4")
        self.assertIsNone(device_of(None))  # torch without CUDA


class Hooks(unittest.TestCase):
    def test_of_several_devices_at_once(self):
        """autograd runs the hooks of each device in a thread of its own."""
        named = [(str(number), parameter((1,), "cpu")) for number in range(64)]
        reducer = _gradients.GradientReducer(named, hvd.Compression.none, hvd.Sum, 1, 1.0, 1.0, None, 1, False)
        begun = []

        def begin(bucket):
            begun.append(bucket.name)
            time.sleep(0.001)  # the other threads run

        reducer._begin = begin
        started = threading.Barrier(8)

        def hooks(first):
            started.wait()
            for name, one in named[first::8]:
                reducer._has_come(name, id(one))

        threads = [threading.Thread(target=hooks, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(begun, [name for name, _ in reversed(named)])
        reducer.remove()


class ReceivedSplits(unittest.TestCase):
    def test_are_where_the_given_ones_are(self):
        rows = torch.ones(hvd.size())
        given = torch.ones(hvd.size(), dtype=torch.int32)
        on_device = mock.Mock(wraps=given, spec=torch.Tensor)
        on_device.device = torch.device("meta")
        for begin in (hvd.alltoall, lambda *how: hvd.synchronize(hvd.alltoall_async(*how))):
            self.assertEqual(begin(rows, given)[1].tolist(), [1] * hvd.size())
            result, received = begin(rows, on_device)
            self.assertEqual((result.tolist(), received.device.type), ([1.0] * hvd.size(), "meta"))


class Stream:
    """Records when it is the current stream, and who is ordered after it."""

    def __init__(self):
        self.is_current = False
        self.waiters = []

    @contextlib.contextmanager
    def current(self):
        self.is_current = True
        yield
        self.is_current = False

    def order_current(self):
        self.waiters.append(threading.current_thread())


class Streams(unittest.TestCase):
    """Arguments with a stand-in for the stream that was current when the call was made."""

    def setUp(self):
        self.stream = Stream()
        self.allocated = []  # was the stream current then?

    def tensor(self):
        result = take(array.array("f", [1.0] * hvd.size()))
        result.caller_stream = self.stream
        make = result._new

        def new(shape):
            self.allocated.append(self.stream.is_current)
            return make(shape)

        result._new = new
        result._copy = lambda: self.allocated.append(self.stream.is_current) or take(array.array("f", result.object))
        return result

    def test_whoever_waits_is_ordered_after_the_call(self):
        calls = [lambda: hvd.allreduce_async(self.tensor()), lambda: hvd.allreduce_async_(self.tensor()),
                 lambda: hvd.broadcast_async(self.tensor(), 0), lambda: hvd.allgather_async(self.tensor()),
                 lambda: hvd.alltoall_async(self.tensor()), lambda: hvd.reducescatter_async(self.tensor(), op=hvd.Sum),
                 lambda: hvd.grouped_allreduce_async([self.tensor()]), lambda: hvd.grouped_allgather_async([self.tensor()])]
        for call in calls:
            self.stream.waiters.clear()
            handle = call()
            self.assertEqual(self.stream.waiters, [])
            hvd.synchronize(handle)
            self.assertEqual(self.stream.waiters, [threading.current_thread()])

    def test_combined_results_are_of_the_stream_of_the_calls_and_waited_for_each_time(self):
        calls = [hvd.allreduce_async(self.tensor()), hvd.allgather_async(self.tensor())]
        handle = hvd._engine.CombinedHandle(calls, lambda *_: self.stream.is_current)
        while not hvd.poll(handle):
            pass
        for _ in range(2):
            self.stream.waiters.clear()
            self.assertTrue(hvd.synchronize(handle))
            self.assertEqual(self.stream.waiters, [threading.current_thread()] * len(calls))

    def test_poll_orders_once_the_call_is_done(self):
        handle = hvd.allgather_async(self.tensor())
        while not hvd.poll(handle):
            self.assertEqual(self.stream.waiters, [])
        self.assertEqual(self.stream.waiters, [threading.current_thread()])

    def test_results_are_allocated_on_the_stream_of_the_call(self):
        hvd.synchronize(hvd.allgather_async(self.tensor()))  # in drun's thread
        hvd.synchronize(hvd.alltoall_async(self.tensor()))
        hvd.synchronize(hvd.reducescatter_async(self.tensor(), op=hvd.Sum))
        hvd.allreduce(self.tensor())
        hvd.broadcast(self.tensor(), root_rank=0)  # copies what it is given
        self.assertEqual(self.allocated, [True] * 5)

    def test_torchs_stream_is_waited_for_by_the_current_one(self):
        class TorchStream:
            def __init__(self, number):
                self.cuda_stream, self.waits_for = number, []

            def wait_stream(self, other):
                self.waits_for.append(other.cuda_stream)

        side, main = TorchStream(7), TorchStream(0)
        entered = []
        with mock.patch.object(torch.cuda, "current_stream", lambda device: side):
            stream = hvd._streams.TorchStream(torch, "cuda:0")
        self.assertEqual(stream.number, 7)
        with mock.patch.object(torch.cuda, "stream", lambda one: entered.append(one) or contextlib.nullcontext()):
            with stream.current():
                self.assertEqual(entered, [side])
        for now in (main, side):
            with mock.patch.object(torch.cuda, "current_stream", lambda device, now=now: now):
                stream.order_current()
        self.assertEqual((main.waits_for, side.waits_for), ([7], []))


if __name__ == "__main__":
    unittest.main()
