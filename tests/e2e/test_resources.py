"""Many hosts and workers within usual resource limits."""
import json
import os
import re
import signal
import threading
import time

from support import SLOWDOWN, ClusterTest

# A sanitizer's agents take 30 MB each: fewer of them, with the same limits.
N_HOSTS = 200 if SLOWDOWN == 1 else 16
PER_HOST = 5


class ManyHosts(ClusterTest):
    hosts = N_HOSTS

    def watch(self, pid, peaks, done):
        while not done.is_set():
            try:
                with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
                    fields = dict(line.split(":", 1) for line in status if ":" in line)
                peaks["threads"] = max(peaks["threads"], int(fields["Threads"]))
                peaks["kb"] = max(peaks["kb"], int(fields["VmHWM"].split()[0]))
                peaks["files"] = max(peaks["files"], len(os.listdir(f"/proc/{pid}/fd")))
            except (OSError, KeyError):
                return
            time.sleep(0.02)

    def wait_for_sleepers(self, n):
        """A worker that has said its rank may still be the shell, or in the middle of its exec."""
        limit = time.monotonic() + 20 * SLOWDOWN
        running = -1
        while running != n and time.monotonic() < limit:
            running = sum(command == "sleep 1000" for rest in self.cluster.processes().values() for _, _, command in rest)
        self.assertEqual(running, n)

    def test_a_thousand_workers_under_a_soft_limit_of_1024_descriptors(self):
        hosts = ",".join(f"{'localhost' if i == 0 else f'host{i}'}:{PER_HOST}" for i in range(N_HOSTS))
        n = N_HOSTS * PER_HOST
        job = self.cluster.start("h0", "bash", "-c", "ulimit -Sn 1024; exec drun \"$@\"", "drun", "--start-timeout",
                                 "240", "--events", "/tmp/events", "-H", hosts, "sh", "-c",
                                 "echo rank $RANK of $WORLD_SIZE; exec sleep 1000")
        self.addCleanup(self._end, job)
        peaks, done = {"threads": 0, "kb": 0, "files": 0}, threading.Event()
        watcher = threading.Thread(target=self.watch, args=(self.cluster.find("h0", "^drun$"), peaks, done))
        watcher.start()
        job.wait_for(rf"rank \d+ of {n}$", n, limit=280 * max(1, SLOWDOWN / 2))
        ranks = sorted(int(rank) for rank in re.findall(rf"rank (\d+) of {n}$", job.out, re.MULTILINE))
        self.assertEqual(ranks, list(range(n)))
        self.wait_for_sleepers(n)
        job.signal(signal.SIGINT)
        status = job.finish(60 * SLOWDOWN)
        done.set()
        watcher.join()
        self.assertEqual(status, 130, str(job)[-3000:])
        events = [json.loads(line) for line in self.cluster.shell("h0", "cat /tmp/events").splitlines()]
        for name in ("worker_started", "worker_exited"):
            self.assertEqual(sorted(event["rank"] for event in events if event["event"] == name), list(range(n)), name)
        print(f"{N_HOSTS} hosts, {n} workers: at most {peaks}")
        self.assertLess(peaks["threads"], 16)  # not one per host
        self.assertLess(peaks["files"], 64 + 4 * N_HOSTS + n)
        if SLOWDOWN == 1:
            self.assertLess(peaks["kb"], 256 << 10)
        self.cluster.assert_clean(60 * SLOWDOWN)


class Limits(ClusterTest):
    hosts = 2

    def test_too_low_a_hard_limit_is_said_before_anything_is_started(self):
        job = self.cluster.run("h0", "bash", "-c", "ulimit -n 128; exec drun -H localhost:300,host1:300 touch /root/started")
        self.assertEqual(job.status, 2, str(job))
        self.assertIn("drun: error: open files: 2 hosts and 600 workers need about", job.err)
        self.assertIn("the hard limit here is 128", job.err)
        self.assertIn("hint: as root: ulimit -Hn ", job.err)
        self.assertEqual(self.cluster.shell("h0", "ls /root"), self.cluster.shell("h0", "ls -I started /root"))

    def test_a_limit_of_a_million_descriptors_does_not_slow_the_start(self):
        # Closing a million descriptors one by one takes about 0.1 s per process: too long for 64 of them.
        begin = time.monotonic()
        job = self.cluster.run("h0", "bash", "-c", "ulimit -n 1048576; exec drun -np 64 true")
        self.assertEqual(job.status, 0, str(job))
        self.assertLess(time.monotonic() - begin, 5 * SLOWDOWN)

    def test_workers_get_the_limit_that_drun_was_started_with(self):
        job = self.cluster.run("h0", "bash", "-c", "ulimit -Sn 1000; exec drun -np 2 sh -c 'ulimit -Sn'")
        self.assertEqual(sorted(job.out.splitlines()), ["[0] 1000", "[1] 1000"], str(job))
