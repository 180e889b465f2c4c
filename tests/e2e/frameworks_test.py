"""The commands of docs/frameworks.md as typed, with the real packages, on two hosts with two workers each.

Not part of the suite, because the packages are gigabytes: `scripts/test --frameworks=FOLDER`. The scripts in
`frameworks/` don't mention drun and are typical of users' scripts. Each rank contributes its rank + 1: sum 10, mean
2.5."""
import os
import re
import shutil
import subprocess

from support import BIN, HERE, ClusterTest, untagged
from test_python import trees_of

PYTHON = os.environ["DRUN_TEST_PYTHON"]
# PyTorch's folder for extensions that are compiled from source; DeepSpeed's code for CPUs takes a minute once.
EXTENSIONS = os.environ.get("TORCH_EXTENSIONS_DIR", f"{trees_of(PYTHON)[0]}/torch_extensions")
RANKS = range(4)


def table():
    """program -> its cell of the table in the documentation."""
    with open(f"{HERE}/../../docs/frameworks.md", encoding="utf-8") as file:
        rows = re.findall(r"^\| (.+?) \| (.+) \|$", file.read(), re.MULTILINE)
    return {program.split(":")[0].split(",")[0]: cell for program, cell in rows if program != "program"}


def code(cell, beginning):
    """The code in a cell of the table that begins with `beginning`."""
    return next(piece for piece in re.findall(r"`([^`]+)`", cell) if piece.startswith(beginning))


def line_of(program):
    """The command that a user types, with the hosts of the cluster. "the same" means PyTorch's command."""
    cell = table()[program]
    line = code(cell if "`drun " in cell else table()["PyTorch"], "drun ")
    return re.sub(r"-H a(:2)?,b(:2)? ", r"-H h0\1,h1\2 -p 12345 ", line)


class Frameworks(ClusterTest):
    options = [word for tree in trees_of(PYTHON) for word in ("--tree", tree)]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = shutil.copytree(f"{HERE}/frameworks", f"{BIN}/frameworks")  # visible on all hosts

    def typed(self, line, script):
        """Runs the command with `script` in place of train.py. Returns its tagged lines."""
        line = line.replace("train.py", script)
        path = f"{os.path.dirname(PYTHON)}:{BIN}:/usr/bin:/bin:/usr/sbin:/sbin"
        self.addCleanup(self.cluster.assert_clean)
        job = self.cluster.run("h0", "sh", "-c", line, cwd=self.folder, limit=180,
                               env={"PATH": path, "TORCH_EXTENSIONS_DIR": EXTENSIONS})
        self.assertEqual(job.status, 0, str(job))
        self.assertNotIn("drun: warning", job.err)
        return job, untagged(job.out)

    def assert_trained(self, program, script, *more):
        """Asserts that four ranks know their rank, have the right sum, and print each of `more`, where {local} is the
        local rank."""
        job, lines = self.typed(line_of(program), script)
        for rank in RANKS:
            for text in (f"rank {rank} of 4: sum 10", *more):
                self.assertIn((rank, text.format(local=rank % 2)), lines, str(job))

    def test_every_line_of_the_documentation_is_tested(self):
        elsewhere = {"Horovod", "libdrun in C"}  # covered by tests/python and most of the other tests
        self.assertEqual(set(table()) - elsewhere,
                         {"PyTorch", "Lightning", "accelerate", "transformers", "DeepSpeed", "torchrun", "JAX"})

    def test_pytorch(self):
        job, lines = self.typed(line_of("PyTorch"), "train_torch.py")
        for rank in RANKS:
            for text in (f"rank {rank} of 4: sum 10", "DDP 2.5", f"DeviceMesh {3 if rank < 2 else 7}", "FSDP 2.5",
                         f"RPC {(rank + 1) % 4}"):
                self.assertIn((rank, text), lines, str(job))

    def test_lightning(self):
        self.assertIn("`Trainer(devices=2, num_nodes=2)`", table()["Lightning"])
        self.assert_trained("Lightning", "train_lightning.py", "local rank {local}, weight -2.5")

    def test_accelerate(self):
        self.assert_trained("accelerate", "train_accelerate.py", "local rank {local}, weight -2.5")

    def test_transformers(self):
        self.assert_trained("transformers", "train_transformers.py", "local rank {local}, weight -2.5")

    def test_deepspeed(self):
        if subprocess.run([PYTHON, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('deepspeed') is None)"],
                          check=False).returncode != 0:
            self.skipTest("pip could not install deepspeed")
        self.assert_trained("DeepSpeed", "train_deepspeed.py", "local rank {local}, weight -2.5")

    def test_torchrun_below_drun(self):
        line = line_of("torchrun").replace("--nproc-per-node 4", "--nproc-per-node 2")
        job, lines = self.typed(line, "train_torchrun.py")
        for rank in RANKS:
            self.assertIn((rank // 2, f"rank {rank} of 4: sum 10"), lines, str(job))

    def test_jax(self):
        join = code(table()["JAX"], "jax.distributed.initialize(num_processes")
        with open(f"{self.folder}/train_jax.py", encoding="utf-8") as file:
            text = file.read()
        with open(f"{self.folder}/joined.py", "w", encoding="utf-8") as file:
            file.write(text.replace("# JOIN", join))
        # On CPUs JAX listens on the address of the host's own name, which is 127.0.1.1 on Debian, as the documentation
        # says.
        for host, address in (("h0", "10.77.0.1"), ("h1", "10.77.0.2")):
            self.cluster.shell(host, f"sed 's/^127.0.1.1/{address}/' /etc/hosts > /tmp/hosts && cat /tmp/hosts > /etc/hosts")
        self.assert_trained("JAX", "joined.py")
