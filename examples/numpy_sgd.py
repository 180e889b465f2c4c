#!/usr/bin/env python3
"""Data-parallel training with numpy alone: every rank has a copy of the model and a part of each batch; allreduce sums
the gradients. Any number of ranks gives the same model, except for rounding.

    drun -np 2 -H localhost:2 python3 examples/numpy_sgd.py
"""
import argparse
import os
import zlib

import numpy as np

import drun as hvd

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv")


def part(n):
    """This rank's part of [0, n)."""
    return n * hvd.rank() // hvd.size(), n * (hvd.rank() + 1) // hvd.size()


def probabilities(weights, bias, images):
    scores = images @ weights + bias
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def gradients(weights, bias, images, labels):
    """The gradients of the sum of the losses, and that sum."""
    p = probabilities(weights, bias, images)
    right = np.arange(len(labels)), labels
    loss = -np.log(np.maximum(p[right], 1e-300)).sum()
    p[right] -= 1
    return images.T @ p, p.sum(axis=0), np.array([loss])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64, help="samples of all ranks together")
    parser.add_argument("--learning-rate", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    hvd.init()
    data = np.loadtxt(DATA, delimiter=",")
    images, labels = data[:, :-1] / 16, data[:, -1].astype(int)
    order = np.random.RandomState(options.seed).permutation(len(images))  # the same on every rank
    test, train = order[: len(order) // 5], order[len(order) // 5:]

    # Only rank 0's initial weights count.
    weights = np.random.RandomState(hvd.rank()).normal(scale=0.01, size=(64, 10))
    bias = np.zeros(10)
    hvd.broadcast_parameters({"weights": weights, "bias": bias}, root_rank=0)

    shuffle = np.random.RandomState(options.seed + 1)
    for epoch in range(1, options.epochs + 1):
        shuffle.shuffle(train)
        total_loss = 0.0
        for begin in range(0, len(train), options.batch):
            batch = train[begin:begin + options.batch]
            mine = batch[slice(*part(len(batch)))]
            of_weights, of_bias, loss = hvd.grouped_allreduce_(
                list(gradients(weights, bias, images[mine], labels[mine])), op=hvd.Sum, name="gradients")
            step = options.learning_rate / len(batch)
            weights -= step * of_weights
            bias -= step * of_bias
            total_loss += loss[0]
        if hvd.rank() == 0 and (epoch % 5 == 0 or epoch in (1, options.epochs)):
            print(f"epoch {epoch:2}: loss {total_loss / len(train):.6f}")

    mine = test[slice(*part(len(test)))]
    right = np.array([(probabilities(weights, bias, images[mine]).argmax(axis=1) == labels[mine]).sum()])
    n_right = hvd.allreduce(right, op=hvd.Sum)[0]
    sums = hvd.allgather_object(zlib.crc32(weights.tobytes()))
    if hvd.rank() == 0:
        print(f"test accuracy {100 * n_right / len(test):.2f} %, norm {np.linalg.norm(weights):.6f}")
        print(f"the same model on {sums.count(sums[0])} of {hvd.size()} ranks")
    hvd.shutdown()
    return 0 if len(set(sums)) == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
