"""The Python package between hosts: all of its tests, by the ranks of two hosts."""
import os
import shutil

from support import BIN, HERE, ClusterTest

PYTHON = "/usr/bin/python3"


class TwoHosts(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Beside the binaries, which every host sees.
        for source, target in ((f"{HERE}/../../python", "python"), (f"{HERE}/../python", "tests")):
            shutil.copytree(source, f"{BIN}/{target}", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(os.environ["DRUN_LIBRARY"], f"{BIN}/libdrun.so")

    def test_two_ranks_on_each(self):
        job = self.good("-np", "4", "-H", "localhost:2,host1:2", PYTHON, f"{BIN}/tests/run", "rank", cwd=BIN,
                        env={"PYTHONPATH": f"{BIN}/python", "DRUN_LIBRARY": f"{BIN}/libdrun.so", "OMP_NUM_THREADS": "1"})
        self.assertEqual(job.err.count("FAILED"), 0, str(job))
        self.cluster.assert_clean()
