"""drun bench --backend nccl, on one rank, or on two that share a GPU, with the stand-ins for NVIDIA's driver and NCCL:
tests the worker, not GPUs. ctest sets DRUN, LD_LIBRARY_PATH and DRUN_NCCL_LIB."""
import json
import os
import subprocess
import unittest

DRUN = os.environ["DRUN"]
FAKES = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DRUN_NCCL_LIB", "DRUN_GPU")}
KINDS = ("all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter", "alltoall", "gather", "scatter")


class Bench(unittest.TestCase):
    def bench(self, *words, n=1, sizes=("-b", "64", "-e", "16K", "-f", "16"), backend="nccl", **more):
        workers = [word for name, value in {**FAKES, **more}.items() for word in ("-x", f"{name}={value}")]
        environment = {name: value for name, value in os.environ.items() if name not in FAKES}
        command = [DRUN, "bench", "-np", str(n), "--backend", backend, *sizes, "-n", "3", *workers, *words]
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False)

    def rows(self, done):
        return [line.split() for line in done.stdout.splitlines() if line and not line.startswith("#")]

    def test_every_collective(self):
        for kind in KINDS:
            with self.subTest(kind):
                done = self.bench("-o", kind)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("# Out of bounds values : 0 OK\n", done.stdout)
                self.assertRegex(done.stdout, r"\n# NCCL \d+\.\d+\.\d+ \(/.*libnccl\.so\.2\)\n")
                self.assertRegex(done.stdout, r"\n#  Rank  0 .* device  0 \[a GPU that there is not\]\n")
                rows = self.rows(done)
                self.assertEqual(len(rows), 3)
                for row in rows:
                    self.assertEqual(row[8], "0")
                    self.assertGreater(float(row[5]), 0)
                    self.assertGreater(float(row[13]), 0)

    def test_json(self):
        found = json.loads(self.bench("--json", "-d", "half").stdout)
        self.assertRegex(found["nccl"], r"^\d+\.\d+\.\d+ \(/")
        self.assertEqual(found["config"]["devices"][0]["device_info"], "a GPU that there is not")
        self.assertEqual(found["out_of_bounds"]["count"], 0)
        self.assertEqual([row["size"] for row in found["results"]], [64, 1024, 16384])

    def test_memory_of_nccl_and_more_than_a_gpu_has(self):
        done = self.bench(sizes=("-b", "8M", "-e", "8G", "-f", "1024"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\n# Reducing maxBytes to 26843544 due to memory limitation\n")
        self.assertEqual([row[0] for row in self.rows(done)], [str(8 << 20)])

    def test_ranks_that_see_one_gpu_each_do_not_share_it(self):
        # DRUN_GPU=0: the stand-in for NCCL has no processes that talk to each other.
        done = self.bench("-H", "localhost:gpus=0,1", n=2, sizes=("-b", "64", "-e", "8G", "-f", "10000000"),
                          DRUN_GPU="0", DRUN_FAKE_CUDA="visible")
        self.assertIn("# Reducing maxBytes to 26843544 due to memory limitation\n", done.stdout, done.stderr)

    def test_registered_buffers(self):
        for words, n_registered in ((("-R", "1"), 1), ((), 0)):
            done = self.bench("--json", *words, sizes=("-b", "8M", "-e", "8M"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads(done.stdout)["config"]["local_register"], n_registered)
        done = self.bench("-R", "1", sizes=("-b", "8M", "-e", "8M"), DRUN_FAKE_NCCL="no-register")
        self.assertEqual(done.returncode, 0)
        self.assertIn("drun: warning: memory is not registered with NCCL, which copies then: rank 0 on ", done.stderr)
        self.assertEqual(self.bench("-R", "1", backend="cpu").returncode, 2)

    def test_wrong_sums_are_seen(self):
        done = self.bench(DRUN_FAKE_NCCL="wrong-sums")
        self.assertEqual(done.returncode, 1)
        self.assertIn("# Out of bounds values : 6 FAILED\n", done.stdout)
        self.assertIn("drun bench: 6 measurements with wrong elements", done.stderr)

    def test_without_a_driver(self):
        done = self.bench(LD_LIBRARY_PATH="/nonexistent")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("--backend nccl: this host has no driver of NVIDIA's: libcuda.so.1: ", done.stderr)

    def test_without_a_gpu(self):
        done = self.bench(DRUN_FAKE_CUDA="no-gpu")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("--backend nccl: this host has a driver of NVIDIA's, but no GPU\n", done.stderr)

    def test_without_nccl(self):
        done = self.bench(DRUN_NCCL_LIB="/nonexistent")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("--backend nccl: there is no NCCL: ", done.stderr)

    def test_ranks_that_share_a_gpu(self):
        done = self.bench(n=2)
        self.assertEqual(done.returncode, 1)
        self.assertIn("use the same GPU, GPU-", done.stderr)
        done = self.bench(n=2, DRUN_SHARED_GPU="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("drun: warning: data of GPUs goes through the host, which is slow", done.stderr)
        self.assertIn("# Out of bounds values : 0 OK\n", done.stdout)

    def test_what_nccl_does_not_do_is_refused(self):
        for words, complaint in ((("-o", "barrier"), "-o: a barrier is the host's"),
                                 (("--redop", "avg", "-d", "int32"), "--redop: averages of integers are not NCCL's")):
            done = self.bench(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(complaint, done.stderr)

    def test_another_backend_is_refused(self):
        done = self.bench(backend="gloo")
        self.assertEqual(done.returncode, 2)
        self.assertIn("drun: error: --backend: 'gloo' is no backend [usage]\n  hint: --backend nccl, or cpu\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
