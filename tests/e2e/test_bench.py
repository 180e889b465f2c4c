"""drun bench: nccl-tests' table, or its JSON, from hosts without any installation; no leftovers."""
import json
import os
import re
import signal
import time
import unittest

from support import LIMIT_S, SLOWDOWN, ClusterTest

KINDS = ("all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter", "alltoall", "gather", "scatter", "sendrecv",
         "barrier")
FOUR = ("-np", "4", "-H", "localhost:2,host1:2", "-p", "12345")
SHORT = ("-n", "3", "-b", "64", "-e", "16K", "-f", "16")


class Bench(ClusterTest):
    options = ("--bare", "h1")  # h1 has only the programs that drun provides

    def tearDown(self):
        self.cluster.assert_clean()

    def rows(self, job):
        """The lines of the table, split into columns."""
        rows = [line.split() for line in job.out.splitlines() if line and not line.startswith("#")]
        for row in rows:
            self.assertEqual(len(row), 19, str(job))
        return rows

    def assert_right(self, job):
        self.assertEqual(job.status, 0, str(job))
        self.assertEqual(job.err, "", str(job))
        self.assertIn("# Out of bounds values : 0 OK\n", job.out)
        self.assertRegex(job.out, r"\n# Avg bus bandwidth    : [0-9.e+-]+ \n")

    def test_the_table_over_ssh(self):
        job = self.drun("bench", *FOUR, "-n", "5", "-b", "8", "-e", "64K", "-f", "8")
        self.assert_right(job)
        rows = self.rows(job)
        self.assertEqual([int(row[0]) for row in rows], [8, 64, 512, 4096, 32768])
        self.assertEqual([int(row[1]) for row in rows], [2, 16, 128, 1024, 8192])
        for row in rows:
            self.assertEqual(row[2:5], ["float", "sum", "-1"])
            self.assertEqual((row[8], row[12]), ("0", "0"))  # number of wrong results, out of place and in place
            time, algorithm, bus = float(row[5]), float(row[6]), float(row[7])
            self.assertGreater(time, 0)
            self.assertAlmostEqual(algorithm, int(row[0]) / time / 1000, delta=0.02)
            self.assertAlmostEqual(bus, 1.5 * algorithm, delta=0.02)
            self.assertLessEqual(float(row[13]), float(row[14]))  # the median is not slower than the slowest
        self.assertEqual(re.findall(r"^#  Rank +(\d) Group +0 Pid +\d+ on +(\w+) device +(\d) ", job.out, re.MULTILINE),
                         [("0", "h0", "0"), ("1", "h0", "1"), ("2", "h1", "0"), ("3", "h1", "1")])
        # A veth has no line rate.
        self.assertRegex(job.out, r"\n# Bound: unknown: the kernel does not say how fast \w+ on h[01] is\n")
        self.assertEqual({row[15] for row in rows}, {"-"})

    def test_every_collective_between_hosts(self):
        for kind in KINDS:
            with self.subTest(kind):
                job = self.drun("bench", *FOUR, *SHORT, "-o", kind, "-d", "bfloat16", "--root", "2")
                self.assert_right(job)
                rows = self.rows(job)
                self.assertEqual(len(rows), 1 if kind == "barrier" else 3)
                for row in rows:
                    self.assertEqual(row[8], "N/A" if kind == "barrier" else "0")
                    self.assertEqual(row[12], "N/A" if kind in ("alltoall", "sendrecv", "barrier") else "0")
                    self.assertEqual(row[9] == "N/A", kind == "barrier")
                    self.assertEqual(row[4], "2" if kind in ("broadcast", "reduce", "gather", "scatter") else "-1")

    def test_on_one_host_memory_is_the_bound(self):
        job = self.drun("bench", "-np", "3", *SHORT, "--redop", "all", "-d", "int32", user="drun-user")
        self.assert_right(job)
        self.assertRegex(job.out, r"\n# Bound: memory bandwidth, [0-9.]+ GB/s \(3 ranks copying at once\)\n")
        rows = self.rows(job)
        self.assertEqual([row[3] for row in rows[::3]], ["sum", "prod", "max", "min", "avg"])
        for row in rows:  # percent of the bound, with one decimal: a few bytes are far below it
            self.assertRegex(row[15], r"^[0-9.]+$")
        self.assertTrue(any(float(row[15]) > 0 for row in rows), rows)

    def test_json_is_one_document_and_nothing_else(self):
        job = self.drun("bench", *FOUR, *SHORT, "--json", "-o", "alltoall", "-c", "0")
        self.assertEqual((job.status, job.err), (0, ""), str(job))
        found = json.loads(job.out)
        self.assertEqual([row["size"] for row in found["results"]], [64, 1024, 16384])
        for row in found["results"]:
            self.assertGreater(row["out_of_place"]["time"], 0)
            self.assertIsNone(row["out_of_place"]["nwrong"])
            self.assertGreater(row["in_place"]["time"], 0)
            self.assertIsNone(row["in_place"]["nwrong"])
        self.assertEqual([device["hostname"] for device in found["config"]["devices"]], ["h0", "h0", "h1", "h1"])
        self.assertEqual(found["out_of_bounds"], {"count": 0, "okay": "true"})
        self.assertEqual(found["bound"]["kind"], "unknown")

    def test_several_collectives_one_after_the_other(self):
        job = self.drun("bench", "-np", "2", *SHORT, "-o", "all_reduce,broadcast")
        self.assert_right(job)
        self.assertEqual(re.findall(r"^# Collective test (\w+): (\w+)$", job.out, re.MULTILINE),
                         [(word, f"{kind}_perf") for kind in ("all_reduce", "broadcast") for word in ("starting", "concluded")])
        self.assertEqual([row[4] for row in self.rows(job)], 3 * ["-1"] + 3 * ["0"])
        job = self.drun("bench", "-np", "2", *SHORT, "-o", "all_reduce,broadcast", "--json")
        self.assertEqual((job.status, job.err), (0, ""), str(job))
        self.assertEqual([{row["experiment_name"] for row in one["results"]} for one in json.loads(job.out)],
                         [{"all_reduce_perf"}, {"broadcast_perf"}])

    def test_a_bad_flag_starts_nothing(self):
        for words, complaint in ((("-o", "allredcue"), "-o: 'allredcue' is no collective [usage]\n  hint: -o all_reduce\n"),
                                 (("-e", "1T"), "-e: '1T' is not a size"),
                                 (("--stepfactors", "2"), "--stepfactors: unknown option"),
                                 (("-o", "reduce", "-r", "4"), "-r: there is no rank 4 among 4 workers")):
            job = self.drun("bench", *FOUR, *words)
            self.assertEqual((job.status, job.out), (2, ""), str(job))
            self.assertIn(f"drun: error: {complaint}", job.err)

    def begin(self):
        """A bench that runs for hours."""
        job = self.start_drun("bench", *FOUR, "-n", "1000000", "-b", "1M", "-e", "1M")
        job.wait_for(r"^# +\(B\) +\(elements\)")
        return job

    def spoil(self, pid, n_bytes):
        """Writes into every buffer of at least that size of the process; returns False if the process is gone."""
        try:
            with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
                lines = [line.split() for line in maps]
            with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
                for words in lines:
                    first, last = (int(number, 16) for number in words[0].split("-"))
                    if len(words) == 5 and words[1] == "rw-p" and last - first >= n_bytes:  # no file, no [heap]
                        for at in range(first + 0x10000, last - 64, 0x10000):
                            memory.seek(at)
                            memory.write(bytes(range(1, 65)))
        except OSError:
            return False
        return True

    @unittest.skipIf(SLOWDOWN != 1, "what sanitizers have in memory can't be told from the worker's buffers")
    def test_wrong_results_are_counted_and_give_status_1(self):
        size = 4 << 20
        job = self.start_drun("bench", "-np", "2", "-b", str(size), "-e", str(size), "-n", "1", "-c", "1000000")
        job.wait_for(r"^# +\(B\) +\(elements\)")
        pid = self.cluster.find("h0", "^drun-bench$")
        end = time.monotonic() + LIMIT_S
        while self.spoil(pid, size) and time.monotonic() < end:
            pass
        self.assertEqual(job.finish(), 1, str(job))
        row, = self.rows(job)
        self.assertGreater(float(row[8]), 0)
        self.assertGreater(float(row[12]), 0)
        self.assertIn("# Out of bounds values : 2 FAILED\n", job.out)
        self.assertRegex(job.err, r"rank 0 on localhost \(pid \d+\): exited with status 1")
        self.assertIn("drun bench: 2 measurements with wrong elements", job.err)

    def test_ctrl_c_ends_it(self):
        job = self.begin()
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(), 130, str(job))
        self.assertNotIn("Avg bus bandwidth", job.out)

    def test_a_worker_that_dies_ends_it_and_is_named(self):
        job = self.begin()
        os.kill(self.cluster.find("h1", "^drun-bench$"), signal.SIGKILL)
        self.assertEqual(job.finish(), 137, str(job))
        self.assertRegex(job.err, r"drun: error: rank [23] on host1 \(pid \d+\)")
