"""`drun check` finds and names each fault of a cluster without hints, and reports nothing on a healthy one."""
import json
import os
import subprocess
import threading

from netcluster import sshd
from support import SLOWDOWN, ClusterTest

# Number of checks of the healthy cluster: a false finding may be rare.
RUNS = int(os.environ.get("DRUN_TEST_CHECK_RUNS", "2"))
LIMIT_S = 60 * SLOWDOWN


# For --launch-agent: ssh, but with the wall clock in the messages of host2's agent 90 s ahead. A host of namespaces
# has no wall clock of its own.
SKEWED_SSH = """#!/usr/bin/python3 -u
import os, struct, subprocess, sys, threading, time
FACTS, MAGIC = 24, b"\\0\\1drun-agent"
if "host2" not in sys.argv:
    os.execvp("ssh", ["ssh", "-T", "-oBatchMode=yes", "-oStrictHostKeyChecking=accept-new", *sys.argv[1:]])
ssh = subprocess.Popen(["ssh", "-T", "-oBatchMode=yes", "-oStrictHostKeyChecking=accept-new", *sys.argv[1:]], stdout=subprocess.PIPE)
out, data, framed = sys.stdout.fileno(), b"", False
while chunk := os.read(ssh.stdout.fileno(), 1 << 16):
    data += chunk
    if not framed:
        at = data.find(MAGIC)
        if at < 0 or len(data) < at + 15:
            os.write(out, data)
            data = b""
            continue
        os.write(out, data[:at + 15])
        data, framed = data[at + 15:], True
    while len(data) >= 5 and len(data) >= 4 + struct.unpack(">I", data[:4])[0]:
        size = 4 + struct.unpack(">I", data[:4])[0]
        frame, data = bytearray(data[:size]), data[size:]
        for i in range(5, size - 7) if frame[4] == FACTS else ():
            value = struct.unpack(">q", frame[i:i + 8])[0]
            if abs(value - time.time_ns()) < 10e9:
                frame[i:i + 8] = struct.pack(">q", value + 90_000_000_000)
                break
        while frame:
            frame = frame[os.write(out, frame):]
sys.exit(ssh.wait())
"""


class CheckTest(ClusterTest):
    """hosts: h0 runs drun, and is `localhost` in the list."""

    def host_list(self, n=None):
        return ",".join(["localhost:1"] + [f"host{i}:1" for i in range(1, n or self.hosts)])

    def check(self, *options, n=None, statuses=(0,), hosts=None, env=None):
        """Runs a check. Returns the report as data."""
        job = self.drun("check", "-H", hosts or self.host_list(n), "--json", *options, limit=LIMIT_S, env=env)
        try:
            report = json.loads(job.out)
        except json.JSONDecodeError:
            self.fail(str(job))
        self.assertIn(job.status, statuses, json.dumps(self.findings(report), indent=1) + job.err)
        self.assertEqual(report["drun_check"], 1)
        for finding in report["findings"]:
            self.assertTrue(finding["text"] and finding["command"], finding)
        return report

    @classmethod
    def switch(cls, script):
        """Runs a script as root in the switch's network namespace, which has a port per host, named after the host."""
        pid = str(cls.cluster.data["supervisor"])
        subprocess.run(["nsenter", "-t", pid, "-n", "sh", "-ec", script], check=True, timeout=30)

    def stop_sshd(self, host, seconds):
        """Has the host's sshd accept connections without an answer for so many seconds. Returns a thread to join()."""
        go_on = f"kill -CONT $(cat {sshd.RUN}/pid)"
        self.cluster.shell(host, f"kill -STOP $(cat {sshd.RUN}/pid)")
        self.addCleanup(self.cluster.shell, host, go_on)
        timer = threading.Timer(seconds, self.cluster.shell, (host, go_on))
        timer.start()
        self.addCleanup(timer.join)
        return timer

    def nic(self, host):
        return self.cluster.data["hosts"][int(host[1:])]["nic"]

    def findings(self, report, severities=("failure", "warning")):
        return [finding for finding in report["findings"] if finding["severity"] in severities]

    def assert_found(self, report, code, *hosts, severity=None, words=()):
        """Asserts that a finding of this code names exactly these hosts."""
        for finding in report["findings"]:
            if finding["code"] == code and sorted(finding["hosts"]) == sorted(hosts):
                if severity:
                    self.assertEqual(finding["severity"], severity, finding)
                for word in words:
                    self.assertIn(word, json.dumps(finding))
                return finding
        self.fail(f"no {code} of {hosts} in {json.dumps(report['findings'], indent=1)}")

    def assert_blameless(self, report, *hosts):
        """Asserts that no warning or failure names one of these hosts."""
        for finding in self.findings(report):
            self.assertFalse(set(finding["hosts"]) & set(hosts), finding)


class Healthy(CheckTest):
    hosts = 16

    def test_nothing_is_found_where_nothing_is_wrong(self):
        for _ in range(RUNS):
            report = self.check("--strict")
            self.assertEqual(report["verdict"], "ready", report["findings"])
            self.assertEqual(self.findings(report), [])
            self.assertEqual(len(report["hosts"]), 16)
            self.assertEqual([host["interface"] for host in report["hosts"]],
                             [host["nic"] for host in self.cluster.data["hosts"]])
        self.cluster.assert_clean()

    def test_quick_takes_little_time(self):
        report = self.check("--quick", "--strict")
        self.assertEqual(self.findings(report), [])
        self.assertLess(report["seconds"], 5 * SLOWDOWN)


class Links(CheckTest):
    hosts = 5

    def test_a_slow_link_of_two_hosts_is_found_without_others_to_compare_with(self):
        self.cluster.verb("slow", "h1", "10mbit")
        self.addCleanup(self.cluster.verb, "slow", "h1", "off")
        report = self.check(n=2)
        self.assertIn("link-slow", [finding["code"] for finding in self.findings(report)])

    def test_loss_on_one_link(self):
        self.cluster.verb("lossy", "h3", "3%")
        self.addCleanup(self.cluster.verb, "lossy", "h3", "0")
        report = self.check()
        self.assert_found(report, "link-loss", "host3")
        self.assert_blameless(report, "localhost", "host1", "host2", "host4")

    def test_loss_one_way_between_two_hosts_is_found_in_little_time(self):
        self.switch("nft 'add table bridge oneway; add chain bridge oneway f { type filter hook forward priority 0; };"
                    " add rule bridge oneway f iifname \"h1\" oifname \"h2\" numgen random mod 1000 < 30 drop'")
        self.addCleanup(self.switch, "nft delete table bridge oneway")
        report = self.check("--quick")
        self.assert_found(report, "link-loss", "host1", "host2", words=["of what host1 sends"])
        self.assert_blameless(report, "localhost", "host3", "host4")

    def test_a_host_whose_mtu_is_another(self):
        self.switch("ip link set data0 mtu 9000; for h in h0 h1 h2 h3 h4; do ip link set $h mtu 9000; done; "
                    "ip link set h3 mtu 1500")
        self.addCleanup(self.switch, "for h in h0 h1 h2 h3 h4; do ip link set $h mtu 1500; done; ip link set data0 mtu 1500")
        for host in ("h0", "h1", "h2", "h4"):
            self.cluster.shell(host, f"ip link set {self.nic(host)} mtu 9000")
            self.addCleanup(self.cluster.shell, host, f"ip link set {self.nic(host)} mtu 1500")
        report = self.check()
        self.assert_found(report, "mtu-mismatch", "host3", words=["1500", "9000"])

    def test_a_cluster_that_became_slower_than_its_own_normal(self):
        self.check("--save-baseline", "/root/normal.json", n=3)
        report = self.check("--baseline", "/root/normal.json", n=3)
        self.assertEqual([f for f in self.findings(report) if f["code"].startswith("baseline")], [])
        for host in ("h0", "h1", "h2"):
            self.cluster.verb("slow", host, "200mbit")
            self.addCleanup(self.cluster.verb, "slow", host, "off")
        report = self.check("--baseline", "/root/normal.json", n=3)
        self.assertIn("baseline-slower", [f["code"] for f in self.findings(report)], report["findings"])
        self.cluster.write("h0", "/root/broken.json", "{}")
        job = self.drun("check", "-H", self.host_list(2), "--baseline", "/root/broken.json", limit=LIMIT_S)
        self.assertEqual(job.status, 2, str(job))
        self.assertIn("/root/broken.json", job.err)

    def test_no_more_than_max_rate_goes_through_any_interface(self):
        def sent():
            return {host["name"]: int(self.cluster.shell(host["name"], f"cat /proc/net/dev | grep '{host['nic']}:' | "
                                                         "sed 's/.*://' | awk '{print $9}'"))
                    for host in self.cluster.data["hosts"][:3]}
        before = sent()
        report = self.check("--max-rate", "20mbit", n=3)
        for host, n_bytes in sent().items():
            # At most the whole duration of the check at that rate, plus the agent's transfer and messages.
            self.assertLess((n_bytes - before[host]) * 8, 20e6 * report["seconds"] * 1.2 + 16 * 8 * 2**20, host)
        rates = [rate["bits_per_second"] for link in report["links"] for way in ("a_to_b", "b_to_a")
                 for rate in link[way]["rates"] if rate["bits_per_second"]]
        self.assertTrue(rates)
        self.assertLess(max(rates), 25e6)  # a short window may begin with queued data

    def test_a_slow_link_is_the_fault_of_its_host_and_in_the_prediction(self):
        self.cluster.verb("slow", "h4", "10mbit")
        self.addCleanup(self.cluster.verb, "slow", "h4", "off")
        self.check("--strict", "--quick", statuses=(1,))
        report = self.check("--gradient-size", "10MB", "--step-time", "300ms")
        self.assert_found(report, "link-slow", "host4", words=["Mb/s"])
        self.assert_blameless(report, "localhost", "host1", "host2", "host3")
        self.assertEqual(report["verdict"], "ready_with_warnings")
        predicted = report["prediction"]
        self.assertEqual(predicted["gradient_bytes"], 10_000_000)
        # A ring of five hosts moves 8/5 of the buffer through every link.
        ideal = 10e6 * 8 * 1.6 / 10e6
        self.assertGreater(predicted["allreduce_seconds"], 0.7 * ideal)
        # A short measurement of a link with deep queues may be a fifth too low; docs/check.md has the results of
        # longer ones.
        self.assertLess(predicted["allreduce_seconds"], 1.6 * ideal)
        self.assertIn("host4", predicted["without"])  # on a busy machine another one may be slow too
        self.assertLess(predicted["allreduce_seconds_without"], predicted["allreduce_seconds"] / 5)
        self.assertLess(predicted["efficiency"], 0.1)


class Reach(CheckTest):
    hosts = 4

    def keep_out(self, host, verdict):
        """Makes the host accept ssh, and no other connection."""
        self.cluster.filter(host, input=['iifname "lo" accept', "tcp dport 12345 accept",
                                         f"tcp flags & (syn|ack) == syn {verdict}"])
        self.addCleanup(self.cluster.unfilter, host)

    def test_a_host_that_drops_what_comes_in(self):
        self.keep_out("h2", "drop")
        report = self.check(statuses=(1,))
        finding = self.assert_found(report, "host-hidden", "host2", severity="failure")
        self.assertIn("timed out", json.dumps(finding))
        self.assert_blameless(report, "localhost", "host1", "host3")

    def test_a_host_that_refuses_what_comes_in(self):
        self.keep_out("h2", "reject with tcp reset")
        report = self.check("--for", "libdrun")
        finding = self.assert_found(report, "host-hidden", "host2", severity="warning", words=["libdrun can work"])
        self.assertIn("refused", json.dumps(finding))

    def test_single_directions_that_are_filtered_and_refused(self):
        self.cluster.filter("h1", input=["ip saddr 10.77.0.1 tcp dport != 12345 tcp flags & (syn|ack) == syn drop",
                                         "ip6 saddr fd77::1 tcp flags & (syn|ack) == syn drop"])
        self.addCleanup(self.cluster.unfilter, "h1")
        self.cluster.filter("h3", input=["ip saddr 10.77.0.3 tcp flags & (syn|ack) == syn reject with tcp reset",
                                         "ip6 saddr fd77::3 tcp flags & (syn|ack) == syn reject with tcp reset"])
        self.addCleanup(self.cluster.unfilter, "h3")
        report = self.check("--for", "libdrun")
        filtered = self.assert_found(report, "direction-filtered", "localhost", "host1", severity="warning")
        self.assertEqual(filtered["subject"], "localhost to host1")
        refused = self.assert_found(report, "direction-refused", "host2", "host3", severity="warning")
        self.assertEqual(refused["subject"], "host2 to host3")
        self.assertEqual(len(self.findings(report)), 2, self.findings(report))

    def test_two_hosts_that_accept_ssh_alone_are_not_ready(self):
        self.keep_out("h1", "drop")
        self.keep_out("h3", "drop")
        report = self.check(statuses=(68,))
        self.assertEqual(report["verdict"], "not_ready")
        self.assert_found(report, "not-connected", "host1", "host3", severity="failure")

    def test_ipv6_alone(self):
        hosts = self.cluster.data["hosts"]
        for host in hosts:
            self.cluster.shell(host["name"], f"ip addr del {host['address']}/24 dev {host['nic']}")
            self.addCleanup(self.cluster.shell, host["name"], f"ip addr add {host['address']}/24 dev {host['nic']}")
        report = self.check(hosts=",".join(["localhost:1"] + [f"[{host['address6']}]:1" for host in hosts[1:]]),
                            *["-p", "12345"])
        self.assertEqual(self.findings(report), [])
        self.assertEqual([host["address"] for host in report["hosts"]], [host["address6"] for host in hosts])
        self.assertIn("ipv6-only", [finding["code"] for finding in report["findings"]])

    def test_an_address_that_two_hosts_have(self):
        for host in ("h1", "h2"):
            self.cluster.shell(host, f"ip addr add 10.77.0.50/24 dev {self.nic(host)}")
            self.addCleanup(self.cluster.shell, host, f"ip addr del 10.77.0.50/24 dev {self.nic(host)}")
        report = self.check()
        self.assert_found(report, "address-duplicate", "host1", "host2", severity="warning", words=["10.77.0.50"])
        self.assertEqual([host["address"] for host in report["hosts"]],
                         [host["address"] for host in self.cluster.data["hosts"]])

    def test_two_interfaces_in_one_network_with_a_strict_filter(self):
        pid = self.cluster.data["hosts"][1]["pid"]
        self.switch(f"ip link add h1second type veth peer name second netns {pid}; ip link set h1second master data0 up")
        self.addCleanup(self.switch, "ip link del h1second")
        self.cluster.shell("h1", "ip link set second up; ip addr add 10.77.0.60/24 dev second; "
                                 f"echo 1 > /proc/sys/net/ipv4/conf/second/rp_filter; "
                                 f"echo 1 > /proc/sys/net/ipv4/conf/{self.nic('h1')}/rp_filter")
        self.addCleanup(self.cluster.shell, "h1", f"echo 0 > /proc/sys/net/ipv4/conf/{self.nic('h1')}/rp_filter")
        self.assert_found(self.check(), "rp-filter", "host1", words=["second", self.nic("h1")])
        self.cluster.shell("h1", f"echo 0 > /proc/sys/net/ipv4/conf/{self.nic('h1')}/rp_filter; "
                                 "echo 0 > /proc/sys/net/ipv4/conf/second/rp_filter; "
                                 "ip route add 10.77.0.0/25 dev second; ip route add 10.77.0.128/25 dev second")
        nics = ",".join(host["nic"] for host in self.cluster.data["hosts"])
        self.assert_found(self.check("--quick", "--network-interfaces", nics), "sends-elsewhere", "host1",
                          words=[f"sends by second, listens on {self.nic('h1')}"])

    def test_routing_rules_are_named(self):
        self.cluster.shell("h2", "ip rule add from 10.77.0.3 lookup main priority 1000")
        self.addCleanup(self.cluster.shell, "h2", "ip rule del priority 1000")
        self.assert_found(self.check(), "policy-routing", "host2", severity="note")

    def test_the_decoys_are_named_with_the_reason(self):
        report = self.check()
        everybody = [host["name"] for host in report["hosts"]]
        self.assert_found(report, "names-differ", *everybody, words=["enp3s0", "eth1", "ens5", "eno1"])
        self.assert_found(report, "host-name-loopback", *everybody, words=["127.0.1.1"])
        self.assertEqual(self.findings(report), [])
        for host, data in zip(report["hosts"], self.cluster.data["hosts"]):
            reasons = {interface["name"]: "" for interface in host["interfaces"]}
            for rejected in host["rejected"]:
                reasons[rejected["interface"]] += rejected["reason"] + "; "
            self.assertIn("172.17.0.1 is also on", reasons["docker0"])
            self.assert_found(report, "interface-unreached", *[h["name"] for h in report["hosts"]],
                              words=[data["decoy_nic"]])
            self.assertNotIn(data["address"], reasons[data["nic"]])


class TwoNetworks(CheckTest):
    """A fast and a slow NIC that both answer."""

    hosts = 3

    FAST = ["fast0", "fast1", "fast2"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        hosts = cls.cluster.data["hosts"]
        cls.switch("ip link add data1 type bridge; ip link set data1 up; " +
                   "; ".join(f"ip link add h{i}b type veth peer name fast{i} netns {host['pid']}; "
                             f"ip link set h{i}b master data1 up" for i, host in enumerate(hosts)))
        for i, host in enumerate(hosts):
            cls.cluster.shell(host["name"], f"ip addr add 10.99.0.{i + 1}/24 dev fast{i}; ip link set fast{i} up")
            cls.cluster.verb("slow", host["name"], "100mbit")

    def setUp(self):
        self.cluster.shell("h0", "rm -rf ~/.cache/drun")

    def chosen(self, *options):
        """The interfaces that a job chooses, and True if they came from the cache."""
        self.good("--events", "/tmp/events", "-H", self.host_list(), *options, "true", limit=LIMIT_S)
        events = [event for event in map(json.loads, self.cluster.shell("h0", "cat /tmp/events").splitlines())
                  if event["event"] == "interface_chosen"]
        return [event["interface"] for event in events], any(event["cached"] for event in events)

    def test_the_faster_one_is_chosen(self):
        report = self.check()
        self.assertEqual([host["interface"] for host in report["hosts"]], self.FAST)
        # The next job uses the cache.
        self.assertEqual(self.chosen(), (self.FAST, True))

    def test_a_job_measures_by_itself(self):
        self.assertEqual(self.chosen(), (self.FAST, False))
        self.assertEqual(self.chosen(), (self.FAST, True))
        self.assertEqual(self.chosen("--no-cache"), (self.FAST, False))
        self.cluster.shell("h0", "rm -rf ~/.cache/drun")
        self.assertEqual(self.chosen("--check", "quick"), (self.FAST, False))
        self.assertEqual(self.chosen(), (self.FAST, True))

    def test_init_writes_a_file_that_jobs_use(self):
        self.cluster.shell("h0", "mkdir -p /root/project && rm -f /root/project/drun.toml")
        self.good("init", "-H", "localhost,host1:2", "--start-timeout", "30", cwd="/root/project", limit=LIMIT_S)
        text = self.cluster.shell("h0", "cat /root/project/drun.toml")
        self.assertIn('network-interfaces = ["10.99.0.0/24"]', text)
        self.assertIn("start-timeout = 30\n", text)
        self.assertIn("# 10.99.0.0/24: fast0 on localhost, fast1 on host1\n", text)
        job = self.good("--wdir", "/", "sh", "-c", "echo $RANK of $WORLD_SIZE by $GLOO_SOCKET_IFNAME",
                        cwd="/root/project")
        self.assertEqual(sorted(job.out.splitlines()),
                         ["[0] 0 of 3 by fast0", "[1] 1 of 3 by fast1", "[2] 2 of 3 by fast1"])

    def test_a_check_that_holds_itself_back_tells_jobs_nothing(self):
        self.check("--max-rate", "20mbit")
        self.assertEqual(self.chosen(), (self.FAST, False))


class Trouble(CheckTest):
    hosts = 3

    def test_a_host_that_is_not_there(self):
        report = self.check(hosts="localhost:1,host1:1,10.77.0.99:1", statuses=(68,), *["--start-timeout", "5"])
        self.assert_found(report, "host-unreachable", "10.77.0.99", severity="failure")
        self.assertEqual({host["name"]: host["verdict"] for host in report["hosts"]},
                         {"localhost": "ready", "host1": "ready", "10.77.0.99": "not_ready"})

    def test_a_slow_shell_is_named(self):
        self.cluster.write("h2", "/root/.bashrc", "sleep 3\n")
        self.addCleanup(self.cluster.shell, "h2", "rm /root/.bashrc")
        finding = self.assert_found(self.check(), "ssh-slow", "host2", severity="warning")
        self.assertIn("agent", finding["text"])

    def test_a_slow_sshd_is_named(self):
        daemon = self.stop_sshd("h1", 4)
        finding = self.assert_found(self.check(), "ssh-slow", "host1", severity="warning")
        daemon.join()
        self.assertIn("handshake", finding["text"])

    def test_a_clock_that_is_off(self):
        self.cluster.write("h0", "/root/skewed_ssh", SKEWED_SSH, 0o755)
        finding = self.assert_found(self.check("--launch-agent", "/root/skewed_ssh"), "clock-off", "host2", severity="warning")
        self.assertRegex(finding["text"], r"\b(90|89\.9|90\.0)")

    def test_wrong_options_are_told_before_anything_starts(self):
        self.cluster.write("h0", "/root/wrong_config", "Host host1\n  Port many\n")
        for options, words in ((["--html", "/nosuch/folder/page.html"], "/nosuch/folder"),
                               (["--gradient-size", "many"], "--gradient-size"),
                               (["--max-rate", "fast"], "--max-rate"),
                               (["--step-time", "-1s"], "--step-time"),
                               (["--baseline", "/nosuch"], "/nosuch"),
                               (["--quick", "--full"], "--quick"),
                               (["-F", "/root/wrong_config"], "drun: error: /root/wrong_config:2: not a port"),
                               (["--network-interfaces", "nosuch0"], "nosuch0")):
            job = self.drun("check", "-H", self.host_list(), *options, limit=LIMIT_S)
            self.assertEqual(job.status, 2, str(job))
            self.assertIn(words, job.err)

    def test_a_host_that_vanishes_in_mid_check(self):
        job = self.start_drun("check", "-vv", "-H", self.host_list(), "--json", "--full")
        job.wait_for(r"host2: agent \d+")  # before that, drun would wait for it for --start-timeout
        self.cluster.verb("cut", "h2", "--silent")
        self.addCleanup(self.cluster.verb, "heal", "h2")
        job.finish(LIMIT_S)
        self.assertEqual(job.status, 68, str(job))
        report = json.loads(job.out)
        self.assertEqual([host["verdict"] for host in report["hosts"]], ["ready", "ready", "not_ready"], report["findings"])

    def test_a_check_ends_at_its_timeout_with_what_it_has(self):
        self.cluster.write("h2", "/root/.bashrc", "sleep 100\n")
        self.addCleanup(self.cluster.shell, "h2", "rm /root/.bashrc")
        report = self.check("--timeout", "6", statuses=(68,))
        self.assert_found(report, "host-unreachable", "host2", severity="failure")
        self.assertLess(report["seconds"], 12 * SLOWDOWN)

    def test_the_page_and_the_report_for_people(self):
        job = self.good("check", "-H", self.host_list(), "--html", "/tmp/check.html", limit=LIMIT_S)
        self.assertIn("ready", job.out)
        page = self.cluster.shell("h0", "cat /tmp/check.html")
        for host in ("localhost", "host1", "host2"):
            self.assertIn(host, job.out)
            self.assertIn(host, page)
        self.assertNotIn("http://", page.replace("http://www.w3.org/", ""))


class Together(CheckTest):
    """Several faults at once, and GPUs."""

    hosts = 8

    def test_every_fault_is_found_beside_the_others(self):
        ports = " ".join(host["name"] for host in self.cluster.data["hosts"])
        self.switch(f"ip link set data0 mtu 9000; for h in {ports}; do ip link set $h mtu 9000; done; ip link set h6 mtu 1500")
        self.addCleanup(self.switch, f"for h in {ports}; do ip link set $h mtu 1500; done; ip link set data0 mtu 1500")
        for host in ports.split():
            if host != "h6":
                self.cluster.shell(host, f"ip link set {self.nic(host)} mtu 9000")
                self.addCleanup(self.cluster.shell, host, f"ip link set {self.nic(host)} mtu 1500")
        self.cluster.verb("slow", "h1", "10mbit")
        self.addCleanup(self.cluster.verb, "slow", "h1", "off")
        self.cluster.filter("h3", input=['iifname "lo" accept', "tcp dport 12345 accept",
                                         "tcp flags & (syn|ack) == syn drop"])
        self.addCleanup(self.cluster.unfilter, "h3")
        self.cluster.verb("lossy", "h5", "3%")
        self.addCleanup(self.cluster.verb, "lossy", "h5", "0")
        self.cluster.write("h0", "/root/skewed_ssh", SKEWED_SSH, 0o755)
        self.stop_sshd("h4", 10)  # three times as long as the others take on a busy machine
        report = self.check("--launch-agent", "/root/skewed_ssh", statuses=(1,))
        everybody = [host["name"] for host in report["hosts"]]
        self.assert_found(report, "link-slow", "host1")
        self.assert_found(report, "clock-off", "host2")
        self.assert_found(report, "host-hidden", "host3")
        self.assert_found(report, "ssh-slow", "host4")
        self.assert_found(report, "link-loss", "host5")
        self.assert_found(report, "mtu-mismatch", "host6", words=["1500", "9000"])
        self.assert_found(report, "names-differ", *everybody)
        self.assert_found(report, "interface-same-address", *everybody, words=["docker0"])
        self.assert_found(report, "interface-unreached", *[name for name in everybody if name != "host3"])
        self.assert_found(report, "host-name-loopback", *everybody, words=["127.0.1.1"])
        self.assert_blameless(report, "localhost", "host7")

    def test_what_is_wrong_with_gpus_is_named_with_the_host(self):
        for host, kind in (("h0", "healthy"), ("h1", "foreign"), ("h2", "fewer"), ("h3", "ecc"), ("h4", "hang")):
            self.cluster.write(host, "/run/drun-fake-gpus", kind)
        fakes = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fakes")
        hosts = ",".join(["localhost:2"] + [f"host{i}:2" for i in range(1, 5)])
        report = self.check(hosts=hosts, statuses=(1,), env={"PATH": f"{fakes}:{os.environ['DRUN_BIN_DIR']}:/usr/bin:/bin:/usr/sbin"})
        self.assertEqual(report["verdict"], "not_ready")
        self.assert_found(report, "gpu-memory-used", "host1", words=["MiB"])
        self.assert_found(report, "gpus-fewer", "host2", severity="failure")
        self.assert_found(report, "gpu-ecc", "host3")
        self.assert_found(report, "nvidia-smi-failed", "host4")
        self.assert_blameless(report, "localhost")


class BeforeAJob(CheckTest):
    """`drun run --check quick`."""

    hosts = 3

    def test_a_job_on_ready_hosts_runs(self):
        job = self.good("--check", "quick", "-H", self.host_list(), "hostname", limit=LIMIT_S)
        self.assertEqual(sorted(job.out.split()), ["[0]", "[1]", "[2]", "h0", "h1", "h2"])
        self.assertNotIn("warning", job.err)

    def test_a_warning_is_told_and_the_job_runs(self):
        self.cluster.verb("slow", "h2", "10mbit")
        self.addCleanup(self.cluster.verb, "slow", "h2", "off")
        job = self.good("--check", "quick", "-H", self.host_list(), "hostname", limit=LIMIT_S)
        self.assertRegex(job.err, r"warning: host2.* Mb/s")

    def test_a_failure_ends_it_before_anything_starts(self):
        job = self.drun("--check", "quick", "-H", self.host_list(), "/nosuch/train", limit=LIMIT_S)
        self.assertEqual(job.status, 1, str(job))  # without --check it would be 127
        self.assertEqual(job.out, "")
        self.assertIn("/nosuch/train", job.err)
        self.cluster.assert_clean()

    def test_more_workers_than_gpus_may_be_meant(self):
        for host, kind in (("h0", "healthy"), ("h1", "fewer"), ("h2", "healthy")):
            self.cluster.write(host, "/run/drun-fake-gpus", kind)
        fakes = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fakes")
        job = self.good("--check", "quick", "-H", "localhost:2,host1:2,host2:2", "hostname", limit=LIMIT_S,
                        env={"PATH": f"{fakes}:{os.environ['DRUN_BIN_DIR']}:/usr/bin:/bin:/usr/sbin"})
        self.assertRegex(job.err, r"warning: host1: .*GPU")

    def test_a_depth_that_there_is_not(self):
        job = self.drun("--check", "deep", "-H", self.host_list(), "hostname", limit=LIMIT_S)
        self.assertEqual(job.status, 2, str(job))
        self.assertIn("--check", job.err)
