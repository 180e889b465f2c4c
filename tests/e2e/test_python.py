"""The Python package between hosts: the ranks of two hosts run all of its tests.

DRUN_TEST_PYTHON is the Python of a virtual environment that has drun's wheel; without it Debian's Python runs the
sources."""
import os
import shutil
import subprocess

from support import BIN, HERE, ClusterTest

INSTALLED = os.environ.get("DRUN_TEST_PYTHON")
PYTHON = INSTALLED or "/usr/bin/python3"


def trees_of(python):
    """The folders of an environment and of its base Python, which may be in places that hosts replace."""
    code = "import sys; print(sys.prefix, sys.base_prefix, sep=chr(10))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split("\n")[:2]


# The limit for all tests of a rank in a row. They take half a minute, and several beside processes that compute.
LIMIT_S = 240


class TwoHosts(ClusterTest):
    options = [word for tree in trees_of(INSTALLED) for word in ("--tree", tree)] if INSTALLED else ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Beside the binaries, which every host sees.
        shutil.copytree(f"{HERE}/../python", f"{BIN}/tests", ignore=shutil.ignore_patterns("__pycache__"))
        cls.environment = {"OMP_NUM_THREADS": "1"}
        if not INSTALLED:
            shutil.copytree(f"{HERE}/../../python", f"{BIN}/python", ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(os.environ["DRUN_LIBRARY"], f"{BIN}/libdrun.so")
            cls.environment.update(PYTHONPATH=f"{BIN}/python", DRUN_LIBRARY=f"{BIN}/libdrun.so")

    def test_two_ranks_on_each(self):
        job = self.good("-np", "4", "-H", "localhost:2,host1:2", PYTHON, f"{BIN}/tests/run", "rank", cwd=BIN,
                        env=self.environment, limit=LIMIT_S)
        self.assertEqual(job.err.count("FAILED"), 0, str(job))
        self.cluster.assert_clean()

    if not INSTALLED:  # the wheel has a drun of its own, which its own test starts
        def test_horovods_names_on_each(self):
            job = self.good("horovodrun", "-np", "4", "--gloo", "-H", "localhost:2,host1:2", PYTHON, f"{BIN}/tests/run",
                            "compat_rank", cwd=BIN, env=self.environment, limit=LIMIT_S)
            self.assertEqual(job.err.count("FAILED"), 0, str(job))
            self.assertIn("without a meaning here: --gloo", job.err)
            self.cluster.assert_clean()
