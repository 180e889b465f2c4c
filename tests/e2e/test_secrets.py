"""Secrets and jobs are safe from other users of the hosts and strangers on the network."""
import re
import subprocess

from support import BIN, ClusterTest

SECRET = "tomato-4711-soup"
STRANGER = """
import os, socket, sys
host, port = sys.argv[1], int(sys.argv[2])
seen = b""
for attempt in (b"", b"GET / HTTP/1.0\\r\\n\\r\\n", os.urandom(65536), b"\\xff" * 64, b"\\0" * 64):
    s = socket.create_connection((host, port), 5)
    s.settimeout(1)
    try:
        s.sendall(attempt)
        while True:
            got = s.recv(65536)
            if not got:
                break
            seen += got
    except OSError:
        pass
    s.close()
idle = [socket.create_connection((host, port), 5) for _ in range(100)]
sys.stdout.buffer.write(seen + b"\\nholds %d\\n" % len(idle))
sys.stdout.flush()
sys.stdin.read()  # holds the connections until the test closes this pipe
"""


class Secrets(ClusterTest):
    hosts = 3

    def test_ps_by_any_user_shows_neither_key_nor_environment(self):
        job = self.start_drun("-x", "SECRET", "-H", "localhost:1,host1:1,host2:1", "sh", "-c",
                              "echo ready; sleep 1000", env={"SECRET": SECRET})
        job.wait_for(r"\] ready", 3)
        for host in ("h0", "h1", "h2"):
            listing = self.cluster.shell(host, "ps auxwwe; ps -eLo args; cat /proc/[0-9]*/cmdline | tr '\\0' ' '",
                                         user="drun-user")
            self.assertIn("sleep 1000", listing)
            self.assertNotIn(SECRET, listing)
            without_agent = re.sub(r"agent-[0-9a-f]+", "agent", listing)
            self.assertIsNone(re.search(r"\b[0-9a-fA-F]{64}\b", without_agent), without_agent)
            self.assertNotIn("SECRET", re.sub(r"-x SECRET", "", listing))

    def test_another_user_can_read_no_environment_and_no_socket(self):
        job = self.start_drun("-x", "SECRET", "-H", "localhost:1,host1:1,host2:1", "sh", "-c",
                              "echo ready $DRUN_AGENT; sleep 1000", env={"SECRET": SECRET})
        job.wait_for(r"\] ready", 3)
        sockets = dict(re.findall(r"\[(\d)\] ready (\S+)", job.out))
        for rank, host in enumerate(("h0", "h1", "h2")):
            got = self.cluster.run(host, "sh", "-c", "cat /proc/[0-9]*/environ | tr '\\0' '\\n'", user="drun-user")
            self.assertNotIn(SECRET, got.out)
            path = sockets[str(rank)]
            self.assertTrue(path.startswith("/"), sockets)
            self.assertEqual(self.cluster.shell(host, f"stat -c %a $(dirname {path})").strip(), "700")
            self.assertEqual(self.cluster.run(host, "test", "-S", path).status, 0)
            self.assertNotEqual(self.cluster.run(host, "ls", path, user="drun-user").status, 0)

    def test_a_stranger_learns_nothing_and_disturbs_nothing(self):
        self.cluster.write("h1", "/tmp/stranger.py", STRANGER)
        # Afterwards the workers join the rendezvous and reduce, while the stranger holds its connections.
        go = f"while ! test -e /tmp/go; do sleep 0.1; done; exec {BIN}/hello"
        job = self.start_drun("-x", "SECRET", "-H", "localhost:1,host1:1,host2:1", "sh", "-c",
                              f"echo job $DRUN_JOB_ID; echo ready; {go}", env={"SECRET": SECRET})
        job.wait_for(r"\] ready", 3)
        job_id = re.search(r"job (\S+)", job.out)[1]
        listening = self.cluster.shell("h0", "ss -Hltnp")
        places = re.findall(r"(\S+):(\d+)\s+\S+\s+users:\(\(\"drun\"", listening)
        self.assertTrue(places, listening)
        strangers = []
        for address, port in places:
            self.assertEqual(address, "10.77.0.1", listening)
            stranger = self.cluster.start("h1", "python3", "/tmp/stranger.py", "10.77.0.1", port, stdin=subprocess.PIPE)
            self.addCleanup(self._end, stranger)
            stranger.wait_for(r"^holds 100$")
            strangers.append(stranger)
        for host in ("h0", "h1", "h2"):
            self.cluster.shell(host, "touch /tmp/go")
        self.assertEqual(job.finish(), 0, str(job))
        self.assertEqual(len(re.findall(r"^\[\d\] .*of 3", job.out, re.MULTILINE)), 3, str(job))
        for stranger in strangers:
            self.assertIsNone(stranger.front.poll(), str(stranger))
            stranger.front.stdin.close()
            self.assertEqual(stranger.finish(), 0, str(stranger))
            for word in (job_id, SECRET, "10.77"):
                self.assertNotIn(word, stranger.out)
        self.cluster.assert_clean()
