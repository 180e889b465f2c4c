"""A training step with 100 MB of gradients: FRONTEND STEPS. FRONTEND: horovod (the package that was imported by that name:
drun's, or a real one), drun (import drun) or ddp (DistributedDataParallel over Gloo). Rank 0 prints samples per second of
all ranks, by the median step, and the loss."""
import os
import statistics
import sys
import time

import torch

WIDTH, LAYERS, BATCH, WARM_UP = 2048, 6, 16, 3


def prepare(frontend, model):
    """(optimizer, model, rank, size)"""
    sgd = torch.optim.SGD(model.parameters(), lr=0.001)
    if frontend == "ddp":
        torch.distributed.init_process_group("gloo")
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        return sgd, wrapped, torch.distributed.get_rank(), torch.distributed.get_world_size()
    if frontend == "horovod":
        import horovod.torch as hvd
    else:
        import drun as hvd
    hvd.init()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return hvd.DistributedOptimizer(sgd, named_parameters=model.named_parameters()), model, hvd.rank(), hvd.size()


def main():
    frontend, n_steps = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(1)
    layers = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(WIDTH, WIDTH, bias=False), torch.nn.ReLU())]
    optimizer, model, rank, size = prepare(frontend, torch.nn.Sequential(*layers[:-1]))
    torch.manual_seed(2 + rank)
    inputs, targets = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)
    times, loss = [], None
    for _ in range(WARM_UP + n_steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - began)
    if rank == 0:
        print(f"{BATCH * size / statistics.median(times[WARM_UP:]):.2f} {loss.item():.6f}", flush=True)


main()
