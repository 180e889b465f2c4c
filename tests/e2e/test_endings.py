"""Endings of jobs: the status gives the cause, and no process is left on any host."""
import os
import re
import signal
import time

from support import SLOWDOWN, ClusterTest

HOSTS = "localhost:1,host1:1,host2:1"
# A worker with a child in its own session that ignores polite requests.
STUBBORN = "setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' & trap '' TERM HUP INT; echo ready; wait; sleep 1000"


class Status(ClusterTest):
    hosts = 3

    def test_the_code_of_the_worker_that_failed_first(self):
        for rank in range(3):
            job = self.drun("-H", HOSTS, "sh", "-c", f"test $RANK = {rank} && exit 3; sleep 1000")
            self.assertEqual(job.status, 3, str(job))
            self.assertIn(f"rank {rank}", job.err)
            self.cluster.assert_clean()

    def test_a_worker_ended_by_a_signal(self):
        for number in (signal.SIGKILL, signal.SIGSEGV):
            job = self.drun("-H", HOSTS, "sh", "-c", f"test $RANK = 1 && kill -{int(number)} $$; sleep 1000")
            self.assertEqual(job.status, 128 + number, str(job))
            self.cluster.assert_clean()

    def test_one_local_worker(self):
        job = self.drun("-np", "1", "sh", "-c", "exit 5")
        self.assertEqual(job.status, 5, str(job))

    def test_a_worker_that_fails_when_all_others_have_ended_well(self):
        job = self.drun("-H", HOSTS, "sh", "-c", "test $RANK = 2 || exit 0; sleep 1; exit 4")
        self.assertEqual(job.status, 4, str(job))
        self.assertIn("rank 2", job.err)

    def test_a_timeout_is_75(self):
        job = self.drun("--timeout", "1", "-H", HOSTS, "sleep", "1000")
        self.assertEqual(job.status, 75, str(job))
        self.cluster.assert_clean()

    def test_children_that_escaped_go_with_their_worker(self):
        job = self.good("-H", HOSTS, "sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 & sleep 1000 & exit 0")
        self.assertEqual(job.out, "")
        self.assertIn("drun: note: ended 6 processes that the workers had left in the background on localhost, host1 and host2 (s",
                      job.err)
        self.cluster.assert_clean()


# Processes that fork and exit all the time, so that their numbers are soon used again. The first process outlives its
# bomb: with all numbers in use, its own fork fails, too.
FORK_BOMB = """
import os, time
for _ in range(20):
    try:
        if os.fork() > 0:
            continue
    except OSError:
        continue
    os.setsid()
    while True:
        try:
            if os.fork() > 0:
                os._exit(0)
        except OSError:
            pass
print("up", flush=True)
time.sleep(1000)
"""


class SmallPidSpace(ClusterTest):
    """With 400 process numbers, one is used again within milliseconds."""

    def test_a_fork_bomb_ends_and_no_other_process_with_it(self):
        canaries = [self.cluster.start("h1", "sleep", "1000", user="drun-user") for _ in range(5)]
        for canary in canaries:
            self.addCleanup(self._end, canary)
        if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 14):  # writing would be felt by all
            self.skipTest("this kernel has one pid_max for all PID namespaces (before 6.14)")
        self.cluster.shell("h1", "echo 400 > /proc/sys/kernel/pid_max")
        for user in ("root", "drun-user"):  # with a cgroup for the workers, and without one
            with self.subTest(user):
                job = self.start_drun("--grace", "1", "-np", "1", "-H", "host1:1", "python3", "-c", FORK_BOMB, user=user)
                job.wait_for("^up")
                time.sleep(1)  # for some thousand processes
                job.signal(signal.SIGINT)
                self.assertEqual(job.finish(60 * SLOWDOWN), 130, str(job))
                self.assertNotIn("did not confirm", job.err)
                self.assertEqual(len(self.cluster.find_all("h1", "python3")), 0)
        for canary in canaries:
            self.assertIsNone(canary.front.poll(), "a process that is not drun's was killed")
            self._end(canary)
        self.cluster.assert_clean()


class Interrupted(ClusterTest):
    hosts = 3

    def begin(self, *options, script=STUBBORN):
        job = self.start_drun(*options, "--grace", "1", "-H", HOSTS, "sh", "-c", script)
        job.wait_for(r"\] ready", 3)
        return job

    def test_ctrl_c_is_130_and_leaves_nothing(self):
        job = self.begin()
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(20 * SLOWDOWN), 130, str(job))
        self.cluster.assert_clean()

    def test_ctrl_c_through_openssh(self):
        job = self.begin("--transport", "openssh")
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(20 * SLOWDOWN), 130, str(job))
        self.cluster.assert_clean()

    def test_ctrl_c_while_connecting(self):
        job = self.start_drun("-H", "localhost:1,10.77.0.200:1", "sleep", "1000")
        self.cluster.find("h0", r"^drun$")
        time.sleep(0.5)  # not for synchronization: any moment before the start will do
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(20 * SLOWDOWN), 130, str(job))
        self.cluster.assert_clean()

    def test_ctrl_c_ends_the_programs_that_connect(self):
        self.cluster.write("h0", "/root/waits", "#!/bin/sh\nexec sleep 1000\n", mode=0o755)
        job = self.start_drun("--launch-agent", "/root/waits", "-H", "localhost:1,host1:1", "true")
        self.cluster.find("h0", r"^sleep$")
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(20 * SLOWDOWN), 130, str(job))
        self.cluster.assert_clean()

    def test_sigterm_and_sighup_leave_nothing(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            job = self.begin()
            job.signal(number)
            self.assertEqual(job.finish(20 * SLOWDOWN), 128 + number, str(job))
            self.cluster.assert_clean()

    def test_the_death_of_drun_leaves_nothing(self):
        job = self.begin()
        os.kill(self.cluster.find("h0", r"^drun$"), signal.SIGKILL)
        job.finish(20 * SLOWDOWN)
        self.assertEqual(job.status, 137)
        self.cluster.assert_clean()

    def test_the_death_of_either_agent_process_leaves_nothing(self):
        for name in (r"^drun-agent$", r"^drun-guard$"):
            for host in ("h1", "h0"):
                with self.subTest(name=name, host=host):
                    job = self.begin()
                    os.kill(self.cluster.find(host, name), signal.SIGKILL)
                    job.finish(40 * SLOWDOWN)
                    self.assertNotIn(job.status, (0, 70), str(job))
                    self.cluster.assert_clean()

    def test_the_death_of_a_session_leaves_nothing(self):
        job = self.begin()
        os.kill(self.cluster.find("h1", r"^sshd(-session)?: root@notty"), signal.SIGKILL)
        job.finish(40 * SLOWDOWN)
        self.assertNotIn(job.status, (0, 70), str(job))
        self.assertIn("host1", job.err)
        self.cluster.assert_clean()

    def test_a_reader_that_leaves_ends_the_job(self):
        job = self.cluster.run("h0", "sh", "-c", f"drun -H {HOSTS} yes | head -n 5")
        self.assertEqual(job.status, 0, str(job))
        self.assertEqual(job.out.count("y\n"), 5)
        self.cluster.assert_clean()


# A terminal whose session leader is drun. It is closed after every worker has said "ready".
CLOSED_TERMINAL = """
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
seen = b""
while seen.count(b"ready") < int(sys.argv[1]):
    seen += os.read(terminal, 4096)
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

# A shell with job control: drun runs in the background while the user types; then it is brought to the foreground.
BACKGROUND = """
import os, pty, select, signal, sys, time
def state(pid):
    return open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1][0]
def read_until(mark, limit):
    global seen
    end = time.monotonic() + limit
    while mark not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096)
    return mark in seen
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
leader, terminal = pty.fork()
if leader == 0:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    drun = os.fork()
    if drun == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        os.execvp(sys.argv[2], sys.argv[2:])
    os.write(1, f"drun {drun} \\n".encode())
    signal.sigwait([signal.SIGUSR1])
    os.tcsetpgrp(0, drun)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(drun, 0)[1]))
seen = b""
limit = float(sys.argv[1])
assert read_until(b" \\r\\n", limit) and read_until(b"up", limit), seen
drun = int(seen.split(b"drun ")[1].split()[0])
os.write(terminal, b"typed\\n")
assert not read_until(b"got typed", 2), seen  # longer than drun takes to look whether it is in the foreground
assert state(drun) != "T", "it read the terminal and was stopped"
os.kill(leader, signal.SIGUSR1)
assert read_until(b"got typed", limit), seen
sys.exit(os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1]))
"""


class Terminal(ClusterTest):
    hosts = 2
    two = "localhost:1,host1:1"

    def test_closing_the_terminal_ends_the_job(self):
        job = self.cluster.run("h0", "python3", "-c", CLOSED_TERMINAL, "2", "drun", "--grace", "1", "-H", self.two, "sh",
                               "-c", STUBBORN)
        self.assertEqual(job.status, 128 + signal.SIGHUP, str(job))
        self.cluster.assert_clean()

    def test_in_the_background_it_does_not_read_the_terminal(self):
        job = self.cluster.run("h0", "python3", "-c", BACKGROUND, str(20 * SLOWDOWN), "drun", "-np", "1", "sh", "-c",
                               "echo up; read line; echo got $line")
        self.assertEqual(job.status, 0, str(job))
        self.cluster.assert_clean()

    def test_hangup_that_was_ignored_at_the_start_stays_ignored(self):
        job = self.cluster.start("h0", "sh", "-c", f"trap '' HUP; exec drun -H {self.two} sh -c 'echo ready; sleep 1000'")
        self.addCleanup(self._end, job)
        job.wait_for("ready", 2)
        drun = self.cluster.find("h0", r"^drun$")
        os.kill(drun, signal.SIGHUP)
        os.kill(drun, signal.SIGTERM)
        self.assertEqual(job.finish(), 128 + signal.SIGTERM, str(job))  # not 129: the first signal was ignored
        self.cluster.assert_clean()

    def test_user_signals_reach_every_worker(self):
        job = self.start_drun("-H", self.two, "sh", "-c",
                              "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo ready; while :; do sleep 0.05; done")
        job.wait_for("ready", 2)
        drun = self.cluster.find("h0", r"^drun$")
        os.kill(drun, signal.SIGUSR1)
        job.wait_for(r"\] one", 2)
        os.kill(drun, signal.SIGUSR2)
        self.assertEqual(job.finish(), 0, str(job))
        self.assertEqual(job.out.count("two"), 2)
