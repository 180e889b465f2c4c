"""Small data sets in the places where Horovod's examples look for those that they would download.

The classes can be told apart at a glance, so that a few steps of training show."""
import pathlib
import random
import struct
import zipfile

N_CLASSES = 10
KERAS_SIDE = 8  # of the digits for Keras, whose examples fix the number of steps: a step with small pictures is short


def _digit(label, side, dice):
    """side * side bytes: a bright bar on a dim ground, whose rows say the class."""
    first = label * (side - 1) // N_CLASSES
    bar = range(first, first + max(1, side // 8))
    return bytes(min(255, (200 if row in bar else 0) + dice.randrange(40)) for row in range(side) for _ in range(side))


def digits(count, side, seed):
    """The pictures of `count` digits, end to end, and their labels."""
    dice = random.Random(seed)
    labels = bytes(dice.randrange(N_CLASSES) for _ in range(count))
    return b"".join(_digit(label, side, dice) for label in labels), labels


def write_torch_mnist(folder, n_train=1280, n_test=256):
    """As torchvision.datasets.MNIST(folder) has it after its download."""
    raw = pathlib.Path(folder, "MNIST", "raw")
    raw.mkdir(parents=True)
    for seed, (part, count) in enumerate((("train", n_train), ("t10k", n_test))):
        images, labels = digits(count, 28, seed)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + images)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels)


def _npy(data, shape):
    """An array of bytes in numpy's format."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def write_keras_mnist(file, side, n_train=1280, n_test=256):
    """As keras.datasets.mnist.load_data() has it after its download, but with pictures of any size."""
    with zipfile.ZipFile(file, "w") as archive:
        for seed, (part, count) in enumerate((("train", n_train), ("test", n_test))):
            images, labels = digits(count, side, seed)
            archive.writestr(f"x_{part}.npy", _npy(images, (count, side, side)))
            archive.writestr(f"y_{part}.npy", _npy(labels, (count,)))


def write_pictures(folder, per_class, side=64):
    """As torchvision.datasets.ImageFolder expects them: a folder for each of two classes."""
    for name, color in (("bright", b"\xe0\xe0\x40"), ("dark", b"\x10\x20\x40")):
        place = pathlib.Path(folder, name)
        place.mkdir(parents=True)
        for index in range(per_class):
            (place / f"{index}.ppm").write_bytes(f"P6 {side} {side} 255\n".encode() + color * side * side)


def fill_home(home):
    """Puts the data sets into the home of a host, each where the examples look for it if they run in ~/example."""
    home = pathlib.Path(home)
    write_torch_mnist(home / "example" / "data")
    keras = home / ".keras" / "datasets"
    keras.mkdir(parents=True)
    for rank in (0, 1):
        write_keras_mnist(keras / f"mnist-{rank}.npz", KERAS_SIDE)
    for part in ("train", "validation"):
        write_pictures(home / "imagenet" / part, 10)
