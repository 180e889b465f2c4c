"""Nothing outlives a job, however it ends: see matrix.py, and docs/ending.md for the table.

By hand: DRUN_MATRIX_ROWS='agent,frozen' runs the rows whose names contain one of these words, DRUN_MATRIX_USERS=root
one user's; DRUN_MATRIX_TABLE=F appends the table to F ("-": prints it); DRUN_MATRIX_LANES=N runs N clusters at once.
"""
import os
import signal
import sys
import time
import unittest

import matrix
from results import record
from support import SLOWDOWN, ClusterTest

N_LANES = int(os.environ.get("DRUN_MATRIX_LANES", "6"))


def chosen_rows():
    words = os.environ.get("DRUN_MATRIX_ROWS", "").split(",")
    return [row for row in matrix.ROWS if any(word in row.name for word in words)]


class Matrix(unittest.TestCase):
    def check(self, *transports):
        users = os.environ.get("DRUN_MATRIX_USERS", ",".join(matrix.USERS)).split(",")
        todo = [cell for transport in transports for user in users
                for cell in matrix.cells(transport, user, chosen_rows())]
        todo.sort(key=lambda cell: not cell[2].silent)
        found = []

        def done(result):
            found.append(result)
            record(f"{self.id()}[{result.row.name}, {result.column}, {result.user}]", result.seconds,
                   "failed" if result.problems else "passed")
            words = "; ".join(result.problems) or "ok"
            print(f"{result.row.name}, {result.column}, {result.transport}, {result.user}: noticed after "
                  f"{result.noticed:.2f} s, gone after {result.gone:.2f} s: {words}", flush=True)

        matrix.run_cells(todo, N_LANES, done)
        where = os.environ.get("DRUN_MATRIX_TABLE")
        if where:
            text = "\n".join(matrix.table(found)) + "\n"
            if where == "-":
                sys.stdout.write(text)
            else:
                with open(where, "a", encoding="utf-8") as out:
                    out.write(text)
        self.assertEqual(len(found), len(todo))
        for result in found:
            with self.subTest(row=result.row.name, column=result.column, transport=result.transport, user=result.user):
                self.assertFalse(result.problems, "\n".join([*result.problems, result.text]))

    def test_local(self):
        self.check("local")

    def test_ssh(self):
        self.check("ssh")

    def test_openssh(self):
        self.check("openssh")


STUBBORN = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1000; done'"


class Frozen(ClusterTest):
    """Processes that freeze, and may come back."""

    hosts = 2

    def begin(self, heartbeat_timeout, script=STUBBORN):
        job = self.start_drun("--grace", "1", "--heartbeat-timeout", str(heartbeat_timeout), "-H", "localhost:1,host1:1",
                              "sh", "-c", script)
        job.wait_for(r"\] ready", 2)
        return job

    def stop(self, host, *names):
        pids = [self.cluster.find(host, f"^{name}$") for name in names]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids

    def test_a_frozen_guard_is_ended_by_its_agent(self):
        for host in ("h1", "h0"):
            job = self.begin(30)
            began = time.monotonic()
            self.stop(host, "drun-guard")
            self.assertEqual(job.finish(30 * SLOWDOWN), 68, str(job))
            self.assertLess(time.monotonic() - began, 15 * SLOWDOWN)
            self.cluster.assert_clean()

    def test_an_agent_of_this_machine_that_is_frozen_with_its_guard_leaves_nothing(self):
        job = self.begin(3)
        self.stop("h0", "drun-guard", "drun-agent")
        self.assertEqual(job.finish(30 * SLOWDOWN), 68, str(job))
        self.assertIn("localhost: silent for", job.err)
        self.cluster.assert_clean()

    def test_an_agent_that_comes_back_with_its_guard_goes_on(self):
        """Frozen for longer than guard and agent tolerate of each other, but shorter than --heartbeat-timeout."""
        job = self.begin(60, script="echo ready; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo went on")
        pids = self.stop("h1", "drun-guard", "drun-agent")
        time.sleep(10)  # the test needs exactly this duration
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        time.sleep(2)  # enough time to end each other, if they would
        for host in ("h0", "h1"):
            self.addCleanup(self.cluster.shell, host, "rm /tmp/go")
            self.cluster.shell(host, "touch /tmp/go")
        self.assertEqual(job.finish(20 * SLOWDOWN), 0, str(job))
        self.assertEqual(job.out.count("went on"), 2, str(job))
        self.cluster.assert_clean()
