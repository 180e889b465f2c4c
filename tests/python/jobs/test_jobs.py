"""What becomes of jobs: failures, ends without shutdown, scripts in the way of Horovod's."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

DRUN = os.path.join(os.environ["DRUN_BIN_DIR"], "drun")
EXAMPLES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../examples")


def drun(size, *command, environment=None):
    """(exit status, stdout, stderr)"""
    result = subprocess.run([DRUN, "-np", str(size), "-H", f"localhost:{size}", sys.executable, *command],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
                            env={**os.environ, **(environment or {})})
    return result.returncode, result.stdout, result.stderr


class Script(unittest.TestCase):
    def run_script(self, size, text, environment=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.py")
            with open(path, "w", encoding="utf-8") as script:
                script.write("import array, sys\nimport drun as hvd\n" + textwrap.dedent(text))
            return drun(size, path, environment=environment)


class Ends(Script):
    def test_without_shutdown_is_orderly(self):
        status, out, err = self.run_script(2, """
            hvd.init()
            print("done", hvd.synchronize(hvd.allreduce_async(array.array("d", [1]), op=hvd.Sum)))
        """)
        self.assertEqual((status, err), (0, ""), out)
        self.assertEqual(out.count("done"), 2)

    def test_a_rank_that_raises_is_named_by_the_others(self):
        status, out, err = self.run_script(2, """
            hvd.init()
            if hvd.rank() == 1:
                raise SystemError("out of luck")
            try:
                hvd.barrier()
            except hvd.DrunError as error:
                print("caught", error.status in (hvd.ERROR_PEER, hvd.ERROR_ABORTED), error.rank, flush=True)
                raise
        """)
        self.assertNotEqual(status, 0)
        self.assertIn("caught True 1", out)
        self.assertIn("rank 1 on localhost", err)
        self.assertIn("out of luck", err)

    def test_with_calls_under_way_waits_for_nobody(self):
        for last_words, expected in (("raise SystemError('out of luck')", 1), ("sys.exit(3)", 3)):
            status, _, err = self.run_script(2, f"""
                hvd.init()
                if hvd.rank() == 0:
                    # Nobody answers to these.
                    handles = [hvd.allreduce_async_(array.array("d", [1]) * 1000000) for _ in range(5)]
                    handles.append(hvd.allgather_async(array.array("d", [1])))
                    {last_words}
                __import__("time").sleep(60)
            """)
            self.assertEqual(status, expected, err)
            self.assertIn(f"exited with status {expected}", err)

    def test_ranks_that_call_different_things(self):
        status, out, _ = self.run_script(2, """
            hvd.init()
            try:
                if hvd.rank() == 0:
                    hvd.synchronize(hvd.allreduce_async(array.array("d", [1]), name="loss"))
                else:
                    hvd.allreduce(array.array("d", [1, 2]), name="loss")
            except hvd.DrunError as error:
                print("caught", error.status == hvd.ERROR_MISMATCH, "'loss'" in str(error))
        """)
        self.assertIn("caught True True", out)
        self.assertEqual(status, 0, out)

    def test_join_apart_says_what_it_needs(self):
        script = """
            hvd.init()
            try:
                if hvd.rank() == 0:
                    print("last", hvd.join())
                else:
                    print("sum", hvd.allreduce(array.array("d", [1]), op=hvd.Sum)[0])
                    print("last", hvd.join())
            except hvd.DrunError as error:
                print(error)
        """
        _, out, _ = self.run_script(2, script)
        self.assertIn("need init(join=True) or DRUN_JOIN=1", out)
        status, out, _ = self.run_script(2, script, environment={"DRUN_JOIN": "1"})
        self.assertEqual((status, out.count("last 1"), out.count("sum 1.0")), (0, 2, 1), out)

    def test_abort_ends_the_job(self):
        status, _, err = self.run_script(2, """
            hvd.init()
            if hvd.rank() == 0:
                hvd.abort("the loss is not a number")
                sys.exit(3)
            hvd.barrier()
        """)
        self.assertNotEqual(status, 0)
        self.assertIn("the loss is not a number", err)


class Library(unittest.TestCase):
    def test_that_is_missing_is_named(self):
        result = subprocess.run([sys.executable, "-c", "import drun; print('imported'); drun.init()"], capture_output=True,
                                text=True, timeout=60, check=False, env={**os.environ, "DRUN_LIBRARY": "/nowhere/libdrun.so"})
        self.assertEqual(result.stdout, "imported\n")
        self.assertIn("libdrun was not found: /nowhere/libdrun.so", result.stderr)


class Examples(unittest.TestCase):
    """The same model, whatever the number of ranks."""

    def check(self, name, *options):
        expected = None
        for size in (1, 4):
            status, out, err = drun(size, os.path.join(EXAMPLES, name), *options)
            self.assertEqual(status, 0, out + err)
            self.assertIn(f"the same model on {size} of {size} ranks", out)
            lines = [line for line in out.replace("[0] ", "").splitlines() if line.startswith(("epoch", "test"))]
            self.assertGreater(float(lines[-1].split()[2]), 90)
            # What rounding changes is behind the digits that are printed, or in the last of them.
            numbers = [float(word.rstrip(",")) for line in lines for word in line.split() if word[0].isdigit() and "." in word]
            if expected is None:
                expected = numbers
            self.assertEqual(len(numbers), len(expected))
            for number, other in zip(numbers, expected):
                self.assertAlmostEqual(number, other, delta=1e-3)

    def test_numpy_sgd(self):
        self.check("numpy_sgd.py")

    def test_pytorch_digits(self):
        self.check("pytorch_digits.py", "--epochs", "3", "--passes", "2")

    def test_pytorch_goes_on_from_a_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "checkpoint")
            command = [os.path.join(EXAMPLES, "pytorch_digits.py"), "--compression", "bf16", "--epochs"]
            self.assertEqual(drun(2, *command, "1", "--checkpoint", file)[0], 0)
            status, resumed, err = drun(2, *command, "2", "--checkpoint", file)
            self.assertEqual(status, 0, err)
            self.assertIn("the same model on 2 of 2 ranks", resumed)
            through = drun(2, *command, "2")[1]
            self.assertEqual(resumed.splitlines()[-2:], through.splitlines()[-2:])
