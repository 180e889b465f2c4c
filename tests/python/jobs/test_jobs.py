"""Outcomes of jobs: failures, ends without shutdown, scripts written for Horovod."""
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

DRUN = os.path.join(os.environ["DRUN_BIN_DIR"], "drun")
EXAMPLES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../examples")


# Data loaders in child processes, begun after init(); learning rate by size; passes; averaged metrics; a checkpoint.
HOROVOD_SCRIPT = """
    import os, tempfile
    import torch
    import torch.nn.functional as F
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    def average(value, name):
        return hvd.allreduce(torch.tensor(value), name=name).item()

    hvd.init()
    torch.manual_seed(hvd.rank())
    torch.set_num_threads(1)
    inputs = torch.randn(96, 8, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
    sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=1, persistent_workers=True)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), hvd.SyncBatchNorm(16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    passes = 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * passes * hvd.size(), momentum=0.5)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), compression=hvd.Compression.fp16,
                                         backward_passes_per_step=passes, op=hvd.Average)
    for epoch in range(3):
        model.train()
        sampler.set_epoch(epoch)
        losses = []
        for number, (batch, expected) in enumerate(loader):
            if number % passes == 0:
                optimizer.zero_grad()
            loss = F.mse_loss(model(batch), expected) / passes
            loss.backward()
            losses.append(passes * loss.item())
            if number % passes == passes - 1:
                optimizer.step()
        loss = average(sum(losses) / len(losses), "avg_loss")
        if hvd.rank() == 0:
            print(f"epoch {epoch}: loss {loss:.3f}", flush=True)
    file = hvd.broadcast_object(tempfile.mktemp() if hvd.rank() == 0 else None)
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    hvd.barrier()
    read = torch.load(file)["model"]
    hvd.barrier()
    if hvd.rank() == 0:
        os.remove(file)
    trained = dict(model.named_parameters())
    equal = all(torch.equal(one, mine) for mine in trained.values() for one in hvd.allgather(mine.detach()[None]))
    print(f"models equal: {equal}, as read from the checkpoint: {all(torch.equal(read[name], trained[name]) for name in trained)}")
"""


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

    def test_an_interrupt_is_named_by_the_others(self):
        status, out, err = self.run_script(2, """
            import os, signal
            hvd.init()
            hvd.barrier()
            if hvd.rank() == 1:
                os.kill(os.getpid(), signal.SIGINT)
            try:
                hvd.barrier()
            except hvd.DrunError as error:
                print("caught", error.rank, error, flush=True)
                raise
        """)
        self.assertEqual(status, 130, out + err)
        self.assertIn("KeyboardInterrupt", err)
        self.assertRegex(out, "caught 1 .*SIGINT")

    def test_a_forked_child_knows_its_place_and_calls_nothing(self):
        status, out, err = self.run_script(2, """
            import os
            hvd.init()
            pending = hvd.allreduce_async(array.array("d", [1]), op=hvd.Sum)
            pid = os.fork()
            if pid == 0:
                print("child of", hvd.rank(), "of", hvd.size(), flush=True)
                try:
                    hvd.barrier()
                except hvd.DrunError as error:
                    print(error, flush=True)
                sys.exit()
            os.waitpid(pid, 0)
            print("sum", hvd.synchronize(pending)[0], hvd.allreduce(array.array("d", [1]), op=hvd.Sum)[0])
        """)
        self.assertEqual(status, 0, out + err)  # Python 3.12 and later warn on stderr of a fork beside threads
        for rank in range(2):
            self.assertIn(f"child of {rank} of 2", out)
        self.assertEqual((out.count("this is a forked child"), out.count("sum 2.0 2.0")), (2, 2), out)

    def test_with_calls_under_way_waits_for_nobody(self):
        for last_words, expected in (("raise SystemError('out of luck')", 1), ("sys.exit(3)", 3)):
            status, _, err = self.run_script(2, f"""
                hvd.init()
                if hvd.rank() == 0:
                    # The other rank does not join these calls.
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
        self.assertEqual(sorted(out.splitlines()), ["[0] caught True True", "[1] caught True True"])
        self.assertEqual(status, 0, out)

    def test_ranks_that_call_things_of_other_names(self):
        """They are equal in shape and type, so without names they would be summed with one another."""
        status, out, _ = self.run_script(2, """
            hvd.init()
            names = ["a", "b"] if hvd.rank() == 0 else ["b", "a"]
            handles = [hvd.allreduce_async(array.array("d", [ord(name)]), name=name) for name in names]
            try:
                print("no error", [hvd.synchronize(handle) for handle in handles])
            except hvd.DrunError as error:
                both = [f"called allreduce #1 '{name}' of 1 f64" in str(error) for name in "ab"]
                print("caught", error.status == hvd.ERROR_MISMATCH, *both)
        """)
        self.assertEqual(sorted(out.splitlines()), ["[0] caught True True True", "[1] caught True True True"])
        self.assertEqual(status, 0, out)

    def test_models_that_differ(self):
        status, out, _ = self.run_script(2, """
            import torch
            hvd.init()
            model = torch.nn.Linear(3, 2 + hvd.rank())
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
            model(torch.ones(1, 3)).sum().backward()
            try:
                optimizer.step()
            except hvd.DrunError as error:
                print("caught", error.status == hvd.ERROR_MISMATCH, error)
            hvd.shutdown()
            try:
                hvd.rank()
            except hvd.DrunError as error:
                print(error)
        """)
        self.assertEqual(status, 0, out)
        self.assertEqual(out.count("caught True rank"), 2)
        self.assertEqual(out.count("DistributedOptimizer wants the same parameters in the same order on all ranks"), 2, out)
        self.assertEqual(out.count("drun.shutdown() has been called"), 2, out)

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

    def test_scripts_in_the_way_of_horovod(self):
        status, out, err = self.run_script(2, HOROVOD_SCRIPT)
        self.assertEqual(status, 0, out + err)
        self.assertEqual(out.count("models equal: True, as read from the checkpoint: True"), 2, out)
        losses = [float(value) for value in re.findall(r"epoch \d: loss ([0-9.]+)", out)]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0] / 2)

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


class Errors(unittest.TestCase):

    def test_the_text_ends_with_one_code(self):
        script = """
import pickle, drun
error = drun.DrunError("rank 1 left", drun.ERROR_PEER, 1)
print(error, "|", pickle.loads(pickle.dumps(error)))
print(drun.DrunError("a [mismatch]", drun.ERROR_MISMATCH), "|", drun.DrunError("b"))
print(*(drun.DrunError("c", status) for status in (1, 0, -12, -1)))  # statuses of other releases, too
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.stdout, "rank 1 left [peer] | rank 1 left [peer]\na [mismatch] | b [internal]\n"
                         "c [internal] c [internal] c [internal] c [argument]\n", done.stderr)


class Library(unittest.TestCase):
    def test_what_only_horovod_has_is_named(self):
        code = "import drun as hvd\nprint(hasattr(hvd, 'elastic'))\nhvd.start_timeline('file')"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.stdout, "False\n")
        self.assertIn("'drun' has no attribute 'start_timeline': `drun --timeline FILE`", result.stderr)

    def test_that_is_missing_is_named(self):
        result = subprocess.run([sys.executable, "-c", "import drun; print('imported'); drun.init()"], capture_output=True,
                                text=True, timeout=60, check=False, env={**os.environ, "DRUN_LIBRARY": "/nowhere/libdrun.so"})
        self.assertEqual(result.stdout, "imported\n")
        self.assertIn("libdrun was not found: /nowhere/libdrun.so", result.stderr)


class Examples(unittest.TestCase):
    """The result is the same model, whatever the number of ranks."""

    def check(self, name, *options):
        expected = None
        for size in (1, 4):
            status, out, err = drun(size, os.path.join(EXAMPLES, name), *options)
            self.assertEqual(status, 0, out + err)
            self.assertIn(f"the same model on {size} of {size} ranks", out)
            lines = [line for line in out.replace("[0] ", "").splitlines() if line.startswith(("epoch", "test"))]
            self.assertGreater(float(lines[-1].split()[2]), 90)
            # Rounding changes at most the last of the printed digits.
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

    def test_pytorch_digits_by_every_method(self):
        for method, least in (("topk=0.05", 85), ("threshold=0.001", 85), ("partial=3", 85)):
            status, out, err = drun(2, os.path.join(EXAMPLES, "pytorch_digits.py"), "--epochs", "3", "--compression", method)
            self.assertEqual(status, 0, err)
            self.assertIn("the same model on 2 of 2 ranks", out)
            self.assertGreater(float(re.search(r"test accuracy ([\d.]+) %", out)[1]), least, method)

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
