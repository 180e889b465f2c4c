"""The tools of tests/e2e/horovod: what they take for training, and the data that they make. The examples themselves run by
`scripts/test --horovod=FOLDER`."""
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "e2e" / "horovod"
sys.path.insert(0, str(FOLDER))

import tiny_data  # noqa: E402
from example_table import DIGITS, EXAMPLES, KERAS_DIGITS, LEFT_OUT  # noqa: E402
from training_checks import NotTrained, all_of, loss_falls, says, speed_of  # noqa: E402

EPOCHS = "Train Epoch: 1 [0/640 (0%)]\tLoss: 2.3\nTest set: Average loss: 2.2, Accuracy: 40.00%\n"
BENCHMARK = "Number of CPUs: 2\nIter #0: 5.0 img/sec per CPU\nTotal img/sec on 2 CPU(s): 10.5 +-0.1\n"


class Checks(unittest.TestCase):
    def test_a_loss_must_fall_and_an_accuracy_rise(self):
        later = "Train Epoch: 2 [0/640 (0%)]\tLoss: 0.3\nTest set: Average loss: 0.2, Accuracy: 95.00%\n"
        self.assertEqual(DIGITS(EPOCHS + later), "loss 2.3 to 0.3, accuracy 40.0 to 95.0")
        for bad in (EPOCHS, EPOCHS + later.replace("0.3", "2.2"), EPOCHS + later.replace("95.00", "60.00"), later, ""):
            with self.assertRaises(NotTrained, msg=bad):
                DIGITS(bad)

    def test_a_loss_that_is_no_number_is_no_training(self):
        with self.assertRaisesRegex(NotTrained, "no line like"):
            loss_falls(r"Loss: ([0-9.]+)")("Loss: nan")
        with self.assertRaisesRegex(NotTrained, "not all numbers are finite"):
            loss_falls(r"Loss: (\S+)")("Loss: 2.0\nLoss: inf")

    def test_bars_of_keras(self):
        bar = "250/250 [====] - 5s 20ms/step - loss: {} - accuracy: {} - lr: 0.0020"
        self.assertEqual(KERAS_DIGITS("\n".join([bar.format("0.5", "0.7"), bar.format("8.1e-03", "0.99")])),
                         "loss 0.5 to 0.0081, accuracy 0.7 to 1.0")

    def test_a_benchmark_must_have_counted_all_ranks(self):
        self.assertEqual(speed_of(2)(BENCHMARK), "10.5 pictures/s")
        for bad in (BENCHMARK.replace("CPUs: 2", "CPUs: 1"), BENCHMARK.replace("10.5", "0.0"), BENCHMARK.replace("on 2", "on 1")):
            with self.assertRaises(NotTrained, msg=bad):
                speed_of(2)(bad)

    def test_lines_that_must_and_must_not_be_there(self):
        check = all_of(says("^resumed (at 2)$", but_not="epoch 1"), says("^done$"))
        self.assertEqual(check("resumed at 2\ndone"), "at 2, done")
        for bad in ("resumed at 2", "resumed at 2\nepoch 1\ndone"):
            with self.assertRaises(NotTrained):
                check(bad)


class Data(unittest.TestCase):
    def test_digits_of_keras_are_numpys_arrays(self):
        file = io.BytesIO()
        tiny_data.write_keras_mnist(file, 8, n_train=50, n_test=20)
        file.seek(0)
        arrays = np.load(file)
        self.assertEqual({name: (array.shape, array.dtype) for name, array in arrays.items()},
                         {"x_train": ((50, 8, 8), np.uint8), "y_train": ((50,), np.uint8), "x_test": ((20, 8, 8), np.uint8),
                          "y_test": ((20,), np.uint8)})
        self.assertEqual(set(arrays["y_train"]), set(range(10)))

    def test_every_class_has_pictures_of_its_own_at_the_size_of_mnist(self):
        images, labels = tiny_data.digits(100, 28, seed=1)
        bars = {}
        for image, label in zip(np.frombuffer(images, np.uint8).reshape(100, 28, 28), labels):
            bars.setdefault(label, set()).add(tuple(np.flatnonzero(image.mean(axis=1) > 100)))
        self.assertEqual([len(bars[label]) for label in range(10)], [1] * 10)
        self.assertEqual(len(set.union(*bars.values())), 10)


class Table(unittest.TestCase):
    def test_an_unknown_example_and_a_wrong_checkout_are_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, FOLDER / "examples", folder, "--frontend", "torch", "--list"], capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertIn("is no checkout of Horovod", done.stderr)
            for path in ("pytorch/pytorch_mnist.py", "pytorch/new.py", "ray/any.py"):
                file = pathlib.Path(folder, "examples", path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
            done = subprocess.run([sys.executable, FOLDER / "examples", folder, "--frontend", "torch", "--list"], capture_output=True,
                                  text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "examples: in no table: pytorch/new.py\n"))
        self.assertEqual(done.stdout.splitlines()[0], EXAMPLES[0].command)

    def test_the_page_has_every_row(self):
        page = (FOLDER.parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")
        for path in {example.path for example in EXAMPLES} | {pattern.split(" ")[0] for pattern in LEFT_OUT}:
            self.assertTrue(f"`{path}" in page, path)
