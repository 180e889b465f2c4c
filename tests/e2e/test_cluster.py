"""Tests the test cluster itself, on which the other tests rely."""
import os
import signal
import subprocess
import time
import unittest

from netcluster import state
from support import CLUSTER, Cluster, ClusterTest


class Hosts(ClusterTest):
    hosts = 4
    options = ("--bare", "h3", "--shell", "h1=/usr/bin/fish")

    def test_each_host_has_its_own_name_network_processes_and_home(self):
        for i in range(4):
            self.assertEqual(self.cluster.shell(f"h{i}", "hostname"), f"h{i}\n")
        self.cluster.write("h0", "/root/mine", "x")
        self.assertEqual(self.cluster.run("h1", "test", "-e", "/root/mine").status, 1)
        self.assertLess(len(self.cluster.shell("h0", "ps -e --no-headers").splitlines()), 6)
        names = [self.cluster.shell(f"h{i}", "cd /sys/class/net; echo *") for i in range(2)]
        self.assertNotEqual(names[0], names[1])
        self.assertIn("docker0", names[0])

    def test_docker0_runs_with_the_same_address_everywhere(self):
        for i in range(4):
            text = self.cluster.shell(f"h{i}", "ip addr show docker0")
            self.assertIn("172.17.0.1/16", text)
            self.assertIn("LOWER_UP", text)

    def test_ssh_works_by_alias_only_and_known_hosts_starts_empty(self):
        self.assertEqual(self.cluster.shell("h2", "cat /root/.ssh/known_hosts"), "")
        out = self.cluster.shell("h0", "ssh -o StrictHostKeyChecking=accept-new -o LogLevel=ERROR host1 hostname")
        self.assertEqual(out, "h1\n")
        self.assertNotEqual(self.cluster.run("h0", "getent", "hosts", "host1").status, 0)

    def test_the_bare_host_sees_only_what_was_put_there(self):
        here = os.path.realpath(__file__)
        self.assertEqual(self.cluster.run("h3", "test", "-e", here).status, 1)
        self.assertEqual(self.cluster.run("h2", "test", "-e", here).status, 0)
        self.cluster.put("h3", here)
        self.assertEqual(self.cluster.run("h3", "test", "-e", here).status, 0)

    def test_nothing_can_be_put_on_the_machines_own_disk(self):
        done = subprocess.run([CLUSTER, "put", "--name", self.cluster.name, "h0", "-", "/usr/lib/never"], input=b"x",
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"own disk", done.stderr)

    def test_exec_passes_stdin_and_status(self):
        job = self.cluster.run("h1", "sh", "-c", "cat; exit 7", stdin_text="hello\n")
        self.assertEqual((job.out, job.status), ("hello\n", 7))
        self.assertEqual(self.cluster.run("h1", "sh", "-c", "kill -9 $$").status, 137)

    def test_a_link_can_be_cut_in_silence_and_healed(self):
        reach = ["ssh", "-o", "StrictHostKeyChecking=no", "-o", "ConnectTimeout=2", "host2", "true"]
        self.assertEqual(self.cluster.run("h0", *reach).status, 0)
        for how in ([], ["--silent"]):
            self.cluster.verb("cut", "h2", *how)
            self.assertEqual(self.cluster.run("h0", *reach).status, 255)
            self.cluster.verb("heal", "h2")
            self.assertEqual(self.cluster.run("h0", *reach).status, 0)


class Life(unittest.TestCase):
    def test_sixteen_hosts_start_in_seconds(self):
        begin = time.monotonic()
        cluster = Cluster(16)
        self.addCleanup(cluster.down)
        self.assertLess(time.monotonic() - begin, 30)  # a second or two if nothing else runs

    def test_nothing_is_left_when_the_supervisor_is_killed(self):
        cluster = Cluster(3)
        self.addCleanup(cluster.down)
        hosts = [host["pid"] for host in cluster.data["hosts"]]
        inside = cluster.start("h1", "sleep", "1000")
        os.kill(cluster.data["supervisor"], signal.SIGKILL)
        inside.finish()
        end = time.monotonic() + 10
        while any(state.started(pid) for pid in hosts):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.assertNotIn(cluster.name, open("/proc/mounts", encoding="utf-8").read())
        self.assertEqual(os.listdir(state.folder_of(cluster.name) + "/stage"), [])

    def test_it_ends_with_its_owner(self):
        owner = subprocess.Popen(["sleep", "1000"])
        name = f"e2e-{os.getpid()}-owned"
        subprocess.run([CLUSTER, "up", "2", "--quiet", "--name", name, "--owner-pid", str(owner.pid)], check=True)
        supervisor = state.load(name)["supervisor"]
        owner.kill()
        owner.wait()
        end = time.monotonic() + 10
        while state.started(supervisor):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        state.stop(name)

    def test_down_twice_is_no_error(self):
        cluster = Cluster(1)
        cluster.down()
        cluster.down()
