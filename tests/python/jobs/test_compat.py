"""`drun --compat horovod`: the package is there without a change of the script, only where it was asked for."""
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest

DRUN = os.path.join(os.environ["DRUN_BIN_DIR"], "drun")
COMPAT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))), "python", "drun",
                      "compat")


def run(*words, env=None):
    return subprocess.run([DRUN, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **(env or {})})


class Compat(unittest.TestCase):
    def test_a_script_of_horovods_runs_as_it_is(self):
        script = "import horovod.torch as hvd, torch; hvd.init(); print(hvd.allreduce(torch.ones(1), op=hvd.Sum).item())"
        done = run("--compat", "horovod", "-np", "2", "--no-tag-output", sys.executable, "-c", script)
        self.assertEqual((done.returncode, done.stdout), (0, "2.0\n2.0\n"), done.stderr)

    def test_without_it_there_is_no_such_package(self):
        done = run("-np", "1", sys.executable, "-c", "import horovod.torch")
        self.assertIn("No module named 'horovod'", done.stderr)

    def test_it_needs_no_python_path(self):
        done = run("--compat", "horovod", "-np", "1", sys.executable, "-c",
                   "import horovod, drun, os; print(os.environ['PYTHONPATH'].count(':'), drun.__name__)", env={"PYTHONPATH": ""})
        self.assertEqual((done.returncode, done.stdout), (0, "0 drun\n"), done.stderr)

    def test_a_drun_without_the_package_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = os.path.join(folder, "bin", "drun")
            os.mkdir(os.path.dirname(alone))
            shutil.copy(DRUN, alone)
            done = subprocess.run([alone, "--compat", "horovod", "true"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--compat horovod: drun's Python package is not beside this drun", done.stderr)

    def test_a_rank_that_dies_is_named(self):
        script = """
import os, torch, horovod.torch as hvd
hvd.init()
hvd.barrier()
if hvd.rank() == 1:
    os._exit(0)
try:
    hvd.allreduce(torch.ones(1), name="a")
except hvd.HorovodInternalError as error:
    print(error, error.rank)
os._exit(0)
"""
        done = run("--compat", "horovod", "-np", "2", "--no-tag-output", sys.executable, "-c", script)
        self.assertEqual((done.returncode, done.stdout), (0, "rank 1 was lost [peer] 1\n"), done.stderr)

    def test_run_calls_a_function_in_every_rank(self):
        module = """
def add(number, more=0):
    import horovod.torch as hvd, torch
    hvd.init()
    return hvd.allreduce(torch.tensor([number + hvd.rank()]), op=hvd.Sum).item() + more
"""
        script = """
import horovod
from adds import add
print(horovod.run(add, (3,), {"more": 10}, np=2))
try:
    horovod.run(add, (1,), num_proc=1, min_np=1)
except ValueError as error:
    print(error)
"""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("adds.py", module), ("main.py", script)):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            done = subprocess.run([sys.executable, "main.py"], capture_output=True, text=True, timeout=60, check=False, cwd=folder,
                                  env={**os.environ, "PYTHONPATH": f"{COMPAT}:{os.environ['PYTHONPATH']}:{folder}",
                                       "PATH": f"{os.path.dirname(DRUN)}:{os.environ['PATH']}"})
        self.assertEqual(done.stdout.splitlines(), ["[17, 17]", "run(min_np=...): a job of drun has the ranks that it began with"],
                         done.stderr)

    def test_the_call_of_run_needs_no_folder_and_the_results_need_one(self):
        """Rank 1 is on a host that does not have the folder of the results, as on most clusters; then rank 0 is."""
        call = pickle.dumps((len, ([5, 6, 7],), {}))
        task = [sys.executable, os.path.join(COMPAT, "horovod", "runner", "task.py")]
        with tempfile.TemporaryDirectory() as folder:
            command = f'[ $DRUN_RANK = 0 ] && exec "$@" {folder} || exec "$@" {folder}/none'
            drun = [DRUN, "run", "--compat", "horovod", "--stdin", "all"]
            done = subprocess.run([*drun, "-np", "2", "sh", "-c", command, "task", *task], input=call, capture_output=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "results"), "rb") as file:
                self.assertEqual(pickle.load(file), [3, 3])
            done = subprocess.run([*drun, "-np", "1", *task, f"{folder}/none"], input=call, capture_output=True, timeout=60,
                                  check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"name the calling host (localhost) first in hosts", done.stderr)
