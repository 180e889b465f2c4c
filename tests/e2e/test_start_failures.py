"""Starts that fail halfway: one clear message that names the host and the phase, and no leftovers.

No test relies on a sleep: a phase is held open (a frozen sshd, a dropped packet) and
detected in /proc, then the failure is injected.
"""
import contextlib
import os
import signal
import time

import matrix
from support import SLOWDOWN, ClusterTest

HOSTS = "localhost:1,host1:1,host2:1"
TRANSPORTS = ("ssh", "openssh")
SYN_SENT = "02"
# --start-timeout in seconds, for starts that it must end: enough time for the other hosts, even while this machine
# tears down another test's network, which blocks the kernel's network for seconds.
SHORT = 8


class StartFailure(ClusterTest):
    hosts = 3

    def begin(self, transport, *options, start_timeout=20, heartbeat_timeout=4):
        return self.start_drun("--transport", transport, "--start-timeout", str(start_timeout),
                               "--heartbeat-timeout", str(heartbeat_timeout), *options, "-H", HOSTS, "sleep", "1000")

    def wait(self, done, what, limit=30):
        end = time.monotonic() + limit * SLOWDOWN
        while not done():
            self.assertLess(time.monotonic(), end, f"no {what} in {limit} s")
            time.sleep(0.02)

    def host(self, name):
        return next(host for host in self.cluster.data["hosts"] if host["name"] == name)

    def freeze_logins(self, name):
        """Blocks new connections, which get no answer, not even a banner; existing sessions continue."""
        listener = next(process.pid for process in matrix.processes(self.cluster)
                        if process.host == name and process.comm == "sshd" and process.parent == self.host(name)["pid"])
        os.kill(listener, signal.SIGSTOP)
        self.addCleanup(os.kill, listener, signal.SIGCONT)
        return listener

    def cut(self, name):
        self.cluster.verb("cut", "--silent", name)
        self.addCleanup(self.cluster.verb, "heal", name)

    def assert_one_message(self, job, host, *words, status=68, limit=15):
        """`limit`: seconds until it ends. Notes and warnings may come first; there is one error."""
        self.assertEqual(job.finish(limit * SLOWDOWN), status, str(job))
        errors = [line for line in job.err.splitlines() if line.startswith("drun: error:")]
        self.assertEqual(len(errors), 1, str(job))
        self.assertIn(host, errors[0], str(job))
        for word in words:
            self.assertIn(word, job.err)
        self.assertEqual(job.out, "", str(job))

    def assert_all_gone(self, *back):
        """Also on hosts in `back`, which are healed first: there the agent has heard nothing since, or its connection
        is refused."""
        for name in back:
            self.cluster.verb("heal", name)
        self.cluster.assert_clean(45 * SLOWDOWN if back else 10 * SLOWDOWN)


class Connecting(StartFailure):
    def test_a_host_that_answers_nothing_after_the_connect(self):
        for transport in TRANSPORTS:
            with self.subTest(transport=transport):
                listener = self.freeze_logins("h1")
                job = self.begin(transport, start_timeout=SHORT)
                self.assert_one_message(job, "host1", "no answer" if transport == "ssh" else "no hello")
                os.kill(listener, signal.SIGCONT)
                self.assert_all_gone()

    def test_a_host_that_is_gone_when_its_agent_was_there(self):
        for transport in TRANSPORTS:
            for how in ("cut", "agent killed", "agent frozen"):
                with self.subTest(transport=transport, how=how):
                    listener = self.freeze_logins("h2")  # holds the start in this phase
                    events = f"/tmp/events-{transport}-{how.replace(' ', '-')}"
                    job = self.begin(transport, "--events", events)
                    self.wait(lambda path=events: "host1" in self.cluster.shell(
                        "h0", f"grep -s agent_ready {path} || true"), "hello from host1")
                    agent = self.cluster.find("h1", "^drun-agent$")
                    if how == "cut":
                        self.cut("h1")
                    else:
                        os.kill(agent, signal.SIGKILL if how == "agent killed" else signal.SIGSTOP)
                    os.kill(listener, signal.SIGCONT)
                    self.assert_one_message(job, "host1", "probe: ", limit=20)
                    self.assert_all_gone(*(["h1"] if how == "cut" else []))


class NoAgent(StartFailure):
    options = ("--sshd", "h1=ForceCommand cat > /dev/null")

    def test_a_host_that_starts_something_else(self):
        for transport in TRANSPORTS:
            with self.subTest(transport=transport):
                self.assert_one_message(self.begin(transport, start_timeout=SHORT), "host1",
                                        f"agent: no hello within {SHORT} s")
                self.assert_all_gone()

    def test_a_host_that_vanishes_before_its_agent_came(self):
        for transport in TRANSPORTS:
            with self.subTest(transport=transport):
                job = self.begin(transport, start_timeout=SHORT)
                self.cluster.find("h1", "^cat")
                self.cut("h1")
                self.assert_one_message(job, "host1", "no hello")
                self.cluster.verb("heal", "h1")
                for process in matrix.processes(self.cluster):  # the ForceCommand that replaced our agent
                    if process.host == "h1" and process.comm == "cat":
                        with contextlib.suppress(ProcessLookupError):  # its connection may have ended it meanwhile
                            os.kill(process.pid, signal.SIGKILL)
                self.assert_all_gone("h1")


class Probing(StartFailure):
    """h1's attempts to reach h2 get no answer for a while: then the probe is running, and h1 is lost."""

    def setUp(self):
        self.cluster.filter("h1", output=["ip daddr 10.77.0.3 tcp dport != 12345 drop",
                                          "ip6 daddr fd77::3 tcp dport != 12345 drop"])
        self.addCleanup(self.cluster.unfilter, "h1")

    def probes(self):
        text = open(f"/proc/{self.host('h1')['pid']}/net/tcp", encoding="ascii").read()
        return any(line.split()[3] == SYN_SENT for line in text.splitlines()[1:])

    def test_a_host_that_is_gone_during_the_probe(self):
        for transport in TRANSPORTS:
            for how in ("cut", "agent killed", "agent frozen"):
                with self.subTest(transport=transport, how=how):
                    job = self.begin(transport)
                    self.wait(self.probes, "probe")
                    agent = self.cluster.find("h1", "^drun-agent$")
                    if how == "cut":
                        self.cut("h1")
                    else:
                        os.kill(agent, signal.SIGKILL if how == "agent killed" else signal.SIGSTOP)
                    self.assert_one_message(job, "host1", "probe: ", limit=15)
                    self.assert_all_gone(*(["h1"] if how == "cut" else []))


class FullDisk(ClusterTest):
    hosts = 2
    options = ("--bare", "h1")
    places = ("/root/.cache/drun", "/var/tmp", "/dev/shm", "/tmp")

    def fill(self, *places):
        for place in places:
            self.cluster.shell("h1", f"mkdir -p {place}; mount -t tmpfs -o size=64k full {place}")
            self.addCleanup(self.cluster.shell, "h1", f"umount {place}")

    def test_a_full_place_falls_through_to_the_next(self):
        self.fill("/root/.cache/drun", "/var/tmp")
        for transport in TRANSPORTS:
            with self.subTest(transport=transport):
                job = self.good("--transport", transport, "-H", "host1:1", "sh", "-c", "ls /dev/shm/drun-0/; ls -A /var/tmp/drun-0")
                self.assertRegex(job.out, r"\Aagent-[0-9a-f]+\n\Z")
                self.cluster.shell("h1", "rm -r /dev/shm/drun-0")
                self.cluster.assert_clean()

    def test_no_room_anywhere(self):
        self.fill(*self.places)
        for transport in TRANSPORTS:
            with self.subTest(transport=transport):
                job = self.drun("--transport", transport, "-H", "localhost:1,host1:1", "hostname")
                self.assertEqual(job.status, 68, str(job))
                self.assertRegex(job.err, r"drun: error: host1: agent: the disk is full: no room for its \d+ MiB in .*/var/tmp/drun-0")
                self.assertIn("/root/.cache/drun", job.err)
                self.assertEqual(job.err.count("drun: error:"), 1, str(job))
                self.assertEqual(self.cluster.shell("h1", "find /root/.cache/drun /var/tmp /dev/shm /tmp -type f"), "")
                self.cluster.assert_clean()


class BeforeTheRendezvous(ClusterTest):
    """A worker that dies before it joins, while all others wait for it."""

    hosts = 3

    def check(self, end, status, says):
        for transport in TRANSPORTS:
            with self.subTest(transport=transport):
                job = self.start_drun("--transport", transport, "-vv", "--grace", "2", "-H", HOSTS, "sh", "-c",
                                      f"test $RANK = 1 || exec hello; while [ ! -e /tmp/go ]; do sleep 0.05; done; {end}")
                self.addCleanup(self.cluster.shell, "h1", "rm -f /tmp/go")
                job.wait_for(r"rank [02] .*joined the rendezvous", 2)
                began = time.monotonic()
                self.cluster.shell("h1", "touch /tmp/go")
                self.assertEqual(job.finish(15 * SLOWDOWN), status, str(job))
                # The others have joined: they are told first, and get TERM a second later.
                self.assertLess(time.monotonic() - began, 5 * SLOWDOWN)
                self.assertRegex(job.err, rf"rank 1 on host1 \(pid \d+\): {says}")
                self.cluster.assert_clean()
                self.cluster.shell("h1", "rm -f /tmp/go")

    def test_by_an_exit(self):
        self.check("exit 7", 7, "exited with status 7")
