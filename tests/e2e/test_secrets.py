"""What other users of the hosts, and strangers on the network, can see and do."""
import re

from support import ClusterTest

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
idle = []
for _ in range(100):
    try:
        idle.append(socket.create_connection((host, port), 5))
    except OSError:
        break
sys.stdout.buffer.write(seen)
sys.stdout.flush()
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
            if path.startswith("/"):
                self.assertEqual(self.cluster.shell(host, f"stat -c %a $(dirname {path})").strip(), "700")
                self.assertNotEqual(self.cluster.run(host, "ls", path, user="drun-user").status, 0)

    def test_a_stranger_learns_nothing_and_disturbs_nothing(self):
        self.cluster.write("h1", "/tmp/stranger.py", STRANGER)
        go = "while ! test -e /tmp/go; do sleep 0.1; done"
        job = self.start_drun("-x", "SECRET", "-H", "localhost:1,host1:1,host2:1", "sh", "-c",
                              f"echo job $DRUN_JOB_ID; echo ready; {go}", env={"SECRET": SECRET})
        job.wait_for(r"\] ready", 3)
        job_id = re.search(r"job (\S+)", job.out)[1]
        listening = self.cluster.shell("h0", "ss -Hltnp")
        places = re.findall(r"(\S+):(\d+)\s+\S+\s+users:\(\(\"drun\"", listening)
        self.assertTrue(places, listening)
        for address, port in places:
            self.assertEqual(address, "10.77.0.1", listening)
            got = self.cluster.run("h1", "python3", "/tmp/stranger.py", "10.77.0.1", port)
            self.assertEqual(got.status, 0, str(got))
            self.assertNotIn(job_id, got.out)
            self.assertNotIn(SECRET, got.out)
            self.assertNotIn("10.77", got.out)
        for host in ("h0", "h1", "h2"):
            self.cluster.shell(host, "touch /tmp/go")
        self.assertEqual(job.finish(), 0, str(job))
        self.cluster.assert_clean()
