#!/usr/bin/env python3
"""Data-parallel training with PyTorch, written like a script for Horovod. Any number of ranks gives the same model,
except for rounding.

    drun -np 2 -H localhost:2 python3 examples/pytorch_digits.py
"""
import argparse
import os
import zlib

import torch
import torch.nn.functional as F

import drun as hvd

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv")


def load_digits():
    with open(DATA, encoding="ascii") as lines:
        rows = torch.tensor([[int(value) for value in line.split(",")] for line in lines])
    return rows[:, :-1].float() / 16, rows[:, -1]


def part(indices):
    """This rank's part of a batch."""
    n = len(indices)
    return indices[n * hvd.rank() // hvd.size(): n * (hvd.rank() + 1) // hvd.size()]


def passes(indices, n):
    """Splits `indices` into n pieces."""
    return [indices[len(indices) * i // n: len(indices) * (i + 1) // n] for i in range(n)]


def method(text):
    """Arguments of DistributedOptimizer."""
    name, _, value = text.partition("=")
    if name == "partial":
        return {"partial_update": int(value or 4)}
    compression = getattr(hvd.Compression, name)
    # Each rank contributes the sum over its samples, divided by the size of the whole batch: parts may differ in size.
    return {"op": hvd.Sum, "compression": compression(float(value)) if value else compression}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="samples of all ranks together")
    parser.add_argument("--passes", type=int, default=1, help="backward passes per step")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--compression", default="none", help="none, fp16, bf16; topk=0.01: each rank sends the hundredth of "
                        "its gradients that is largest; threshold=0.001: what is at least that large; partial=4: no gradients, "
                        "each step averages a fourth of the parameters")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", help="a file that rank 0 writes, and from which training goes on")
    options = parser.parse_args()

    hvd.init()
    torch.set_num_threads(1)  # the ranks share the cores
    images, labels = load_digits()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(options.seed))  # the same on every rank
    test, train = order[: len(order) // 5], order[len(order) // 5:]

    torch.manual_seed(options.seed + hvd.rank())  # only rank 0's weights count
    model = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.Tanh(), torch.nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.learning_rate, momentum=0.9)
    first_epoch = 1
    if options.checkpoint and hvd.rank() == 0 and os.path.exists(options.checkpoint):
        checkpoint = torch.load(options.checkpoint)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        first_epoch = checkpoint["epoch"] + 1
    first_epoch = hvd.broadcast_object(first_epoch, root_rank=0)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    arguments = method(options.compression)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                         backward_passes_per_step=options.passes, **arguments)
    factor = hvd.size() if "partial_update" in arguments else 1  # the parameters are averaged, not summed

    for epoch in range(first_epoch, options.epochs + 1):
        shuffled = train[torch.randperm(len(train), generator=torch.Generator().manual_seed(options.seed + epoch))]
        total_loss = torch.zeros(1)
        for batch in shuffled.split(options.batch):
            optimizer.zero_grad()
            for mine in passes(part(batch), options.passes):
                loss = F.cross_entropy(model(images[mine]), labels[mine], reduction="sum")
                (loss * factor / len(batch)).backward()
                total_loss += loss.detach()
            optimizer.step()
        total_loss = hvd.allreduce(total_loss, op=hvd.Sum, name="loss")
        if hvd.rank() == 0 and (epoch % 5 == 0 or epoch in (1, options.epochs)):
            print(f"epoch {epoch:2}: loss {total_loss.item() / len(train):.6f}")

    optimizer.average_parameters()
    mine = part(test)
    with torch.no_grad():
        n_right = hvd.allreduce((model(images[mine]).argmax(1) == labels[mine]).sum(), op=hvd.Sum).item()
        parameters = torch.cat([p.flatten() for p in model.parameters()])
    sums = hvd.allgather_object(zlib.crc32(parameters.numpy().tobytes()))
    if hvd.rank() == 0:
        print(f"test accuracy {100 * n_right / len(test):.2f} %, norm {parameters.norm().item():.6f}")
        print(f"the same model on {sums.count(sums[0])} of {hvd.size()} ranks")
        if options.checkpoint:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": options.epochs}
            torch.save(state, options.checkpoint + ".tmp")
            os.replace(options.checkpoint + ".tmp", options.checkpoint)
    hvd.shutdown()
    return 0 if len(set(sums)) == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
