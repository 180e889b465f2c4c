"""libdrun and the real NCCL in one process, loaded in every possible order. No GPU is needed for that."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

NCCL = os.environ["DRUN_TEST_NCCL"]  # a libnccl.so.2

SHOW = """
    def loaded():
        lines = open("/proc/self/maps").read().splitlines()
        return {os.path.realpath(line.split()[-1]) for line in lines if "libnccl" in line}
    def version_of(library):
        version = ctypes.c_int()
        assert library.ncclGetVersion(ctypes.byref(version)) == 0
        return version.value
"""


class RealNccl(unittest.TestCase):
    def python(self, script, **environment):
        env = {**os.environ, **environment}
        code = "import ctypes, os, sys\n" + textwrap.dedent(SHOW) + textwrap.dedent(script)
        done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, env=env, capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_one_that_is_loaded_is_the_one_that_is_used(self):
        """Like torch imported first."""
        self.python(f"""
            first = ctypes.CDLL({NCCL!r})
            import drun
            drun.init()
            assert drun.nccl_built() == version_of(first) > 0
            assert loaded() == {{os.path.realpath({NCCL!r})}}, loaded()
        """, DRUN_NCCL_LIB="/no/such/file")

    def test_who_loads_it_later_gets_the_same(self):
        """Like torch imported last, whose libraries load it by name."""
        self.python(f"""
            import drun
            drun.init()
            version = drun.nccl_built()
            assert version > 0
            later = ctypes.CDLL("libnccl.so.2")
            assert version_of(later) == version
            assert loaded() == {{os.path.realpath({NCCL!r})}}, loaded()
            drun.shutdown()
            assert version_of(later) == version
        """, DRUN_NCCL_LIB=NCCL)

    def test_the_one_of_a_wheel_is_found(self):
        with tempfile.TemporaryDirectory() as site:
            folder = os.path.join(site, "nvidia", "nccl", "lib")
            os.makedirs(folder)
            os.symlink(NCCL, os.path.join(folder, "libnccl.so.2"))
            self.python(f"""
                sys.path.append({site!r})
                import drun
                assert drun.nccl_built() > 0
                assert loaded() == {{os.path.realpath({NCCL!r})}}, loaded()
            """, DRUN_NCCL_LIB="")

    def test_nothing_is_loaded_without_need(self):
        self.python("""
            import drun
            drun.init()
            drun.allreduce(bytearray(4), op=drun.Sum)
            drun.shutdown()
            assert loaded() == set(), loaded()
            assert not [line for line in open("/proc/self/maps") if "libcuda" in line or "cudart" in line]
        """)
