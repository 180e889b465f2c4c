"""How jobs end: the status says why, and no process is left on any host."""
import os
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
        job = self.good("-H", HOSTS, "sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 & exit 0")
        self.assertEqual(job.out, "")
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
        time.sleep(0.5)  # not to synchronise: any moment before the start is a good one
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
