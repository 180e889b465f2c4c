"""The wheel, in its own virtual environment that doesn't refer to this tree."""
import gzip
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCES = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = """
import array, drun as hvd
hvd.init()
data = array.array("d", [hvd.rank()])
print("size", hvd.size(), "sum", hvd.allreduce(data, op=hvd.Sum)[0], "from", hvd._library.library()._name)
"""


def run(*command, environment=None):
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                            check=False, env=environment)
    if result.returncode != 0:
        raise AssertionError(f"{command}: status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        top = pathlib.Path(folder.name)
        cls.wheel = pathlib.Path(run(sys.executable, SOURCES / "python/build-wheel", os.environ["DRUN_BUILD_DIR"], "--dist",
                                     top / "dist").strip())
        cls.environment = {name: value for name, value in os.environ.items()
                           if not name.startswith(("DRUN_", "PYTHON")) and name != "LD_LIBRARY_PATH"}
        cls.venv = top / "venv"
        run(sys.executable, "-m", "venv", cls.venv, environment=cls.environment)
        run(cls.venv / "bin/pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", cls.wheel,
            environment=cls.environment)

    def test_is_one_for_every_python_and_manylinux(self):
        self.assertRegex(self.wheel.name, rf"^drun-\d+\.\d+\.\d+-py3-none-manylinux_2_\d+_{os.uname().machine}\.whl$")
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
            agent = wheel.read("drun/bin/drun-agent")
            packed = {name: wheel.read(name) for name in names if name.endswith(".gz")}
        for name in ("drun/bin/drun", "drun/bin/drun-agent", "drun/bin/drun-bench-agent", "drun/lib/libdrun.so.0", "drun/torch.py",
                     "drun/compat/horovod/torch/elastic/state.py"):
            self.assertIn(name, names)
        [(name, data)] = packed.items()
        self.assertEqual(name, f"drun/bin/drun-agent.{hashlib.sha256(agent).hexdigest()[:16]}.gz")
        self.assertEqual(gzip.decompress(data), agent)
        self.assertFalse([name for name in names if "__pycache__" in name or name.startswith("horovod")])
        self.assertTrue([name for name in names if name.endswith("LICENSE")], names)

    def test_two_ranks(self):
        out = run(self.venv / "bin/drun", "-np", "2", "-H", "localhost:2", self.venv / "bin/python", "-c", SCRIPT,
                  environment=self.environment)
        self.assertEqual(out.count("size 2 sum 1.0"), 2, out)
        self.assertIn(f"from {self.venv}", out)

    def test_has_horovods_names_only_on_request(self):
        words = ["-np", "1", "-H", "localhost:1", self.venv / "bin/python", "-c", "import horovod; print(horovod.__file__)"]
        self.assertIn(str(self.venv), run(self.venv / "bin/drun", "--compat", "horovod", *words, environment=self.environment))
        alone = subprocess.run([self.venv / "bin/drun", *words], env=self.environment, capture_output=True, text=True,
                               timeout=60, check=False)
        self.assertIn("No module named 'horovod'", alone.stderr)

    def test_alone_and_as_a_module(self):
        self.assertIn("size 1 sum 0.0", run(self.venv / "bin/python", "-c", SCRIPT, environment=self.environment))
        self.assertRegex(run(self.venv / "bin/python", "-m", "drun", "--version", environment=self.environment), r"\d+\.\d+\.\d+")

    def test_brings_the_libraries_that_not_every_linux_has(self):
        [package] = self.venv.glob("lib/python3*/site-packages/drun")
        for file in ("bin/drun", "lib/libdrun.so.0"):
            foreign = [line for line in run("ldd", package / file, environment=self.environment).splitlines()
                       if str(self.venv) not in line
                       and not re.match(r"\s*(lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so|linux-vdso|/lib\S*/ld-linux)", line)]
            self.assertEqual(foreign, [], file)
