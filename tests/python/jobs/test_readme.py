"""The Python lines of README.md, as typed: only PYTHONPATH locates the package."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[3]
README = (TREE / "README.md").read_text(encoding="utf-8")
# Code before and after the README's lines in a script for Horovod.
BEFORE = """
import torch
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
AFTER = """
model(torch.ones(2, 3)).sum().backward()
optimizer.step()
print("trained on", hvd.rank(), "of", hvd.size())
"""


def lines_after(words):
    """The indented lines after `words`."""
    block = README[README.index(words):].split("\n\n", 2)[1]
    lines = block.split("\n")
    assert lines and all(line.startswith("    ") for line in lines), block
    return "\n".join(line[4:] for line in lines) + "\n"


class Readme(unittest.TestCase):
    def shell(self, script):
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("PYTHONPATH", "DRUN_LIBRARY", "LD_LIBRARY_PATH")}
        environment["PATH"] = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"  # python3 means this Python
        return subprocess.run(["sh", "-ec", script], cwd=TREE, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=200, check=False)

    def test_the_lines_that_are_typed_after_quickstart(self):
        script = lines_after("The package runs from the tree")
        done = self.shell(script)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(re.findall(r"^build/release/bin/drun ", script, re.MULTILINE)), 2, script)
        accuracies = [float(text) for text in re.findall(r"test accuracy ([0-9.]+)", done.stdout)]
        self.assertEqual(len(accuracies), 2, done.stdout)
        self.assertGreater(min(accuracies), 80, done.stdout)

    def test_the_lines_of_a_script(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as script:
            script.write(BEFORE + lines_after("that were written for Horovod run unchanged") + AFTER)
            script.flush()
            done = self.shell(f"export PYTHONPATH=$PWD/python\nbuild/release/bin/drun -np 2 python3 {script.name}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), ["[0] trained on 0 of 2", "[1] trained on 1 of 2"])
