"""torch's DistributedDataParallel, whose gradients drun averages."""
import datetime
import os
import unittest

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_wrapper
from torch.nn.parallel import DistributedDataParallel

import drun.torch as hvd
from test_torch_optimizer import alone, batches, model_of, part, same_everywhere


def setUpModule():
    global store
    torch.set_num_threads(1)
    hvd.init()
    # DDP needs a process group of its own even if the hook does the work.
    store = dist.HashStore()
    if hvd.size() > 1:
        where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        arguments = (*where, hvd.size(), hvd.rank() == 0, datetime.timedelta(seconds=60))
        try:  # Debian 13 builds torch without libuv, which newer versions use by default
            store = dist.TCPStore(*arguments, use_libuv=False)
        except TypeError:  # older versions don't have the argument
            store = dist.TCPStore(*arguments)


class Hook(unittest.TestCase):
    def setUp(self):
        own = dist.PrefixStore(self.id(), store)
        dist.init_process_group("gloo", store=own, rank=hvd.rank(), world_size=hvd.size())

    def tearDown(self):
        hvd.barrier()
        dist.destroy_process_group()

    def test_gives_the_model_of_one_rank(self):
        self.check(hvd.ddp_hook, 1e-5)

    def test_inside_of_torch_s_wrapper_for_halves(self):
        self.check(fp16_compress_wrapper(hvd.ddp_hook), 3e-3)

    def check(self, hook, tolerance):
        def sgd(parameters):
            return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

        model = model_of(hvd.rank())
        parallel = DistributedDataParallel(model, bucket_cap_mb=0.0001)
        parallel.register_comm_hook(None, hook)
        optimizer = sgd(parallel.parameters())
        for inputs, labels in batches():
            optimizer.zero_grad()
            F.cross_entropy(parallel(part(inputs)), part(labels)).backward()
            optimizer.step()
        self.assertTrue(same_everywhere(model))
        for got, expected in zip(model.parameters(), alone(sgd).parameters()):
            self.assertTrue(torch.allclose(got, expected, rtol=tolerance, atol=tolerance))
