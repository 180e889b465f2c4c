"""Horovod's examples: with which arguments each runs, what its output must show, and which are left out."""
import dataclasses
import re
import typing

from training_checks import accuracy_reaches, all_of, loss_falls, says, speed_of

TWO_HOSTS = "localhost:1,host1:1"
HOROVODRUN = f"drun horovodrun -np 2 -H {TWO_HOSTS} -p 12345"
COMPAT = f"drun --compat horovod -np 2 -H {TWO_HOSTS} -p 12345"
WITHOUT = ""  # the script starts its ranks with horovod.run; the port is in the ssh config


@dataclasses.dataclass
class Example:
    frontend: str
    path: str  # below examples/
    arguments: str
    check: typing.Callable[[str], str]
    launcher: str = HOROVODRUN
    modules: tuple = ()  # that the script imports, and an environment may lack
    fresh: bool = True  # False: in the folder that the example before it leaves
    limit_s: int = 300

    @property
    def name(self):
        return f"{self.path} {self.arguments}".strip()

    @property
    def command(self):
        return f"{self.launcher} python {self.path.rsplit('/', maxsplit=1)[-1]} {self.arguments}".strip()


def _torch(*words, **options):
    return Example("torch", *words, **{"modules": ("torchvision", "filelock", "packaging"), **options})


def _tensorflow(*words, **options):
    return Example("tensorflow", *words, **{"modules": ("tf_keras", "packaging"), **options})


MNIST = "pytorch/pytorch_mnist.py"
ELASTIC_MNIST = "elastic/pytorch/pytorch_mnist_elastic.py"
DIGITS = all_of(loss_falls(r"Train Epoch.*Loss: ([0-9.]+)"), accuracy_reaches(r"Accuracy: ([0-9.]+)%", 80))
SMALL = "--num-warmup-batches 1 --num-batches-per-iter 2 --num-iters 3 --batch-size 4 --no-cuda"
RESNET18 = f"--model resnet18 {SMALL}"
IMAGENET = ("torchvision", "tensorboard", "tqdm")
# The folder has ten pictures of each class.
PICTURES = "--batch-size 4 --val-batch-size 4 --no-cuda"


def _epoch(number, but_not=None):
    """The bars of an epoch are full."""
    return all_of(*(says(rf"{part} Epoch +#{number}: 100%.*(loss=[0-9.e+]+, accuracy=[0-9.]+)", but_not) for part in ("Train", "Validate")))


def _solved(settings):
    """Two ranks found the solution in fewer than 50 steps; 100 means that they did not."""
    return says(rf"^{re.escape(settings)} 2 (\d\d)$")


KERAS_LOSS = loss_falls(r"\bloss: ([0-9.e+-]+)")
KERAS_DIGITS = all_of(KERAS_LOSS, accuracy_reaches(r"\baccuracy: ([0-9.]+)", 0.9))
STEPS = loss_falls(r"Step #\d+\s+Loss: ([0-9.]+)")
MOBILENET = "--model MobileNetV2 --num-batches-per-iter 2 --num-iters 3 --batch-size 4 --no-cuda"

EXAMPLES = [
    _torch(MNIST, "", DIGITS),
    _torch(MNIST, "--fp16-allreduce --gradient-predivide-factor 2", DIGITS, launcher=COMPAT),
    _torch(MNIST, "--use-adasum", DIGITS),
    _torch(MNIST, "--use-adasum --fp16-allreduce", DIGITS),
    _torch(MNIST, f"--num-proc 2 --hosts {TWO_HOSTS} --communication gloo", DIGITS, launcher=WITHOUT),
    _torch("pytorch/pytorch_synthetic_benchmark.py", RESNET18, speed_of(2), launcher=COMPAT),
    _torch("pytorch/pytorch_synthetic_benchmark.py", f"--fp16-allreduce {RESNET18}", speed_of(2)),
    _torch("pytorch/pytorch_synthetic_benchmark.py", f"--use-adasum {RESNET18}", speed_of(2)),
    _torch("pytorch/pytorch_imagenet_resnet50.py", f"--epochs 1 {PICTURES}", _epoch(1), modules=IMAGENET),
    _torch("pytorch/pytorch_imagenet_resnet50.py", f"--epochs 2 {PICTURES}", _epoch(2, but_not="Epoch +#1:"), modules=IMAGENET, fresh=False),
    _torch("adasum/adasum_small_model.py", "--op Average --learning_rate 0.4 --x_max 1.5", _solved("1.5 Average 0.4"), modules=()),
    _torch("adasum/adasum_small_model.py", "--op Adasum --learning_rate 0.4", _solved("1.0 Adasum 0.4"), modules=(), launcher=COMPAT),
    _torch(ELASTIC_MNIST, "", DIGITS),
    _torch(ELASTIC_MNIST, "--use-adasum --fp16-allreduce", DIGITS),
    _torch("elastic/pytorch/pytorch_synthetic_benchmark_elastic.py", RESNET18, speed_of(2)),
    _torch("elastic/pytorch/pytorch_imagenet_resnet50_elastic.py", f"--epochs 1 {PICTURES}", _epoch(1), modules=IMAGENET),
    _torch("elastic/pytorch/pytorch_imagenet_resnet50_elastic.py", f"--epochs 2 {PICTURES}", _epoch(2, but_not="Epoch +#1:"), modules=IMAGENET,
           fresh=False),
    _tensorflow("tensorflow2/tensorflow2_keras_mnist.py", "", KERAS_DIGITS),
    _tensorflow("tensorflow2/tensorflow2_keras_mnist.py", f"2 {TWO_HOSTS} gloo", KERAS_DIGITS, launcher=WITHOUT,
                modules=("tf_keras", "cloudpickle")),
    _tensorflow("tensorflow2/tensorflow2_mnist.py", "", STEPS, launcher=COMPAT),
    _tensorflow("tensorflow2/tensorflow2_synthetic_benchmark.py", f"--num-warmup-batches 1 {MOBILENET}", speed_of(2)),
    _tensorflow("tensorflow2/tensorflow2_synthetic_benchmark.py", f"--fp16-allreduce --num-warmup-batches 1 {MOBILENET}", speed_of(2)),
    _tensorflow("tensorflow2/tensorflow2_keras_synthetic_benchmark.py", MOBILENET, speed_of(2), launcher=COMPAT),
    _tensorflow("tensorflow2/tensorflow2_keras_synthetic_benchmark.py", f"--fp16-allreduce {MOBILENET}", speed_of(2)),
    _tensorflow("elastic/tensorflow2/tensorflow2_keras_mnist_elastic.py", "", KERAS_DIGITS),
    _tensorflow("elastic/tensorflow2/tensorflow2_mnist_elastic.py", "", STEPS),
    _tensorflow("elastic/tensorflow2/tensorflow2_synthetic_benchmark_elastic.py", f"--num-warmup-batches 1 {MOBILENET}", speed_of(2)),
]

# Pattern below examples/ -> the frontend of which it is one, and the reason. docs/migrating.md has them, too.
TF1 = "for TensorFlow 1: tf.ConfigProto, tf.Session and the like are not in TensorFlow 2"
LEFT_OUT = {
    "pytorch/pytorch_lightning_mnist.py": ("torch", "Lightning 2 has no strategy for Horovod, and no Trainer(gpus=)"),
    "pytorch/pytorch_mnist.py --use-mixed-precision": ("torch", "it wants a GPU"),
    "keras/*.py": ("tensorflow", TF1),
    "tensorflow/*.py": ("tensorflow", TF1),
    "elastic/tensorflow/*.py": ("tensorflow", TF1),
    "tensorflow2/tensorflow2_mnist_data_service*.py": ("tensorflow", "there is no horovod.tensorflow.data"),
    "mxnet/*.py": ("", "there is no horovod.mxnet"),
    "ray/*.py": ("", "there is no horovod.ray"),
    "spark/*/*.py": ("", "there is no horovod.spark"),
}
