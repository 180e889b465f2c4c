"""The choice of NIC and addresses; hosts that can't reach the head; links that are cut."""
import json
import re
import time

from support import BIN, SLOWDOWN, ClusterTest, environments


class Decoys(ClusterTest):
    """The right NIC has a different name on each host; a default route and docker0 are misleading."""

    hosts = 4

    def nics(self):
        return [host["nic"] for host in self.cluster.data["hosts"]]

    def test_the_nic_that_peers_reach_is_chosen_on_each_host(self):
        job = self.good("-np", "4", "-H", "localhost:1,host1:1,host2:1,host3:1", "env")
        found = environments(job.out)
        for rank, nic in enumerate(self.nics()):
            self.assertEqual(found[rank]["NCCL_SOCKET_IFNAME"], f"={nic}")
            self.assertEqual(found[rank]["GLOO_SOCKET_IFNAME"], nic)
            self.assertEqual(found[rank]["TP_SOCKET_IFNAME"], nic)
            self.assertEqual(found[rank]["MASTER_ADDR"], "10.77.0.1")

    def test_the_head_need_not_be_in_the_list(self):
        found = environments(self.good("-H", "host2:1,host3:1", "env").out)
        for rank, nic in enumerate(self.nics()[2:]):
            self.assertEqual(found[rank]["NCCL_SOCKET_IFNAME"], f"={nic}")
            self.assertEqual(found[rank]["MASTER_ADDR"], "10.77.0.3")

    def test_interfaces_by_network(self):
        for rank, nic in enumerate(self.nics()[:2]):  # without the option it would be 10.77.0.0/24
            self.cluster.shell(f"h{rank}", f"ip address add 10.78.0.{rank + 1}/24 dev {nic}")
            self.addCleanup(self.cluster.shell, f"h{rank}", f"ip address delete 10.78.0.{rank + 1}/24 dev {nic}")
        for network, head in (("10.77.0.0/24", "10.77.0.1"), ("10.78.0.0/24", "10.78.0.1")):
            found = environments(self.good("-H", "localhost:1,host1:1", "--network-interfaces", network, "env").out)
            self.assertEqual(len(found), 2)
            for rank, env in found.items():
                self.assertEqual(env["NCCL_SOCKET_IFNAME"], f"={self.nics()[rank]}")
                self.assertEqual(env["MASTER_ADDR"], head)

    def test_an_interface_that_does_not_exist_is_an_error_that_lists_what_there_is(self):
        job = self.drun("-H", "localhost:1,host1:1", "--network-interfaces", "nosuch0", "hostname")
        self.assertNotIn(job.status, (0, 70), str(job))
        self.assertIn("nosuch0", job.err)
        self.assertIn("eth1", job.err)

    def test_no_common_network_is_an_error_that_lists_what_was_tried(self):
        # ssh still works: only traffic between other ports than sshd's is dropped on h3.
        new = "tcp flags & (syn|ack) == syn drop"
        self.cluster.filter("h3", input=['iifname != "eno1" accept', "tcp dport 12345 accept", new],
                            output=['oifname != "eno1" accept', "tcp sport 12345 accept", new])
        self.addCleanup(self.cluster.unfilter, "h3")
        job = self.drun("-H", "host1:1,host3:1", "hostname")
        self.assertEqual(job.status, 68, str(job))
        self.assertRegex(job.err, r"10\.77\.0\.4.* timed out|timed out.* 10\.77\.0\.4")
        self.cluster.assert_clean()


class HiddenHead(ClusterTest):
    """The hosts can't open a connection to the head: the rendezvous is relayed over ssh."""

    hosts = 3

    def check(self, verdict):
        self.cluster.filter("h0", input=['iifname "lo" accept', f"tcp flags & (syn|ack) == syn {verdict}"])
        self.addCleanup(self.cluster.unfilter, "h0")
        job = self.drun("-np", "4", "-H", "host1:2,host2:2", "./train", cwd=BIN)
        self.assert_trained(job, 4)
        self.cluster.assert_clean()

    def test_train_where_the_head_drops_what_comes_in(self):
        self.check("drop")

    def test_train_where_the_head_refuses_what_comes_in(self):
        self.check("reject with tcp reset")


class OneWay(ClusterTest):
    """A host that accepts only ssh: libdrun's connections come from the side that can make them."""

    hosts = 4

    def hide(self, host, verdict="drop"):
        self.cluster.filter(host, input=['iifname "lo" accept', "tcp dport 12345 accept",
                                         f"tcp flags & (syn|ack) == syn {verdict}"])
        self.addCleanup(self.cluster.unfilter, host)

    def check(self, job, np, host):
        self.assert_trained(job, np)
        self.assertEqual(job.err.count("accepts no connections from the other hosts"), 1, str(job))
        self.assertIn(f"{host} accepts no connections from the other hosts", job.err)
        self.cluster.assert_clean()

    def test_train_with_a_host_that_drops_what_comes_in(self):
        self.hide("h2")
        job = self.drun("-H", "localhost:1,host1:1,host2:2,host3:1", "./train", cwd=BIN)
        self.check(job, 5, "host2")
        self.assertNotIn("MASTER_ADDR", job.err)

    def test_train_with_a_host_that_refuses_what_comes_in(self):
        self.hide("h1", "reject with tcp reset")
        self.check(self.drun("-H", "localhost:1,host1:1,host2:1", "./train", cwd=BIN), 3, "host1")

    def test_train_with_rank_0_on_such_a_host(self):
        self.hide("h1")
        job = self.drun("-H", "host1:1,host2:1,host3:1", "./train", cwd=BIN)
        self.check(job, 3, "host1")
        self.assertIn("rank 0 and MASTER_ADDR are on host2", job.err)
        show = 'echo "$RANK $GROUP_RANK $MASTER_ADDR $(hostname)"'
        job = self.drun("-H", "host1:2,host2:1,host3:1", "--no-tag-output", "sh", "-c", show)
        self.assertEqual(sorted(job.out.splitlines()),
                         [f"{rank} {node} 10.77.0.3 {host}"
                          for rank, node, host in ((0, 0, "h2"), (1, 1, "h1"), (2, 1, "h1"), (3, 2, "h3"))], str(job))

    def test_train_with_a_host_that_can_connect_to_nobody(self):
        self.cluster.filter("h2", output=['oifname "lo" accept', "tcp flags & (syn|ack) == syn drop"])
        self.addCleanup(self.cluster.unfilter, "h2")
        job = self.drun("-H", "localhost:1,host1:1,host2:1", "./train", cwd=BIN)
        self.assert_trained(job, 3)
        self.assertIn("host2 can't connect to the other hosts", job.err)

    def test_two_such_hosts_are_refused_by_name(self):
        self.hide("h2")
        self.hide("h3", "reject with tcp reset")
        job = self.drun("-H", "localhost:1,host1:1,host2:1,host3:1", "touch", "/tmp/started")
        self.assertEqual(job.status, 68, str(job))
        self.assertIn("host2 and host3: neither can connect to the other", job.err)
        self.assertRegex(job.err, r"host2: \w+: 10\.77\.0\.3 timed out from localhost, host1 and host3")
        self.assertRegex(job.err, r"host3: \w+: 10\.77\.0\.4 refused from localhost, host1 and host2")
        self.assertIn("hint: ", job.err)
        self.assertEqual(self.cluster.run("h0", "test", "-e", "/tmp/started").status, 1)
        self.cluster.assert_clean()


class OneWayOfMany(ClusterTest):
    """Beyond 32 hosts only some pairs are probed; two hosts that can't be connected are found nevertheless."""

    hosts = 36

    def test_one_is_let_in_and_two_are_refused(self):
        hosts = ",".join(f"host{i}:1" for i in range(1, self.hosts))
        accept = ['iifname "lo" accept', "tcp dport 12345 accept"]
        self.cluster.filter("h7", input=[*accept, "tcp flags & (syn|ack) == syn drop"])
        self.addCleanup(self.cluster.unfilter, "h7")
        job = self.good("-vv", "-H", hosts, "true")
        self.assertIn("host7 accepts no connections from the other hosts", job.err)
        self.assertRegex(job.err, r"probe: \d+ attempts of up to 400 ms, \d+ successful")
        self.cluster.filter("h11", input=[*accept, "tcp flags & (syn|ack) == syn reject with tcp reset"])
        self.addCleanup(self.cluster.unfilter, "h11")
        job = self.drun("-H", hosts, "true")
        self.assertEqual(job.status, 68, str(job))
        self.assertIn("host7 and host11: neither can connect to the other", job.err)


class Cache(ClusterTest):
    """The results of the hosts' probe are kept for the next job."""

    hosts = 3
    HOSTS = "localhost:1,host1:1,host2:1"

    def setUp(self):
        self.cluster.shell("h0", "rm -rf ~/.cache/drun")

    def found(self, *options):
        """Runs a job that succeeds. Returns True if its network came from the cache, and each rank's interface."""
        job = self.good("-H", self.HOSTS, "--events", "/tmp/events", *options, "env")
        chosen = [event for event in map(json.loads, self.cluster.shell("h0", "cat /tmp/events").splitlines())
                  if event["event"] == "interface_chosen"]
        self.assertEqual(len(chosen), 3, chosen)
        cached = {event["cached"] for event in chosen}
        self.assertEqual(len(cached), 1, chosen)
        return cached.pop(), [environments(job.out)[rank]["GLOO_SOCKET_IFNAME"] for rank in range(3)]

    def entries(self):
        return self.cluster.shell("h0", "ls ~/.cache/drun 2>/dev/null || true").split()

    def test_the_second_job_takes_what_the_first_has_found(self):
        cached, first = self.found()
        self.assertFalse(cached)
        self.assertEqual(len(self.entries()), 1)
        self.assertEqual(self.found(), (True, first))
        self.assertEqual(self.found("--no-cache"), (False, first))
        self.assertEqual(self.found(), (True, first))
        self.assertIn("--no-cache tries again", self.good("-v", "-H", self.HOSTS, "true").err)

    def test_an_address_that_has_changed_is_not_served_from_it(self):
        nic = self.cluster.data["hosts"][2]["nic"]
        self.found()
        self.cluster.shell("h2", f"ip addr add 10.77.0.99/24 dev {nic}")
        self.addCleanup(self.cluster.shell, "h2", f"ip addr del 10.77.0.99/24 dev {nic} || true")
        self.assertFalse(self.found()[0])
        self.assertTrue(self.found()[0])
        self.cluster.shell("h2", f"ip addr del 10.77.0.99/24 dev {nic}")
        self.assertTrue(self.found()[0])  # the first entry again
        self.assertEqual(len(self.entries()), 2)

    def test_an_interface_that_was_never_tried_does_not_matter(self):
        self.found()
        self.cluster.shell("h1", "ip link set docker0 down")
        self.addCleanup(self.cluster.shell, "h1", "ip link set docker0 up")
        self.assertTrue(self.found()[0])

    def test_a_job_that_fails_takes_it_away(self):
        self.found()
        job = self.drun("-H", self.HOSTS, "sh", "-c", "exit 3")
        self.assertEqual(job.status, 3, str(job))
        self.assertEqual(self.entries(), [])
        self.assertFalse(self.found()[0])

    def test_a_broken_file_counts_as_none(self):
        self.found()
        self.cluster.shell("h0", "cd ~/.cache/drun && printf garbage > $(ls)")
        self.assertFalse(self.found()[0])
        self.assertTrue(self.found()[0])

    def test_a_home_that_cant_be_written_does_no_harm(self):
        self.cluster.shell("h0", "rm -rf ~/.cache && mkdir -p ~/.cache && touch ~/.cache/drun")
        self.addCleanup(self.cluster.shell, "h0", "rm -rf ~/.cache/drun")
        self.assertFalse(self.found()[0])
        self.assertFalse(self.found()[0])


class LateFirewall(ClusterTest):
    """A firewall that comes up after the job has started: ranks on host1 can dial, but can't be dialed."""

    hosts = 3

    def test_the_side_that_can_dial_makes_all_connections(self):
        # Rank 1 should dial; after 3 s it asks rank 0.
        job = self.start_drun("-H", "host1:1,host2:1", "sh", "-c",
                              "echo ready; until [ -e /tmp/go ]; do sleep 0.1; done; exec ./train", cwd=BIN,
                              env={"DRUN_STREAMS": "2"})
        job.wait_for(r"\] ready", 2)
        new = "tcp flags & (syn|ack) == syn"
        self.cluster.filter("h1", input=['iifname "lo" accept', "tcp dport 12345 accept", f"{new} counter drop"],
                            output=[f"ip daddr 10.77.0.3 {new} counter accept"])
        self.addCleanup(self.cluster.unfilter, "h1")
        for host in ("h1", "h2"):
            self.cluster.shell(host, "touch /tmp/go")
        job.finish(100 * SLOWDOWN)
        self.assert_trained(job, 2)
        dropped, made = re.findall(r"counter packets (\d+)", self.cluster.shell("h1", "nft list table inet test"))
        self.assertGreater(int(dropped), 0, "nobody tried the way that is closed")
        self.assertEqual(int(made), 2, "one for each stream")
        self.cluster.assert_clean()


class Cut(ClusterTest):
    """Links that fail without a FIN."""

    hosts = 3

    def check(self, *how):
        job = self.start_drun("-H", "localhost:1,host1:1,host2:1", "--heartbeat-timeout", "3", "sh", "-c",
                              "echo ready; sleep 1000")
        job.wait_for(r"\] ready", 3)
        self.cluster.verb("cut", "h1", *how)
        self.addCleanup(self.cluster.verb, "heal", "h1")
        begin = time.monotonic()
        job.finish(30 * SLOWDOWN)
        self.assertNotIn(job.status, (0, 70), str(job))
        self.assertLess(time.monotonic() - begin, 15 * SLOWDOWN)
        self.assertRegex(job.err, r"host1.* silent for [3-9] s")
        end = time.monotonic() + 15 * SLOWDOWN  # the host that is cut off ends its workers by itself
        while any("sleep" in command for host in self.cluster.processes().values() for _, _, command in host):
            self.assertLess(time.monotonic(), end, str(self.cluster.processes()))
            time.sleep(0.1)

    def test_a_silent_cut_ends_the_job_on_both_sides(self):
        self.check("--silent")

    def test_a_pulled_cable_ends_the_job_on_both_sides(self):
        self.check()


class BadLinks(ClusterTest):
    hosts = 3
    # Long enough to deliver an agent over 10 Mb/s, even the sanitizers' agent of 90 MB in `scripts/test --full`.
    start_timeout = ("--start-timeout", "240")

    def test_train_over_lossy_links(self):
        for host in ("h1", "h2"):
            self.cluster.verb("lossy", host, "2%")
        self.assert_trained(self.drun(*self.start_timeout, "-H", "localhost:1,host1:1,host2:1", "./train", cwd=BIN,
                                      limit=140 + 60 * SLOWDOWN), 3)

    def test_train_over_a_slow_link(self):
        self.cluster.verb("slow", "h2", "10mbit")
        self.assert_trained(self.drun(*self.start_timeout, "-H", "localhost:1,host2:1", "./train", cwd=BIN,
                                      limit=140 + 60 * SLOWDOWN), 2)
