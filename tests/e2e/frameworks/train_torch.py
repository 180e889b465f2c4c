"""PyTorch's own multi-process APIs, without any mention of drun."""
import os

import torch
import torch.distributed as dist
from torch.distributed import rpc
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
print(f"rank {rank} of {size}: sum {total.item():g}")

x = torch.full((1, 1), rank + 1.0)  # the gradient of each rank; both wrappers average it
model = torch.nn.Linear(1, 1, bias=False)
ddp = torch.nn.parallel.DistributedDataParallel(model)
ddp(x).sum().backward()
print(f"DDP {model.weight.grad.item():g}")

mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard"))
row = torch.tensor([rank + 1.0])
dist.all_reduce(row, group=mesh.get_group("shard"))
print(f"DeviceMesh {row.item():g}")

sharded = torch.nn.Linear(1, size, bias=False)
fully_shard(sharded, mesh=init_device_mesh("cpu", (size,)))
sharded(x).sum().backward()
print(f"FSDP {sharded.weight.grad.full_tensor().mean().item():g}")

rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size)
print(f"RPC {rpc.rpc_sync(f'worker{(rank + 1) % size}', os.getenv, args=('RANK',))}")
rpc.shutdown()
dist.destroy_process_group()
