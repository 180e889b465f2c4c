"""Which NIC, which addresses; hosts that can't reach the head; links that are cut."""
import time

from support import BIN, SLOWDOWN, ClusterTest, environments


class Decoys(ClusterTest):
    """The right NIC has another name on each host; a default route and docker0 lead astray."""

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
        job = self.good("-H", "localhost:1,host1:1", "--network-interfaces", "10.77.0.0/24", "env")
        for rank, env in environments(job.out).items():
            self.assertEqual(env["NCCL_SOCKET_IFNAME"], f"={self.nics()[rank]}")

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
        self.assertNotIn(job.status, (0, 70), str(job))
        self.assertIn("10.77.0.4", job.err)
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
        self.assertIn("host1", job.err)
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

    def test_train_over_lossy_links(self):
        for host in ("h1", "h2"):
            self.cluster.verb("lossy", host, "2%")
        self.assert_trained(self.drun("-H", "localhost:1,host1:1,host2:1", "./train", cwd=BIN, limit=200), 3)

    def test_train_over_a_slow_link(self):
        self.cluster.verb("slow", "h2", "10mbit")
        self.assert_trained(self.drun("-H", "localhost:1,host2:1", "./train", cwd=BIN, limit=200), 2)
