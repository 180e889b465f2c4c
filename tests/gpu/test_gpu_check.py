"""scripts/gpu-check from end to end on a machine without a GPU, with the stand-ins for NVIDIA's driver and NCCL, whose
ranks are processes that meet in a folder. Tests the script, not a GPU; without train_cuda, which needs CUDA's own
runtime. ctest sets DRUN_BUILD, LD_LIBRARY_PATH, DRUN_NCCL_LIB and DRUN_GPU."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["DRUN_BUILD"])
SMI = """#!/bin/sh
case $1 in
  --query-gpu=name) echo "NVIDIA Stand In" ;;
  --query-gpu=driver_version) echo 1.2.3 ;;
  *) exit 1 ;;
esac
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("bin", "build/bin", "meetings"):
            (self.folder / name).mkdir(parents=True)
        smi = self.folder / "bin/nvidia-smi"
        smi.write_text(SMI, encoding="utf-8")
        smi.chmod(0o755)
        for name in ("bin/drun", "bin/drun-agent", "tests", "lib"):
            (self.folder / "build" / name).symlink_to(BUILD / name)

    def check(self, *words, **more):
        report = self.folder / "report.md"
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                       "DRUN_FAKE_NCCL_FOLDER": f"{self.folder}/meetings", **more}
        done = subprocess.run([ROOT / "scripts/gpu-check", "--build", self.folder / "build", "--report", report, "--quick",
                               *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=500, check=False)
        return done, report.read_text(encoding="utf-8")

    def rows(self, report):
        return dict(re.findall(r"^\| ([^|]*) \| ([a-zA-Z:, ]*) \|", report, re.MULTILINE))

    def test_all_of_it(self):
        done, report = self.check()
        self.assertEqual(done.returncode, 0, done.stdout)
        rows = self.rows(report)
        for name in ("stand-ins for driver and NCCL", "training on stand-ins", "collectives, 1 ranks",
                     "collectives, 2 ranks", "collectives, 4 ranks", "capture in a CUDA graph, 1 ranks",
                     "capture in a CUDA graph, 2 ranks", "through the host, 2 ranks",
                     "a rank that is killed is named, and the others' streams go on",
                     "overhead beside plain NCCL, 1 ranks", "overhead beside plain NCCL, 2 ranks",
                     "drun bench --backend nccl, a rank for each GPU", "drun bench -R 1: registered buffers"):
            self.assertEqual(rows.get(name), "good", f"{name}\n{done.stdout}")
        can_unshare = subprocess.run(["unshare", "-Urm", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        hosts = {name: verdict for name, verdict in rows.items() if "two hosts" in name}
        self.assertEqual(hosts, {"collectives, 4 ranks on two hosts: splits": "good"} if can_unshare else
                         {"collectives on two hosts": "no namespaces here: not run"}, done.stdout)
        kernels = {name: verdict for name, verdict in rows.items() if name.startswith("kernels")}
        self.assertIn(kernels, ({"kernels": "this build has none: not run"},
                                {"kernels against the host's loops": "good", "kernels in a CUDA graph": "good"}))
        self.assertNotIn("BAD", report)
        self.assertIn("# libdrun on 1 x NVIDIA Stand In\n\nWith --quick: the sizes are small", report)
        self.assertIn(". Driver 1.2.3, ", report)
        self.assertRegex(report, r"\n    a GPU that there is not, driver 13000, NCCL 22809 \(/.*libnccl\.so\.2\), 4 ranks\n")
        self.assertRegex(report, r"## libdrun beside plain NCCL, 2 ranks\n\n\| bytes .*\n.*\n\| 8 \| [0-9.]+ \|")
        self.assertEqual(report.count("    # Out of bounds values : 0 OK\n"), 2)

    def test_what_is_wrong_is_said(self):
        done, report = self.check("--only", "^(collectives, 2 ranks|drun bench)", DRUN_FAKE_NCCL="wrong-sums")
        self.assertEqual(done.returncode, 1)
        rows = {name: verdict for name, verdict in self.rows(report).items() if "not run" not in verdict}
        self.assertEqual(rows, {"collectives, 2 ranks": "BAD", "drun bench --backend nccl, a rank for each GPU": "BAD",
                                "drun bench -R 1: registered buffers": "BAD"})
        self.assertRegex(report, r"## What failed\n\n### collectives, 2 ranks: status 1\n\n```\n(.*\n)*?.*is .*, not ")
        self.assertIn("report.md: 3 bad\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
