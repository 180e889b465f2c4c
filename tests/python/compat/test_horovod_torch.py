"""horovod.torch of `drun --compat horovod`: what differs from drun's own package, or was wrong in it."""
import copy
import importlib
import os
import unittest
import warnings

import torch

import drun
import horovod
import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
from horovod.torch import mpi_ops


def setUpModule():
    hvd.init()


def gradient_of(function, shape=(2, 3)):
    """Of all ones behind the function."""
    tensor = torch.ones(shape, requires_grad=True)
    function(tensor).sum().backward()
    return tensor.grad


class Place(unittest.TestCase):
    def test_scripts_read_variables_and_version(self):
        for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"):
            self.assertEqual(int(os.environ[f"HOROVOD_{name}"]), getattr(hvd, name.lower())(), name)
        self.assertEqual(horovod.__version__, "0.28.1")
        self.assertTrue(hvd.gloo_built())
        self.assertFalse(hvd.mpi_enabled())

    def test_before_init(self):
        hvd.shutdown()
        try:
            with self.assertRaisesRegex(ValueError, "Horovod has not been initialized; use hvd.init()"):
                hvd.rank()
            self.assertEqual(hvd.global_process_set.ranks, [])
        finally:
            hvd.init()
        self.assertEqual(hvd.global_process_set.ranks, list(range(hvd.size())))

    def test_frontends_that_are_not_there(self):
        for name, why in (("mxnet", "retired"), ("spark", "--compat horovod"), ("ray", "--compat horovod")):
            with self.assertRaisesRegex(ImportError, why):
                importlib.import_module(f"horovod.{name}")


class Order(unittest.TestCase):
    def test_is_by_name(self):
        names = ["a", "b"] if hvd.rank() == 0 else ["b", "a"]
        handles = {name: hvd.allreduce_async(torch.full((2,), float(ord(name))), name=name) for name in names}
        self.assertEqual({name: hvd.synchronize(handle).tolist() for name, handle in handles.items()},
                         {"a": [97.0] * 2, "b": [98.0] * 2})

    def test_an_error_leaves_the_others_possible(self):
        for tensor in (torch.ones(2 + hvd.rank()), torch.ones(2).to([torch.int32, torch.float64][hvd.rank() % 2])):
            if hvd.size() > 1:
                with self.assertRaises(HorovodInternalError):
                    hvd.allreduce(tensor, name="differs")
        self.assertEqual(hvd.allreduce(torch.ones(2), name="differs").tolist(), [1.0, 1.0])

    def test_a_rank_that_has_joined_stays_joined(self):
        if hvd.size() == 1 or hvd.rank() == 0:
            self.assertIn(hvd.join(), range(hvd.size()))
            return
        with self.assertRaises(HorovodInternalError):
            hvd.broadcast(torch.ones(1), 1, name="needs all")
        self.assertIn(hvd.join(), range(hvd.size()))


class Gradients(unittest.TestCase):
    def assert_all(self, gradient, value):
        self.assertEqual(gradient.tolist(), torch.full_like(gradient, value).tolist())

    def test_are_those_of_horovod(self):
        n = hvd.size()
        self.assert_all(gradient_of(hvd.allgather), 1)
        self.assert_all(gradient_of(lambda tensor: hvd.grouped_allgather([tensor])[0]), 1)
        self.assert_all(gradient_of(lambda tensor: hvd.broadcast(tensor, 0)), 1 if hvd.rank() == 0 else 0)
        self.assert_all(gradient_of(lambda tensor: hvd.allreduce(tensor, op=hvd.Sum)), n)
        self.assert_all(gradient_of(hvd.allreduce), 1)
        self.assert_all(gradient_of(lambda tensor: hvd.reducescatter(tensor, op=hvd.Sum), (n, 2)), n)
        self.assert_all(gradient_of(hvd.reducescatter, (n, 2)), 1)
        self.assert_all(gradient_of(hvd.alltoall, (n, 2)), 1)

    def test_of_a_group(self):
        both = [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]
        sum(one.sum() for one in hvd.grouped_allreduce(both, op=hvd.Sum)).backward()
        self.assertEqual([one.grad.tolist() for one in both], [[hvd.size()] * 2, [hvd.size()] * 3])

    def test_of_parts_of_different_sizes(self):
        tensor = torch.ones(hvd.rank() + 1, requires_grad=True)
        gathered = hvd.allgather(tensor)
        (gathered * torch.arange(float(len(gathered)))).sum().backward()
        begin = hvd.rank() * (hvd.rank() + 1) // 2
        self.assertEqual(tensor.grad.tolist(), [float(begin + row) for row in range(hvd.rank() + 1)])


class Types(unittest.TestCase):
    def test_integers_are_scaled_in_double_precision(self):
        n = hvd.size()
        given = torch.tensor([1, 3], dtype=torch.int32)
        self.assertEqual(hvd.allreduce(given, op=hvd.Sum, prescale_factor=2.5).tolist(), [2 * n, 7 * n])
        self.assertEqual(hvd.allreduce(given, op=hvd.Sum, postscale_factor=0.5).tolist(), [n // 2, 3 * n // 2])
        hvd.allreduce_(given, op=hvd.Sum, prescale_factor=2.0)
        self.assertEqual(given.tolist(), [2 * n, 6 * n])
        both = hvd.grouped_allreduce([torch.tensor([2]), torch.ones(1)], op=hvd.Sum, prescale_factor=1.5)
        self.assertEqual([one.tolist() for one in both], [[3 * n], [1.5 * n]])
        rows = torch.ones(n, dtype=torch.int64)
        self.assertEqual(hvd.reducescatter(rows, op=hvd.Sum, prescale_factor=3.0).tolist(), [3 * n])

    def test_halves_on_a_gpu_are_scaled_there_by_a_half(self):
        on_gpu = mpi_ops._Changed(torch.empty(3, dtype=torch.float16, device="meta"), hvd.Sum, 0.3, 0.5)
        self.assertEqual((on_gpu.prescale, on_gpu.postscale), (1.0, 1.0))
        for one in (on_gpu.tensor, on_gpu.back(on_gpu.tensor)):
            self.assertEqual((one.device.type, one.dtype), ("meta", torch.float16))
        on_host = mpi_ops._Changed(torch.ones(3).half(), hvd.Sum, 0.3, 0.5)
        self.assertEqual((on_host.prescale, on_host.postscale), (0.3, 0.5))
        scaled = mpi_ops._scaled(torch.tensor([3.0]).half(), 0.3)
        self.assertEqual((scaled.dtype, scaled.item()), (torch.float16, 0.900390625))
        self.assertEqual(torch.tensor(3.0 * 0.3).half().item(), 0.89990234375)

    def test_a_group_on_gpus_and_the_host_is_refused(self):
        with self.assertRaisesRegex(HorovodInternalError, "'both': some of its tensors are on a GPU, and some on the CPU"):
            hvd.grouped_allreduce_async((torch.ones(1, device=where) for where in ("cpu", "meta")), name="both")

    def test_what_is_scaled_here_is_written_once_a_poll_sees_the_end(self):
        given = torch.full((2,), 3, dtype=torch.int32)
        handle = hvd.allreduce_async_(given, op=hvd.Sum, postscale_factor=2.0)
        while not hvd.poll(handle):
            pass
        self.assertEqual(given.tolist(), [6 * hvd.size()] * 2)
        self.assertIs(hvd.synchronize(handle), given)
        self.assertEqual(given.tolist(), [6 * hvd.size()] * 2)

    def test_autograd_sees_nothing_of_calls_in_place(self):
        weight = torch.nn.Parameter(torch.ones(2).half())
        self.assertIs(hvd.allreduce_(weight, op=hvd.Adasum), weight)
        for prescale in (1.0, 0.5):
            on_gpu = torch.nn.Parameter(torch.empty(2, dtype=torch.float16, device="meta"))
            one = mpi_ops._Changed(on_gpu, hvd.Sum, prescale, 0.5)
            self.assertFalse(one.tensor.requires_grad)
            self.assertIs(one.back_in_place(one.tensor), on_gpu)

    def test_adasum_of_halves(self):
        self.assertEqual(hvd.allreduce(torch.tensor([1.0, 2.0]).half(), op=hvd.Adasum).tolist(), [1.0, 2.0])


class Alltoall(unittest.TestCase):
    def test_asynchronous_ones_tell_the_splits(self):
        rows, splits = hvd.synchronize(hvd.alltoall_async(torch.full((hvd.size(), 2), float(hvd.rank()))))
        self.assertEqual(rows[:, 0].tolist(), [float(rank) for rank in range(hvd.size())])
        self.assertEqual(splits.tolist(), [1] * hvd.size())
        self.assertEqual(hvd.alltoall(torch.ones(hvd.size())).tolist(), [1.0] * hvd.size())


class ProcessSets(unittest.TestCase):
    def test_answer_when_they_are_added(self):
        if hvd.size() == 1:
            return
        one = hvd.ProcessSet([0])
        self.assertEqual((one.size(), one.rank(), one.included()), (None, None, hvd.rank() == 0))
        hvd.add_process_set(one)
        self.assertEqual(one.size(), 1)
        if hvd.rank() == 0:
            self.assertEqual(one.rank(), 0)
        self.assertTrue(hvd.remove_process_set(one))
        self.assertIsNone(one.size())

    def test_the_optimizer_of_a_rank_outside_is_its_own(self):
        if hvd.size() == 1:
            return
        first = hvd.add_process_set([0])
        parameter = torch.nn.Parameter(torch.zeros(1))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), [("p", parameter)], process_set=first)
        (parameter * hvd.rank()).sum().backward()
        optimizer.step()
        self.assertEqual(parameter.item(), -hvd.rank())
        hvd.remove_process_set(first)


class Optimizers(unittest.TestCase):
    def test_sparse_as_dense_gives_sparse_gradients_back(self):
        embedding = torch.nn.Embedding(4, 2, sparse=True)
        hvd.broadcast_parameters(embedding.state_dict(), root_rank=0)
        optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(embedding.parameters())),
                                             embedding.named_parameters(), sparse_as_dense=True)
        for _ in range(2):
            optimizer.zero_grad()
            embedding(torch.tensor([hvd.rank() % 4])).sum().backward()
            optimizer.step()
        self.assertTrue(embedding.weight.grad.is_sparse)
        weights = hvd.allgather_object(embedding.weight.detach())
        self.assertTrue(all(torch.equal(one, weights[0]) for one in weights))

    def test_adasum_takes_the_changes_of_a_step(self):
        """With momentum that is not the same as Adasum of the gradients. On ranks that do the same, both are the step."""
        model = torch.nn.Linear(2, 1)
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        alone = copy.deepcopy(model)
        optimizers = [torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9) for one in (model, alone)]
        optimizers[0] = hvd.DistributedOptimizer(optimizers[0], model.named_parameters(), op=hvd.Adasum,
                                                 compression=hvd.Compression.fp16)
        for _ in range(3):
            for one, optimizer in zip((model, alone), optimizers):
                optimizer.zero_grad()
                one(torch.ones(4, 2)).pow(2).sum().backward()
                optimizer.step()
        for own, expected in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-6)

    def test_adasum_with_a_parameter_that_only_some_ranks_use(self):
        used, other = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([used, other], lr=1.0), [("used", used), ("other", other)],
                                             op=hvd.Adasum)
        (used + (other if hvd.rank() == 0 else 0)).sum().backward()
        optimizer.step()
        self.assertEqual([used.item(), other.item()], [-1.0, -1.0])

    def test_adasum_of_orthogonal_changes_is_their_sum(self):
        if hvd.size() != 2:
            return
        parameter = torch.nn.Parameter(torch.zeros(2))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0, momentum=0.5), [("p", parameter)],
                                             op=hvd.Adasum)
        parameter[hvd.rank()].backward()
        optimizer.step()
        self.assertEqual(parameter.tolist(), [-1.0, -1.0])

    def test_a_step_after_synchronize_warns_in_horovods_words(self):
        model = torch.nn.Linear(1, 1)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        if hvd.size() == 1:
            return
        model(torch.ones(1, 1)).sum().backward()
        optimizer.synchronize()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            optimizer.step()
        self.assertIn("optimizer.step() called without optimizer.skip_synchronize()", str(caught[0].message))

    def test_broadcast_of_a_new_state_leaves_zeros_as_gradients(self):
        model = torch.nn.Linear(1, 1)
        hvd.broadcast_optimizer_state(torch.optim.SGD(model.parameters(), lr=0.1), 0, model)
        self.assertEqual([p.grad.abs().sum().item() for p in model.parameters()], [0, 0])

    def test_broadcast_of_a_state_leaves_what_the_optimizer_can_take(self):
        table = torch.nn.Embedding(3, 1, sparse=True)
        hvd.broadcast_optimizer_state(torch.optim.SparseAdam(table.parameters()), 0)
        self.assertTrue(table.weight.grad.is_sparse)
        used, unused = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([used, unused], lr=0.1, momentum=0.9)
        used.sum().backward()
        optimizer.step()
        hvd.broadcast_optimizer_state(optimizer, 0)
        self.assertIsNone(unused.grad)


class Elastic(unittest.TestCase):
    """In a job whose ranks stay the same."""

    def test_a_state_is_shared_and_restored(self):
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (1 + hvd.rank()))
        state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=hvd.rank())
        seen = []

        @hvd.elastic.run
        def train(state, word):
            seen.append((state.epoch, optimizer.param_groups[0]["lr"], word))
            state.epoch += 1
            state.commit()
            state.epoch = 7
            with torch.no_grad():
                model.weight.zero_()
            state.restore()
            return state.epoch

        state.register_reset_callbacks([lambda: None])
        self.assertEqual(train(state, "x"), 1)
        self.assertEqual(seen, [(0, 0.1, "x")])
        weights = hvd.allgather_object(model.weight.item())
        self.assertEqual(weights, [weights[0]] * hvd.size())
        self.assertNotEqual(weights[0], 0)

    def test_samples_are_divided_among_the_ranks(self):
        sampler = hvd.elastic.ElasticSampler(list(range(10)), shuffle=True, seed=1)
        parts = hvd.allgather_object(list(sampler))
        self.assertEqual(set().union(*map(set, parts)), set(range(10)))
        self.assertEqual({len(part) for part in parts}, {len(sampler)})
        few = hvd.elastic.ElasticSampler([0])
        self.assertEqual(hvd.allgather_object(list(few)), [[0]] * hvd.size())

    def test_a_sampler_goes_on_with_what_no_rank_has_processed(self):
        n_samples = 6 * hvd.size()
        sampler = hvd.elastic.ElasticSampler(list(range(n_samples)), shuffle=True, seed=1)
        state = hvd.elastic.TorchState(sampler=sampler)
        first = list(sampler)[:4]
        for batch in range(2):
            sampler.record_batch(batch, 2)
        self.assertEqual(sampler.state_dict(), {"epoch": 0, "processed_num": 4 * hvd.size()})
        self.assertEqual(len(sampler), 6, "until the next reset")
        state.commit()
        sampler.record_batch(2, 2)
        state.restore()
        parts = hvd.allgather_object(first + list(sampler))
        self.assertEqual(sorted(sum(parts, [])), list(range(n_samples)))
        if hvd.rank() == 1:
            sampler.set_epoch(5)
        state.sync()
        self.assertEqual(sampler.state_dict(), {"epoch": 0, "processed_num": 4 * hvd.size()})
        sampler.set_epoch(1)
        self.assertEqual(len(sampler), 6)
        self.assertEqual(len(sampler.remaining_indices), n_samples)


class Beside(unittest.TestCase):
    def test_it_is_the_package_of_the_drun_that_is_imported(self):
        home = os.path.dirname(os.path.dirname(drun.__file__))
        self.assertEqual(horovod.__file__, os.path.join(home, "drun", "compat", "horovod", "__init__.py"))
