"""Calls of a real Horovod whose results are known, on all ranks, in two starts of its library; and a small training."""
import os

import torch
import horovod.torch as hvd


def check(what, found, expected):
    if not torch.equal(torch.as_tensor(found), torch.as_tensor(expected)):
        raise SystemExit(f"rank {os.environ['HOROVOD_RANK']}: {what}: {found}, expected {expected}")


def check_places():
    for name in ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size"):
        check(name, getattr(hvd, name)(), int(os.environ[f"DRUN_{name.upper()}"]))


def check_calls():
    rank, size = hvd.rank(), hvd.size()
    check("sum", hvd.allreduce(torch.tensor([rank + 1.0, 1.0]), op=hvd.Sum), [size * (size + 1) / 2, size])
    check("average", hvd.allreduce(torch.full((70000,), float(rank))), torch.full((70000,), (size - 1) / 2))
    check("gather", hvd.allgather(torch.full((rank + 1,), rank)), [r for r in range(size) for _ in range(r + 1)])
    check("broadcast", hvd.broadcast(torch.tensor([rank * 7]), root_rank=size - 1), [(size - 1) * 7])
    check("alltoall", hvd.alltoall(torch.arange(size) + 10 * rank), [10 * r + rank for r in range(size)])
    check("object", hvd.broadcast_object(os.environ["HOROVOD_HOSTNAME"] * 1000, 0) != "", True)


def check_process_set():
    """The ranks with an even number. Horovod hangs in a backward pass after that, also if horovodrun has started it."""
    even = hvd.add_process_set(list(range(0, hvd.size(), 2)))
    if hvd.rank() % 2 == 0:
        check("sum of a set", hvd.allreduce(torch.ones(3), op=hvd.Sum, process_set=even), torch.full((3,), float(even.size())))
    hvd.remove_process_set(even)


def train():
    """Each rank has data of its own; all must end with the same model, and a better one."""
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(4, 1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05), model.named_parameters())
    losses = []
    for _ in range(60):
        x = torch.randn(16, 4)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(hvd.allreduce(loss.detach()).item())
    check("loss falls", losses[-1] < 0.1 * losses[0], True)
    weights = hvd.allgather(model.weight.detach())
    check("the same model", weights, weights[:1].expand_as(weights))


os.environ.setdefault("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
for start in range(2):
    hvd.init()
    check_places()
    check_calls()
    train()
    check_process_set()
    if start == 0:
        hvd.shutdown()
print(f"right on rank {hvd.rank()} of {hvd.size()}, local {hvd.local_rank()} of {hvd.local_size()}, {os.path.dirname(hvd.__file__)}", flush=True)
