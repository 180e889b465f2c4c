"""The loop of allreduce.cpp over torch.distributed's Gloo, started by drun."""
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.set_num_threads(1)
divisor = 1
for word in sys.argv[1:]:
    if word.startswith("/"):
        divisor = int(word[1:])
        continue
    size = int(word)
    data = torch.zeros(size // 4)
    n = max((1000 if size <= 4096 else 200 if size <= 256 << 10 else 20 if size <= 4 << 20 else 4) // divisor, 2)
    for _ in range(3):
        dist.all_reduce(data)
    times = []
    for _ in range(5):
        dist.barrier()
        began = time.perf_counter()
        for _ in range(n):
            dist.all_reduce(data)
        times.append((time.perf_counter() - began) / n)
    if dist.get_rank() == 0:
        print(size, f"{sorted(times)[2] * 1e6:.3f}", flush=True)
