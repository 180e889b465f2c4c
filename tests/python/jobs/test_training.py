"""DistributedOptimizer of Python gives the bits of the one in drun/training.hpp. DRUN_TRAINING_VALUES is the C++ program."""
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

DRUN = os.path.join(os.environ["DRUN_BIN_DIR"], "drun")
COUNTS, STEPS, N_RANKS = (1, 3000, 7, 640), 5, 3

SCRIPT = """
import sys
import torch
import drun.torch as hvd

counts, n_steps = (1, 3000, 7, 640), 5

def train(given, out, **arguments):
    trained = [torch.nn.Parameter(torch.zeros(count, dtype=given.dtype)) for count in counts]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(trained, lr=1.0), **arguments)
    def write():
        out.write(torch.cat([p.detach() for p in trained]).numpy().tobytes())
    for step in range(n_steps):
        optimizer.zero_grad()
        sum((p * g).sum() for p, g in zip(trained, given[step].split(counts))).backward()
        optimizer.step()
        write()
    optimizer.average_parameters()
    write()

hvd.init()
torch.set_num_threads(1)
folder = sys.argv[1]
with open(f"{folder}/in.{hvd.rank()}", "rb") as file:
    given = torch.frombuffer(bytearray(file.read()), dtype=torch.float64).view(n_steps, sum(counts))
with open(f"{folder}/python.{hvd.rank()}", "wb") as out:
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        train(given.float(), out, compression=compression)
    for arguments in ({"compression": hvd.Compression.topk(0.01)}, {"compression": hvd.Compression.topk(0.3)},
                      {"compression": hvd.Compression.threshold(0.02)}, {"compression": hvd.Compression.threshold(0.3)},
                      {"partial_update": 3}):
        train(given.float(), out, **arguments)
        train(given, out, **arguments)
"""
N_BYTES = 2 * 4 + 5 * (4 + 8)  # of an element, in all cases


class Training(unittest.TestCase):
    def run_job(self, *command):
        result = subprocess.run([DRUN, "-np", str(N_RANKS), "-H", f"localhost:{N_RANKS}", *command], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_has_the_bits_of_the_cpp_optimizer(self):
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(N_RANKS):
                numbers = random.Random(rank)
                # Many magnitudes, equal values, values at the thresholds, and some that halves can't add up.
                values = [numbers.choice((numbers.gauss(0, 0.1), numbers.randint(-8, 8) / 64, 0.3, -0.02, 1e5))
                          for _ in range(STEPS * sum(COUNTS))]
                with open(f"{folder}/in.{rank}", "wb") as file:
                    file.write(struct.pack(f"{len(values)}d", *values))
            self.run_job(os.environ["DRUN_TRAINING_VALUES"], folder)
            self.run_job(sys.executable, "-c", SCRIPT, folder)
            n_bytes = N_BYTES * (STEPS + 1) * sum(COUNTS)
            for rank in range(N_RANKS):
                with open(f"{folder}/cpp.{rank}", "rb") as cpp, open(f"{folder}/python.{rank}", "rb") as python:
                    expected, got = cpp.read(), python.read()
                self.assertEqual(len(expected), n_bytes)
                n_differ = sum(expected[at: at + 4] != got[at: at + 4] for at in range(0, n_bytes, 4))
                self.assertEqual(n_differ, 0, f"rank {rank}, of {n_bytes // 4} words")

    def test_other_settings_on_one_rank_are_named(self):
        script = """if True:
            import torch, drun.torch as hvd
            hvd.init()
            weight = torch.nn.Parameter(torch.zeros(10))
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), compression=hvd.Compression.topk(
                0.1 if hvd.rank() == 0 else 0.2))
            weight.sum().backward()
            optimizer.step()
        """
        result = subprocess.run([DRUN, "-np", "2", sys.executable, "-c", script], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"rank 1 on \S+ called allreduce #3 'which gradients there are \(topk=0.2\) of \S+'.* while rank 0 on \S+ "
                                        r"called allreduce #3 'which gradients there are \(topk=0.1\) of \S+'")
