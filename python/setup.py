"""Settings that pyproject.toml can't express: the binaries, if they are there, and the wheel's tag, whose binaries
don't depend on Python."""
import os

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

# build-wheel puts them there; without them the package searches for libdrun elsewhere.
HAS_BINARIES = os.path.isdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "drun", "lib"))


class Wheel(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class Package(Distribution):
    def has_ext_modules(self):
        return HAS_BINARIES


FOLDERS = ["drun.bin", "drun.lib"] if HAS_BINARIES else []
setup(distclass=Package, cmdclass={"bdist_wheel": Wheel}, packages=["drun", *FOLDERS],
      # horovod is no package of the wheel: it must not be found under that name without `drun --compat horovod`.
      package_data={"drun": ["compat/horovod/" + "*/" * depth + "*.py" for depth in range(4)],
                    **{folder: ["*"] for folder in FOLDERS}})
