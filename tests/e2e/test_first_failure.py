"""The first failure, as shown in the box on stderr and in --report."""
import json
import os
import re
import signal
import time
import unicodedata

from support import BIN, SLOWDOWN, ClusterTest

HOSTS = "localhost:1,host1:1,host2:1"


class FirstFailure(ClusterTest):
    hosts = 3

    def box(self, job):
        match = re.search(r"^  ╭─ first failure ─*\n((?:  │.*\n)*)  ╰─*\n", job.err, re.MULTILINE)
        self.assertTrue(match, str(job))
        self.assertEqual(job.err.count("first failure"), 1, str(job))
        return [line[4:].strip() for line in match[1].splitlines()]

    def fail(self, script, *options, **more):
        return self.drun(*options, "-H", HOSTS, "sh", "-c", script, env={"LANG": "C.UTF-8"}, **more)

    def test_the_box_has_the_rank_its_last_lines_and_how_many_drun_ended(self):
        job = self.fail("i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo line $i of $RANK; done;"
                        "test $RANK = 1 || exec sleep 1000; echo 'ValueError: no such file' >&2; exit 3")
        self.assertEqual(job.status, 3, str(job))
        box = self.box(job)
        self.assertRegex(box[0], r"^rank 1 on host1 \(pid \d+\) exited with status 3, [0-9.]+ m?s after the start$")
        self.assertEqual(box[1], "its last 20 lines:")
        lines = box[2:22]
        self.assertEqual(sorted(set(lines)), sorted(lines))
        self.assertIn("ValueError: no such file", lines)
        self.assertTrue(all(line.endswith("of 1") or "ValueError" in line for line in lines), lines)
        self.assertEqual(box[22:], ["drun ended the 2 other workers because of it"])
        # It is the end of drun's output, below everything that the workers wrote.
        self.assertRegex(job.err.splitlines()[-1], "╰")
        self.cluster.assert_clean()

    def test_a_killed_rank_is_the_cause_and_the_others_say_so(self):
        job = self.start_drun("--report", "/tmp/report.json", "-H", HOSTS, "train", "--epochs", "100000",
                              env={"LANG": "C.UTF-8"})
        job.wait_for(r"epoch")
        victim = self.cluster.find("h2", r"^train")
        os.kill(victim, signal.SIGKILL)
        self.assertEqual(job.finish(), 137, str(job))
        box = self.box(job)
        self.assertRegex(box[0], r"^rank 2 on host2 \(pid \d+\) was killed by SIGKILL \(killed\)")
        said = [line for line in box if " said: " in line]
        self.assertTrue(said, str(job))
        self.assertTrue(all("rank 2 on host2" in line for line in said), box)
        report = json.loads(self.cluster.shell("h0", "cat /tmp/report.json"))
        first = report["first_failure"]["first"]
        self.assertEqual([(f["rank"], f["host"], f["signal"]) for f in first], [(2, "host2", 9)])
        self.assertEqual(report["status"], 137)
        self.assertEqual([r["rank"] for r in report["ranks"]], [0, 1, 2])
        self.assertEqual(report["ranks"][2]["signal"], 9)
        # Ranks that drun ended are not among the failures.
        consequences = report["first_failure"]["consequences"]
        self.assertTrue(consequences, report)
        for failure in consequences:
            self.assertIn(failure["rank"], (0, 1), report)
            self.assertFalse(report["ranks"][failure["rank"]]["ended_by_drun"], report)
        self.cluster.assert_clean()

    def test_workers_that_joined_report_the_culprit_by_name_before_term(self):
        job = self.start_drun("-H", HOSTS, "train", "--epochs", "100000")
        job.wait_for(r"epoch")
        os.kill(self.cluster.find("h1", r"^train"), signal.SIGKILL)
        self.assertEqual(job.finish(), 137, str(job))
        for rank in (0, 2):
            self.assertRegex(job.err, rf"(?m)^\[{rank}\] train: .*rank 1 on host1")
        self.cluster.assert_clean()

    def test_workers_that_share_memory_report_the_culprit_too_and_leave_nothing(self):
        before = self.cluster.shell("h0", "ls -A /dev/shm")
        job = self.start_drun("-np", "4", "train", "--epochs", "100000")
        job.wait_for(r"epoch")
        workers = self.cluster.find_all("h0", r"^train")
        self.assertEqual(len(workers), 4)
        for pid in workers:
            with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
                self.assertIn("/memfd:drun (deleted)", maps.read())
        os.kill(workers[2], signal.SIGKILL)
        self.assertEqual(job.finish(), 137, str(job))
        failed = int(re.search(r"rank (\d) on localhost \(pid \d+\) was killed by SIGKILL", self.box(job)[0])[1])
        for rank in {0, 1, 2, 3} - {failed}:
            self.assertRegex(job.err, rf"(?m)^\[{rank}\] train: .*rank {failed} on localhost")
        self.assertEqual(self.cluster.shell("h0", "ls -A /dev/shm"), before)
        self.cluster.assert_clean()

    def test_a_frozen_rank_that_shares_memory_is_named_at_the_deadline(self):
        limit = 2
        job = self.start_drun("-x", f"DRUN_OP_TIMEOUT={limit}", "-np", "3", "train", "--epochs", "100000")
        job.wait_for(r"epoch")
        frozen = self.cluster.find_all("h0", r"^train")[1]
        with open(f"/proc/{frozen}/environ", encoding="utf-8") as environ:
            rank = re.search(r"(?:^|\0)RANK=(\d)", environ.read())[1]
        os.kill(frozen, signal.SIGSTOP)
        self.assertEqual(job.finish(30 * SLOWDOWN), 1, str(job))
        self.assertRegex(job.err, rf"train: allreduce #\d+ '[^']+' timed out after {limit} s waiting for rank {rank} on localhost")
        self.cluster.assert_clean()

    def test_workers_that_did_not_join_get_term_at_once(self):
        # All hosts of the cluster share one clock; each worker reports its own time.
        self.cluster.shell("h1", "mkfifo /tmp/go")
        job = self.start_drun("--grace", "30", "-H", HOSTS, "python3", "-c", """
import os, signal, sys, time
def say(what):
    print(what, "at", time.monotonic(), flush=True)
def on_term(number, frame):
    say("ended")
    sys.exit(0)
signal.signal(signal.SIGTERM, on_term)
print("up", flush=True)
if os.environ["RANK"] == "1":
    open("/tmp/go").read()
    say("failed")
    sys.exit(9)
while True:
    time.sleep(1000)
""")
        job.wait_for(r"\] up", 3)
        self.cluster.shell("h1", "echo > /tmp/go")
        self.assertEqual(job.finish(), 9, str(job))
        failed = float(re.search(r"\[1\] failed at ([0-9.]+)", job.out)[1])
        for rank in (0, 2):
            ended = float(re.search(rf"\[{rank}\] ended at ([0-9.]+)", job.out)[1])
            self.assertLess(ended - failed, 0.9, str(job))  # less than the second that joined workers get

    def test_a_core_dump_is_told(self):
        crash = "test $RANK = 1 || exec sleep 1000; cd /tmp; ulimit -c {}; kill -SEGV $$"
        job = self.fail(crash.format("unlimited"))
        self.addCleanup(self.cluster.shell, "h1", "rm -f /tmp/core*")
        self.assertEqual(job.status, 139, str(job))
        self.assertIn("was killed by SIGSEGV (segmentation fault), core dumped", self.box(job)[0])
        with open("/proc/sys/kernel/core_pattern", encoding="ascii") as pattern:
            is_piped = pattern.read().startswith("|")  # piped to a program, whatever the limit
        if not is_piped:
            job = self.fail(crash.format("0"))
            self.assertIn("was killed by SIGSEGV (segmentation fault)", self.box(job)[0])
            self.assertNotIn("core dumped", job.err)

    def test_torchs_error_file_is_in_the_box(self):
        job = self.fail("test $RANK = 2 || exec sleep 1000;"
                        "echo '{\"message\": {\"message\": \"RuntimeError: shape\", \"extraInfo\": {}}}' > $TORCHELASTIC_ERROR_FILE;"
                        "exit 1")
        self.assertEqual(job.status, 1, str(job))
        box = self.box(job)
        self.assertIn("its error file says:", box)
        self.assertIn("RuntimeError: shape", box)
        self.assertIn("it wrote nothing", box)

    def test_a_host_that_is_lost_is_named_as_the_cause(self):
        job = self.start_drun("--report", "/tmp/lost.json", "-H", HOSTS, "train", "--epochs", "100000",
                              env={"LANG": "C.UTF-8"})
        job.wait_for(r"epoch")
        # Both are frozen first, so that neither can act; the agent first: the guard's death would wake it.
        pids = [self.cluster.find("h1", name) for name in ("^drun-agent", "^drun-guard")]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                os.kill(pid, number)
        self.assertEqual(job.finish(), 68, str(job))
        self.assertRegex(self.box(job)[0], "^host host1 ")
        report = json.loads(self.cluster.shell("h0", "cat /tmp/lost.json"))
        self.assertEqual(report["first_failure"]["first"][0]["host"], "host1")
        self.cluster.assert_clean()

    def test_out_of_memory_is_told_from_a_kill(self):
        # Our own memory cgroup, in the version to which this kernel attaches the controller.
        self.cluster.shell("h0", """
            mkdir -p /tmp/cg
            if mount -t cgroup -o memory none /tmp/cg 2>/dev/null; then limit=memory.limit_in_bytes
            else mount -t cgroup2 none /tmp/cg; limit=memory.max; echo +memory > /tmp/cg/cgroup.subtree_control; fi
            mkdir /tmp/cg/drun-test-$$
            echo 536870912 > /tmp/cg/drun-test-$$/$limit
            echo 0 > /tmp/cg/drun-test-$$/memory.swap.max 2>/dev/null || true
            ln -s /tmp/cg/drun-test-$$ /tmp/limited""")
        try:
            job = self.cluster.run("h0", "sh", "-c", "echo $$ > /tmp/limited/cgroup.procs; exec drun -np 2 sh -c '"
                                   "test $RANK = 1 || exec sleep 1000; echo eating; echo 1000 > /proc/self/oom_score_adj; exec python3 -c \"b = bytearray(2 << 30)\"'",
                                   env={"LANG": "C.UTF-8"})
            self.assertEqual(job.status, 137, str(job))
            box = self.box(job)
            self.assertRegex(box[0], r"^rank 1 on localhost \(pid \d+\) was killed by SIGKILL")
            self.assertTrue(any(line.startswith("out of memory: ") for line in box), box)
        finally:
            self.cluster.shell("h0", "rmdir $(readlink -f /tmp/limited); umount /tmp/cg")
        job = self.cluster.run("h0", "drun", "-np", "2", "sh", "-c", "test $RANK = 1 && kill -9 $$; sleep 1000")
        self.assertEqual(job.status, 137, str(job))
        self.assertNotIn("out of memory", job.err)

    def test_a_report_of_a_job_that_did_not_start_says_why(self):
        job = self.drun("--report", "/tmp/none.json", "-H", HOSTS, "no-such-command")
        self.assertEqual(job.status, 127, str(job))
        report = json.loads(self.cluster.shell("h0", "cat /tmp/none.json"))
        self.assertEqual((report["status"], report["ranks"], report["first_failure"]), (127, [], None))
        self.assertIn("no-such-command", report["why"])

    def test_a_report_that_cannot_be_written_is_told_before_the_start(self):
        job = self.drun("--report", "/no/such/dir/r.json", "-H", HOSTS, "echo", "started")
        self.assertEqual((job.status, job.out), (2, ""), str(job))
        self.assertIn("drun: error: --report: /no/such/dir/r.json: no such file or directory", job.err)

    def test_a_report_that_can_no_longer_be_written_is_a_warning(self):
        self.cluster.shell("h0", "mkdir /tmp/gone")
        job = self.drun("--report", "/tmp/gone/r.json", "-np", "1", "sh", "-c", "rm -r /tmp/gone")
        self.assertEqual(job.status, 0, str(job))
        self.assertIn("drun: warning: --report: /tmp/gone/r.json", job.err)


# Sets the title, clears the screen, CSI as U+009B and as a byte, DEL, a byte that is not UTF-8, and a line of the box.
HOSTILE = b"why \x1b]0;EVIL\x07\x1b[2J \xc2\x9b31m \x9b32m \x7f \xff\n  \xe2\x94\x82 forged"


class ForeignText(ClusterTest):
    """Texts of workers and hosts in drun's messages can't command the terminal, and forge no line."""

    def assert_clean_text(self, job):
        controls = {c for c in job.err if unicodedata.category(c) == "Cc"} - {"\n", "\t"}
        self.assertEqual(controls, set(), repr(job.err))
        self.assertNotIn("\ufffd", job.err, repr(job.err))  # what was not UTF-8
        self.assertNotRegex(job.err, "(?m)^  │ forged", repr(job.err))

    def test_a_workers_abort(self):
        job = self.drun("-H", "localhost:1,host1:1", "drun-test-caller", "barrier", "1@abort:" + os.fsdecode(HOSTILE),
                        "sleep:1000", env={"LANG": "C.UTF-8"})
        self.assertEqual(job.status, 1, str(job))
        self.assertIn("called abort: why ?]0;EVIL??[2J ?31m ?32m ? ?   │ forged", job.err)
        self.assert_clean_text(job)
        self.cluster.assert_clean()

    def test_torchs_error_file(self):
        text = json.dumps({"message": {"message": HOSTILE.decode(errors="replace")}})
        self.cluster.write("h1", "/tmp/error.json", text)
        job = self.drun("-H", "localhost:1,host1:1", "sh", "-c",
                        "test $RANK = 1 || exec sleep 1000; cp /tmp/error.json $TORCHELASTIC_ERROR_FILE; exit 1",
                        env={"LANG": "C.UTF-8"})
        self.assertEqual(job.status, 1, str(job))
        self.assertIn("why ?]0;EVIL??[2J ?31m", job.err)
        self.assertNotRegex(job.err, r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", repr(job.err))
        self.assertNotRegex(job.err, "(?m)^  │ forged", repr(job.err))
        self.cluster.assert_clean()

    def test_the_stderr_of_an_agent_that_dies(self):
        say = "printf '" + "".join(f"\\{byte:03o}" for byte in HOSTILE) + "\\n' >&2"
        self.cluster.write("h1", "/tmp/agent-no-hello", f"#!/bin/sh\n{say}\n{say}\nexit 1\n", 0o755)
        job = self.drun("--agent-path", "/tmp/agent-no-hello", "-H", "host1:1", "true")
        self.assertEqual(job.status, 68, str(job))
        self.assertIn("EVIL", job.err)
        self.assert_clean_text(job)
        self.cluster.write("h1", "/tmp/agent-that-dies", f"#!/bin/sh\n{say}\nexec {BIN}/drun-agent\n", 0o755)
        job = self.start_drun("--agent-path", "/tmp/agent-that-dies", "-H", "host1:1", "sh", "-c",
                              "echo up; exec sleep 1000", env={"LANG": "C.UTF-8"})
        job.wait_for("up")
        pids = [self.cluster.find("h1", name) for name in ("^drun-agent", "^drun-guard")]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                os.kill(pid, number)
        self.assertEqual(job.finish(), 68, str(job))
        self.assertRegex(job.err, "(?m)^  │ its last words: why .*EVIL", repr(job.err))
        self.assert_clean_text(job)
        self.cluster.assert_clean()

    def test_a_process_name(self):
        job = self.drun("--timeout", "3", "-H", "host1:1", "python3", "-c", """
import os
name = b"\\x1b[2J\\xc2\\x9bm\\xff\\n  x"
if not os.path.lexists(b"/tmp/" + name):
    os.symlink("/bin/sleep", b"/tmp/" + name)
os.execv(b"/tmp/" + name, [b"sleep", b"1000"])
""")
        self.assertEqual(job.status, 75, str(job))
        self.assertIn("(?[2J?m?   x)", job.err)
        self.assert_clean_text(job)
        self.cluster.assert_clean()


STOPPED = "TD"  # D: a shell in vfork waits for its child, which is stopped


class Stopped(ClusterTest):
    """Ctrl-Z and fg."""

    hosts = 3

    def begin(self, *arguments):
        return self.start_under_a_shell(*arguments)

    @staticmethod
    def state(pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rsplit(") ", 1)[1][0]

    def await_state(self, pid, states):
        end = time.monotonic() + 20 * SLOWDOWN
        while self.state(pid) not in states and time.monotonic() < end:
            time.sleep(0.02)
        self.assertIn(self.state(pid), states)

    def stop(self, *pids):
        """Sends Ctrl-Z to the first, which is drun; waits until all of them are stopped."""
        os.kill(pids[0], signal.SIGTSTP)
        for pid in pids:
            self.await_state(pid, STOPPED)

    def test_all_workers_stop_and_go_on_with_drun_and_no_deadline_counts_it(self):
        job = self.begin("--heartbeat-timeout", "3", "--timeout", "300", "-H", HOSTS, "sh", "-c",
                         "while :; do echo tick; sleep 0.1; done")
        self.addCleanup(self._end, job)
        job.wait_for(r"\[2\] tick")
        drun = self.cluster.find("h0", "^drun$")
        workers = [self.cluster.find(host, r"^sh -c while") for host in ("h0", "h1", "h2")]
        self.stop(drun, *workers)
        stopped_until = time.monotonic() + 6  # twice the heartbeat timeout
        while time.monotonic() < stopped_until:
            self.assertIn(self.state(drun), STOPPED)
            time.sleep(0.2)
        for pid in workers:
            self.assertIn(self.state(pid), STOPPED)
        os.kill(drun, signal.SIGCONT)
        for pid in workers:
            self.await_state(pid, "SRD")
        for rank in range(3):
            job.wait_for(rf"\[{rank}\] tick", 20)
        os.kill(drun, signal.SIGINT)
        self.assertEqual(job.finish(), 130, str(job))
        self.cluster.assert_clean()

    def test_a_collective_outlives_a_stop_that_is_longer_than_its_deadline(self):
        limit = 3
        job = self.begin("-x", f"DRUN_OP_TIMEOUT={limit}", "-H", HOSTS, "train", "--epochs", "60")
        self.addCleanup(self._end, job)
        job.wait_for(r"epoch")
        drun = self.cluster.find("h0", "^drun$")
        workers = [self.cluster.find(host, r"^train") for host in ("h0", "h1", "h2")]
        self.stop(drun, *workers)
        stopped_until = time.monotonic() + limit + 4
        while time.monotonic() < stopped_until:
            time.sleep(0.2)
        os.kill(drun, signal.SIGCONT)
        self.assertEqual(job.finish(), 0, str(job))
        self.assert_trained(job, 3)

    def stop_for(self, drun, seconds):
        """Sends Ctrl-Z, and fg after so many seconds; returns the time of fg."""
        os.kill(drun, signal.SIGTSTP)
        self.await_state(drun, STOPPED)
        time.sleep(seconds)  # the test needs exactly this duration
        os.kill(drun, signal.SIGCONT)
        return time.monotonic()

    def test_a_start_is_stopped_too_and_its_deadline_does_not_count_it(self):
        self.cluster.filter("h2", input=["tcp dport 12345 drop"])
        self.addCleanup(self.cluster.unfilter, "h2")
        limit = 6
        job = self.begin("-vv", "--start-timeout", str(limit), "-H", HOSTS, "hostname")
        self.addCleanup(self._end, job)
        job.wait_for(r"host1: .*agent")
        # Also longer than the time for which connected agents accept drun's silence.
        gone_on = self.stop_for(self.cluster.find("h0", "^drun$"), max(limit + 2, 33))
        self.assertEqual(job.finish(), 68, str(job))
        self.assertGreater(time.monotonic() - gone_on, limit / 3)
        self.assertRegex(job.err, r"host2: connect: .*timed out after \d+ s")
        self.cluster.assert_clean()

    def test_a_stopped_job_ends_when_drun_is_killed(self):
        job = self.begin("--grace", "1", "-H", HOSTS, "sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
        self.addCleanup(self._end, job)
        job.wait_for(r"\] up", 3)
        drun = self.cluster.find("h0", "^drun$")
        self.stop(drun)
        os.kill(drun, signal.SIGKILL)
        self.assertNotEqual(job.finish(), 0, str(job))
        self.cluster.assert_clean()
