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
        for name in ("bin/drun", "bin/drun-agent", "bin/drun-bench-agent", "tests", "lib"):
            (self.folder / "build" / name).symlink_to(BUILD / name)

    def run_script(self, *command, **more):
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                       "DRUN_FAKE_NCCL_FOLDER": f"{self.folder}/meetings", **more}
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=500, check=False)

    def check(self, *words, script=ROOT / "scripts/gpu-check", build=True, **more):
        report = self.folder / "report.md"
        of_build = ("--build", self.folder / "build") if build else ()
        done = self.run_script(script, *of_build, "--report", report, "--quick", "--minutes", "9", *words, **more)
        return done, report.read_text(encoding="utf-8")

    def rows(self, report):
        return dict(re.findall(r"^\| ([^|]*) \| ([a-zA-Z:, ]*) \|", report, re.MULTILINE))

    def test_all_of_it(self):
        done, report = self.check()
        self.assertEqual(done.returncode, 0, done.stdout)
        rows = self.rows(report)
        for name in ("collectives, 1 ranks", "collectives, 2 ranks", "collectives, 4 ranks", "capture in a CUDA graph, 1 ranks",
                     "capture in a CUDA graph, 2 ranks", "through the host, 2 ranks",
                     "a rank that is killed is named, and the others' streams go on",
                     "overhead beside plain NCCL, 1 ranks", "overhead beside plain NCCL, 2 ranks",
                     "overhead with NCCL_COMM_BLOCKING=0, 2 ranks",
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

    def test_data_that_went_through_the_host_is_bad(self):
        done, report = self.check("--only", "^(collectives, 2 ranks|a rank that is killed)", DRUN_NCCL_LIB="/nowhere")
        self.assertEqual(done.returncode, 1)
        rows = {name: verdict for name, verdict in self.rows(report).items() if "not run" not in verdict}
        self.assertEqual(list(rows.values()), ["BAD", "BAD"], report)
        self.assertIn("goes through the host", report)

    def test_python_of_the_checks_that_need_a_gpu(self):
        """There is no torch with CUDA here: its syntax at least."""
        script = (ROOT / "scripts/gpu-check").read_text(encoding="utf-8")
        programs = re.findall(r"^(\w+)='\n((?:import|from) .*?)^'$", script, re.DOTALL | re.MULTILINE)
        self.assertEqual([name for name, _ in programs], ["interop", "uneven", "own_nccl", "as_horovod", "topk", "steps"])
        for name, text in programs:
            compile(text, name, "exec")

    def test_a_pack_runs_without_a_build(self):
        pack = self.folder / "pack"
        packed = self.run_script(ROOT / "scripts/gpu-check", "--build", self.folder / "build", "--pack", pack)
        self.assertEqual(packed.returncode, 0, packed.stdout)
        self.assertLess(int(re.search(r"pack: (\d+) MB", packed.stdout)[1]), 45)
        done, report = self.check("--only", "^(collectives, [12] ranks|drun bench --)", script=pack / "scripts/gpu-check",
                                  build=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        rows = {name: verdict for name, verdict in self.rows(report).items() if "not run" not in verdict}
        self.assertEqual(rows, {"collectives, 1 ranks": "good", "collectives, 2 ranks": "good",
                                "drun bench --backend nccl, a rank for each GPU": "good"})
        done, report = self.check("--minutes", "0", script=pack / "scripts/gpu-check", build=False)
        self.assertEqual(self.rows(report)["collectives, 2 ranks"], "no time left: not run")
        (pack / "lib/glibc").write_text("2.99\n", encoding="utf-8")
        done = self.run_script(pack / "scripts/gpu-check")
        self.assertRegex(done.stdout, r"this machine has glibc [0-9.]+, and the pack needs 2\.99: make it on an older system")
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
