"""--explain-env shows the variables that a worker then gets, all of them and no others, with their values."""
import json
import os
import subprocess
import tempfile
import unittest

DRUN = os.environ["DRUN_BIN_DIR"] + "/drun"
LIMIT = 30
# The command in which the worker prints its environment runs without a shell, which would add variables of its own.
PRINT = ["env", "-0"]


def explained(rank, options, env):
    done = subprocess.run([DRUN, "--config", "none", "--explain-env", str(rank), "--json", *options, *PRINT], text=True,
                          capture_output=True, check=True, timeout=LIMIT, env=env)
    return {one["name"]: one for one in json.loads(done.stdout)["variables"]}


def actual(rank, options, env):
    with tempfile.TemporaryDirectory(prefix="drun-env-") as folder:
        subprocess.run([DRUN, "--config", "none", "--output-filename", folder, *options, *PRINT], check=True,
                       capture_output=True, timeout=LIMIT, env=env)
        with open(f"{folder}/rank.{rank}/stdout", "rb") as output:
            text = output.read().decode()
    return dict(item.split("=", 1) for item in text.split("\0") if item.strip())


class ExplainEnv(unittest.TestCase):
    def compare(self, *options, **env):
        own = {"PATH": os.environ["PATH"], "HOME": "/root", "PLAIN": "a b", "TOKEN_OF_ME": "secret",
               "SLURM_PROCID": "3", "RANK": "7", "CUDA_VISIBLE_DEVICES": "0", **env}
        found, real = explained(1, options, own), actual(1, options, own)
        at_start = {name for name, one in found.items() if one["state"] == "set at the start"}
        # Interfaces may not be set: on one host none is chosen for some programs.
        optional = {name for name in at_start if name.endswith("_IFNAME")}
        self.assertEqual(set(found) - optional, set(real) - optional)
        for name, one in found.items():
            self.assertTrue(one["source"] and one["reason"], name)
            if one["state"] == "known":
                self.assertEqual(one["value"], real[name], name)
            else:
                self.assertIsNone(one["value"], name)
        return found

    def test_the_environment_of_drun_is_passed_on(self):
        found = self.compare("-np", "2")
        self.assertEqual(found["PLAIN"]["source"], "environment of drun")
        self.assertEqual(found["RANK"]["source"], "drun")
        self.assertEqual(found["HOME"]["source"], "drun-agent on localhost")
        self.assertEqual(found["TOKEN_OF_ME"]["state"], "hidden")

    def test_options_of_the_environment(self):
        with tempfile.NamedTemporaryFile("w", suffix=".env") as file:
            file.write("A=1\nOMP_NUM_THREADS=3\nB=file\n")
            file.flush()
            found = self.compare("-np", "2", "--env", "none", "--env-file", file.name, "-x", "B=2", "-x", "PLAIN",
                                 "-x", "MASTER_ADDR=here", "-x", "DRUN_KEY", "--wdir", "/tmp", "-x", "PASS_KEY=3")
            self.assertEqual(found["A"]["source"], "--env-file " + file.name)
        self.assertEqual(found["B"]["source"], "-x")
        self.assertEqual(found["MASTER_ADDR"]["value"], "here")
        self.assertEqual(found["DRUN_KEY"]["state"], "set at the start")
        self.assertNotIn("3", found["PASS_KEY"]["reason"])

    def test_with_a_terminal_and_bound(self):
        found = self.compare("-H", "localhost:2", "--oversubscribe", "--pty", "--bind-to", "core", COLUMNS="10",
                             SLURM_JOB_ID="4")
        self.assertEqual(found["SLURM_JOB_ID"]["source"], "batch scheduler")


if __name__ == "__main__":
    unittest.main()
