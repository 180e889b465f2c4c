"""DistributedDataParallel over Gloo on CPUs, written as for torchrun. Rank 0 prints the median milliseconds of a step,
the threads of a worker, and the number of ranks."""
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WIDTH, BATCH, WARM_UP = 512, 64, 5


def main():
    n_steps = int(sys.argv[1])
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(),
        torch.nn.Linear(WIDTH, WIDTH)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)
    times = []
    for _ in range(WARM_UP + n_steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        times.append(time.perf_counter() - began)
    if dist.get_rank() == 0:
        print(f"{1e3 * statistics.median(times[WARM_UP:]):.3f} {torch.get_num_threads()} {dist.get_world_size()}", flush=True)
    dist.destroy_process_group()


main()
