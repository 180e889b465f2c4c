"""drun clean: finds leftovers of the worst endings by job, shows and ends them, and touches nothing else."""
import json
import os
import re
import signal
import time

from support import BIN, LIMIT_S, SLOWDOWN, ClusterTest

ALL = "localhost:1,host1:1,host2:1"
# The worker dies with its agent; its children don't: one ignores polite requests, one obeys them, one has neither the
# job's environment nor a parent in the job.
ESCAPES = """
setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1001; done' > /dev/null 2>&1 &
setsid sleep 1002 > /dev/null 2>&1 &
%s
echo "ready $DRUN_JOB_ID"
wait
sleep 1000
"""
NAKED = "sh -c 'env -i setsid sleep 1003 > /dev/null 2>&1 &'"


class CleanTest(ClusterTest):
    hosts = 3

    def begin(self, hosts=ALL, script=ESCAPES % "", **options):
        """Starts a job. Returns it and its id."""
        job = self.start_drun("--grace", "1", "-p", "12345", "-H", hosts, "sh", "-c", script, **options)
        job.wait_for(r"ready \w+", hosts.count(",") + 1)
        return job, re.search(r"ready (\w+)", job.out)[1]

    def kill_agents(self, host):
        """Kills guard and agent at once, which is the only failure that agents can't handle."""
        # The agent first: without its guard it would be alone in its process group, and then the kernel wakes it.
        both = [self.cluster.find(host, r"^drun-agent$"), self.cluster.find(host, r"^drun-guard$")]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in both:
                os.kill(pid, number)

    def orphans(self, host="h1", hosts=ALL, wait_for=("sleep 1001", "sleep 1002"), **options):
        """Creates leftovers on the host; returns the id of the job that left them."""
        job, job_id = self.begin(hosts, **options)
        for command in wait_for:
            self.cluster.find(host, f"^{command}")
        self.kill_agents(host)
        self.assertNotIn(job.finish(40 * SLOWDOWN), (0, 70), str(job))
        return job_id

    def pids(self, host, pattern):
        """The pids as the host sees them."""
        return {int(pid) for pid in self.cluster.run(host, "pgrep", "-f", pattern).out.split()}

    def clean(self, *arguments, status, **options):
        job = self.drun("clean", *arguments, **options)
        self.assertEqual(job.status, status, str(job))
        return job


class LeftOvers(CleanTest):
    def test_are_shown_then_ended_and_then_there_are_none(self):
        job_id = self.orphans()
        left = self.pids("h1", r"sleep 100[12]")
        self.assertGreaterEqual(len(left), 3)
        shown = self.clean("-H", ALL, status=1)
        self.assertRegex(shown.out, rf"host1: job {job_id} left {len(left)} processes")
        rows = {int(pid): int(rank) for rank, pid in re.findall(r"^ +(\d+) +(\d+)  root ", shown.out, re.MULTILINE)}
        self.assertEqual(rows, {pid: 1 for pid in left}, str(shown))
        self.assertIn("localhost, host2: nothing left", shown.out)
        self.assertIn(f"drun clean -H {ALL} --yes", shown.out)
        self.assertEqual(self.pids("h1", r"sleep 100[12]"), left)  # it only shows them

        ended = self.clean("-H", ALL, "--yes", "--grace", "1", status=0)
        self.assertRegex(ended.out, rf"host1: ended {len(left)} processes of job {job_id}")
        self.cluster.assert_clean()
        again = self.clean("-H", ALL, status=0)
        self.assertEqual(again.out, "localhost, host1, host2: nothing left\n")

    def test_on_the_head_itself_without_ssh(self):
        job_id = self.orphans("h0", "localhost:2")
        self.assertIn(f"localhost: job {job_id} left", self.clean(status=1).out)
        self.clean("--yes", "--grace", "0", status=0)
        self.cluster.assert_clean()
        self.assertEqual(self.clean(status=0).out, "localhost: nothing left\n")

    def test_as_json(self):
        job_id = self.orphans()
        data = json.loads(self.clean("-H", ALL, "--json", status=1).out)
        host = data["hosts"][1]
        self.assertEqual(host["name"], "host1")
        self.assertEqual({p["pid"] for p in host["processes"]}, self.pids("h1", r"sleep 100[12]"))
        self.assertEqual({(p["job"], p["rank"], p["user"], p["state"]) for p in host["processes"]},
                         {(job_id, 1, "root", "left")})
        data = json.loads(self.clean("-H", ALL, "--json", "--yes", "--grace", "0", status=0).out)
        self.assertEqual({p["state"] for p in data["hosts"][1]["processes"]}, {"ended"})
        self.cluster.assert_clean()

    def test_those_that_obey_are_asked_first(self):
        job_id = self.orphans(wait_for=["sleep 0.5"], script="""
            setsid sh -c 'trap "echo asked > /tmp/asked; exit" TERM; while :; do sleep 0.5; done' > /dev/null 2>&1 &
            echo "ready $DRUN_JOB_ID"; wait; sleep 1000""")
        self.clean("-H", "host1", "--yes", "--grace", "30", status=0)
        self.assertEqual(self.cluster.shell("h1", "cat /tmp/asked; rm /tmp/asked"), "asked\n", job_id)
        self.cluster.assert_clean()

    def test_a_child_without_environment_goes_with_its_parent(self):
        self.orphans(wait_for=["sleep 1004"], script="""
            setsid sh -c 'env -i sleep 1004; :' > /dev/null 2>&1 &
            echo "ready $DRUN_JOB_ID"; wait; sleep 1000""")
        self.assertIn("sleep 1004", self.clean("-H", "host1", status=1).out)
        self.clean("-H", "host1", "--yes", "--grace", "0", status=0)
        self.cluster.assert_clean()

    def test_a_name_like_ours_is_nothing(self):
        others = [self.cluster.start("h1", "bash", "-c", f"exec -a {name} sleep 1005")
                  for name in ("drun-agent", "drun", "drun-worker")]
        # A batch job has the environment of the worker that submitted it, but the worker's agent was elsewhere.
        others.append(self.cluster.start("h1", "env", "DRUN_JOB_ID=0123456789abcdef", "DRUN_RANK=0",
                                         "DRUN_AGENT=/tmp/drun-0123456789ab-aB3xYz/agent", "sleep", "1005"))
        for other in others:
            self.addCleanup(self._end, other)
        for command in ("drun-worker", "sleep"):
            self.cluster.find("h1", rf"^{command} 1005")
        self.orphans()
        shown = self.clean("-H", ALL, "--yes", "--grace", "0", status=0)
        self.assertNotIn("1005", shown.out)
        for other in others:
            self.assertIsNone(other.front.poll(), str(other))
            other.signal(signal.SIGTERM)
            other.finish()
        self.cluster.assert_clean()

    def test_a_host_out_of_reach_does_not_save_the_others(self):
        self.orphans("h2")
        job = self.clean("-H", "10.77.0.200:1,host1:1,host2:1", "--yes", "--grace", "0", "--start-timeout",
                         "10", status=68)
        self.assertIn("10.77.0.200", job.err)
        self.assertIn("host2: ended", job.out)
        self.cluster.assert_clean()

    def test_through_openssh(self):
        self.orphans()
        self.clean("--transport", "openssh", "-H", ALL, "--yes", "--grace", "0", status=0)
        self.cluster.assert_clean()


class RunningJobs(CleanTest):
    def test_are_listed_and_not_touched(self):
        left_by = self.orphans()
        job, job_id = self.begin()
        cleaned = self.clean("-H", ALL, "--yes", "--grace", "0", status=0)
        for host in ("localhost", "host1", "host2"):
            self.assertRegex(cleaned.out, rf"{host}: job {job_id} is running, \d+ processes, not touched")
        self.assertRegex(cleaned.out, rf"host1: ended \d+ processes of job {left_by}")
        self.assertIsNone(job.front.poll(), str(job))
        for host in ("h0", "h1", "h2"):
            self.assertGreaterEqual(len(self.pids(host, r"sleep 100[12]")), 3)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish(), 143, str(job))
        self.cluster.assert_clean()

    def test_are_ended_by_their_id(self):
        job, job_id = self.begin()
        shown = self.clean("-H", "host1", "--job", job_id, status=0)
        self.assertIn(f"host1: job {job_id} is running", shown.out)
        self.assertIsNone(job.front.poll(), str(job))
        self.clean("-H", "host1", "--job", "0" * 16, "--yes", status=0)
        self.assertIsNone(job.front.poll(), str(job))
        self.clean("-H", "host1", "--job", job_id, "--yes", "--grace", "1", status=0)
        self.assertNotIn(job.finish(), (0, 70), str(job))
        self.assertIn("rank 1", job.err)
        self.cluster.assert_clean()

    def test_clean_from_within_a_job_spares_itself_and_the_job(self):
        job = self.good("-np", "1", "sh", "-c", "sleep 1006 & drun clean --yes --grace 0; echo status $?")
        self.assertIn("status 0", job.out)
        self.assertNotIn("ended", job.out)
        self.cluster.assert_clean()


class Output(CleanTest):
    hosts = 1
    # With a pipe whose reader has exited, like `| head -1` once it has its line.
    no_reader = ("import os, subprocess, sys\n"
                 "reader, writer = os.pipe()\n"
                 "os.close(reader)\n"
                 "print(subprocess.run(['drun', 'clean'] + sys.argv[1:], stdout=writer).returncode)")

    def test_without_a_reader_ends_as_by_sigpipe(self):
        for arguments in ([], ["--json"]):
            job = self.cluster.run("h0", "/usr/bin/python3", "-c", self.no_reader, *arguments)
            self.assertEqual((job.out, job.err), (f"{128 + signal.SIGPIPE}\n", ""), str(job))

    def test_to_a_full_disk_is_an_error(self):
        job = self.cluster.run("h0", "sh", "-c", "drun clean > /dev/full")
        self.assertEqual(job.status, 68, str(job))
        self.assertIn("no space left on device", job.err)


class Users(CleanTest):
    hosts = 2
    # The alias host1 means root.
    own_hosts = "localhost:1,drun-user@10.77.0.2:1"
    own_clean = ("-p", "12345", "-H", "drun-user@10.77.0.2")

    def test_an_ordinary_user_sees_and_ends_only_his_own(self):
        root_job = self.orphans(hosts="localhost:1,host1:1")
        of_root = self.pids("h1", r"sleep 100[12]")
        own_job = self.orphans(hosts=self.own_hosts, user="drun-user")
        of_both = self.pids("h1", r"sleep 100[12]")
        shown = self.clean(*self.own_clean, "--all-users", status=1, user="drun-user")
        self.assertIn(own_job, shown.out)
        self.assertNotIn(root_job, shown.out)
        self.clean(*self.own_clean, "--yes", "--grace", "0", status=0, user="drun-user")
        self.assertEqual(self.pids("h1", r"sleep 100[12]"), of_root)
        self.assertGreater(of_both, of_root)
        self.clean("-H", "host1", "--yes", "--grace", "0", status=0)
        self.cluster.assert_clean()

    def test_root_ends_those_of_others_only_when_told(self):
        job_id = self.orphans(hosts=self.own_hosts, user="drun-user")
        self.assertEqual(self.clean("-H", "host1", "--yes", status=0).out, "host1: nothing left\n")
        shown = self.clean("-H", "host1", "--all-users", status=1)
        self.assertRegex(shown.out, rf"job {job_id} left \d+ processes")
        self.assertIn("drun-user", shown.out)
        self.clean("-H", "host1", "--all-users", "--yes", "--grace", "0", status=0)
        self.cluster.assert_clean()
        self.clean(*self.own_clean, "--yes", status=0, user="drun-user")  # removes the socket


class Cgroups(CleanTest):
    hosts = 2
    place = "/sys/fs/cgroup"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for host in ("h0", "h1"):
            cls.cluster.shell(host, f"mount -t cgroup2 none {cls.place}")

    def begin(self, *arguments, **options):
        job, job_id = super().begin(*arguments, **options)
        self.addCleanup(self.cluster.run, "h1", "find", self.place, "-name", f"drun-{job_id}-*", "-delete")
        return job, job_id

    def cgroups(self, job_id, host="h1"):
        """The cgroups of the job. The hosts share one hierarchy, as containers of one machine may."""
        return self.cluster.shell(host, f"find {self.place} -name 'drun-{job_id}-*'").split()

    def wait_for_no_cgroup(self, job_id):
        end = time.monotonic() + LIMIT_S
        while self.cgroups(job_id):
            self.assertLess(time.monotonic(), end, self.cgroups(job_id))
            time.sleep(0.05)

    def test_hold_the_workers_and_go_with_the_job(self):
        job = self.good("-H", "localhost:1,host1:1", "sh", "-c",
                        "echo id $DRUN_JOB_ID; grep ^0:: /proc/self/cgroup; setsid sleep 1007 > /dev/null 2>&1 &")
        job_id = re.search(r"id (\w+)", job.out)[1]
        self.assertEqual(len(re.findall(rf"0::/.*drun-{job_id}-\d+-[0-9a-f]{{8}}$", job.out, re.MULTILINE)), 2, str(job))
        self.cluster.assert_clean()
        self.assertEqual(self.cgroups(job_id), [])

    def test_are_done_without_where_none_may_be_made(self):
        job = self.good("-np", "1", "sh", "-c", "grep ^0:: /proc/self/cgroup; setsid sleep 1008 > /dev/null 2>&1 &",
                        user="drun-user")
        self.assertNotIn("drun-", job.out)
        self.assertRegex(job.err, r"^drun: note: ended 1 process .*\(s.*\n$")  # no message about cgroups
        self.cluster.assert_clean()

    def test_go_when_either_agent_process_is_killed(self):
        for name in (r"^drun-agent$", r"^drun-guard$"):
            with self.subTest(name=name):
                job, job_id = self.begin("localhost:1,host1:1", ESCAPES % NAKED)
                self.assertEqual(len(self.cgroups(job_id)), 2)
                os.kill(self.cluster.find("h1", name), signal.SIGKILL)
                job.finish(40 * SLOWDOWN)
                self.cluster.assert_clean()
                self.wait_for_no_cgroup(job_id)
                for host in ("h0", "h1"):
                    self.assertEqual(self.cluster.shell(host, "ls -d /tmp/drun-* 2> /dev/null; true"), "")

    def test_find_what_has_neither_environment_nor_parent(self):
        job_id = self.orphans(hosts="localhost:1,host1:1", wait_for=["sleep 1003"], script=ESCAPES % NAKED)
        naked = self.pids("h1", r"^sleep 1003")
        self.assertEqual(len(naked), 1)
        shown = self.clean("-H", "host1", status=1)
        self.assertRegex(shown.out, rf" -  +{naked.pop()}  root .*sleep 1003")
        self.clean("-H", "host1", "--yes", "--grace", "0", status=0)
        self.cluster.assert_clean()
        self.assertEqual(self.cgroups(job_id), [])
        self.assertEqual(self.clean("-H", "host1", status=0).out, "host1: nothing left\n")

    def test_spare_the_shell_in_which_clean_is_called(self):
        job_id = self.orphans(hosts="localhost:1,host1:1", wait_for=["sleep 1006"], script=f"""
            (trap "" TERM; exec setsid sleep 1006) > /dev/null 2>&1 &
            setsid sh -c 'while [ ! -e /tmp/go ]; do sleep 0.1; done
                          {BIN}/drun clean --yes --grace 0 > /tmp/cleaned 2>&1; echo status $? >> /tmp/cleaned
                          mv /tmp/cleaned /tmp/done' > /dev/null 2>&1 &
            echo "ready $DRUN_JOB_ID"; wait; sleep 1000""")
        said = self.cluster.shell("h1", "touch /tmp/go; until [ -e /tmp/done ]; do sleep 0.1; done; cat /tmp/done; "
                                        "rm /tmp/go /tmp/done")
        self.assertRegex(said, rf"localhost: ended \d+ process(es)? of job {job_id}(.|\n)*status 0\n$")
        self.cluster.assert_clean()

    def test_left_empty_are_removed_by_clean(self):
        job, job_id = self.begin("localhost:1,host1:1", "echo ready $DRUN_JOB_ID; exec sleep 1000")
        self.kill_agents("h1")
        job.finish(40 * SLOWDOWN)
        self.cluster.assert_clean()
        left = self.cgroups(job_id)
        self.assertEqual(len(left), 1)
        self.assertRegex(self.clean("-H", "host1", status=1).out, rf"host1: job {job_id} left (a directory|2 directories)\n")
        self.assertRegex(self.clean("-H", "host1", "--yes", status=0).out, rf"host1: removed (a directory|2 directories) of job {job_id}\n")
        self.assertEqual(self.cgroups(job_id), [])

    def test_end_what_forks_all_the_time(self):
        chain = ("import os, sys\n"
                 "for _ in range(4):\n"
                 "    if os.fork() == 0:\n"
                 "        os.setsid()\n"
                 "        sys.stdout.close()\n"
                 "        while True:\n"
                 "            if os.fork(): os._exit(0)\n"
                 "            os.setsid()\n"
                 "print('ready ' + os.environ['DRUN_JOB_ID'], flush=True)\n"
                 "import time; time.sleep(1000)\n")
        job = self.start_drun("--grace", "0", "-H", "localhost:1,host1:1", "/usr/bin/python3", "-c", chain)
        job.wait_for(r"ready \w+", 2)
        job_id = re.search(r"ready (\w+)", job.out)[1]
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(40 * SLOWDOWN), 130, str(job))
        self.cluster.assert_clean()
        self.assertEqual(self.cgroups(job_id), [])

    def test_of_a_running_job_are_not_touched(self):
        job, job_id = self.begin("localhost:1,host1:1")
        before = self.cgroups(job_id)
        cleaned = self.clean("-H", "localhost:1,host1:1", "--yes", "--grace", "0", status=0)
        self.assertIn(f"job {job_id} is running", cleaned.out)
        self.assertEqual(self.cgroups(job_id), before)
        self.assertIsNone(job.front.poll(), str(job))
        job.signal(signal.SIGTERM)
        self.assertEqual(job.finish(), 143, str(job))
        self.cluster.assert_clean()
        self.assertEqual(self.cgroups(job_id), [])
