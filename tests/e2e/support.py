"""Shared parts of the end-to-end tests: a cluster per test class, drun on one of its hosts, and checks for
leftovers."""
import atexit
import itertools
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from netcluster import commands, state

# A signal that was ignored when drun started stays ignored. Undoes this for tests that run under nohup, or in the
# background of a script.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = os.path.dirname(os.path.abspath(__file__))
CLUSTER = f"{HERE}/cluster"


def reachable_copy(folder):
    """Copies the binaries to a folder that every user can reach: a checkout may lie below /root, which the hosts
    replace.

    Hard links if possible, because each class makes its own copy."""
    if not folder or not os.path.exists(os.path.join(folder, "drun")):
        return folder
    copy = tempfile.mkdtemp(prefix="drun-e2e-", dir="/var/cache")
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    os.chmod(copy, 0o755)
    for name in os.listdir(folder):
        if os.path.isfile(os.path.join(folder, name)):
            try:
                os.link(os.path.join(folder, name), os.path.join(copy, name))
            except OSError:  # another file system
                shutil.copy2(os.path.join(folder, name), copy)
    return copy


BIN = reachable_copy(os.environ.get("DRUN_BIN_DIR", ""))
# Factor for the limits of assertions with sanitizers. Never applied to a timeout that is passed to drun as the thing
# under test: that would only take longer.
SLOWDOWN = float(os.environ.get("DRUN_TEST_SLOWDOWN", "1"))
LIMIT_S = 60 * SLOWDOWN
CLEAN_LIMIT_S = 10 * SLOWDOWN


class Job:
    """A process on a host, seen from here. `front` is the `enter` process that represents it."""

    def __init__(self, argv, stdin, env):
        self.argv = argv
        self.front = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        self._lines = queue.Queue()
        self._read_lines = {"out": [], "err": []}  # lists, because a single text would be copied with every line
        self._readers = [threading.Thread(target=self._read, args=(name, pipe), daemon=True)
                         for name, pipe in (("out", self.front.stdout), ("err", self.front.stderr))]
        for reader in self._readers:
            reader.start()

    def _read(self, name, pipe):
        for raw in pipe:
            line = raw.decode(errors="replace")
            self._read_lines[name].append(line)
            self._lines.put(line)
        self._lines.put(None)

    @property
    def out(self):
        return "".join(self._read_lines["out"])

    @property
    def err(self):
        return "".join(self._read_lines["err"])

    def wait_for(self, pattern, count=1, limit=LIMIT_S):
        """Waits until `count` lines of either stream have matched."""
        end = time.monotonic() + limit
        closed = 0
        while count:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no line like {pattern!r} within {limit:.0f} s\n{self}") from None
            if line is None:
                closed += 1
                if closed == 2:
                    raise AssertionError(f"it ended without a line like {pattern!r}\n{self}")
            elif re.search(pattern, line):
                count -= 1

    def signal(self, number):
        self.front.send_signal(number)

    def finish(self, limit=LIMIT_S):
        """Waits for the end. Returns the exit status."""
        try:
            self.front.wait(limit)
        except subprocess.TimeoutExpired:
            self.front.kill()
            self.front.wait()
            raise AssertionError(f"still running after {limit:.0f} s\n{self}") from None
        for reader, pipe in zip(self._readers, (self.front.stdout, self.front.stderr)):
            reader.join(5)
            if not reader.is_alive():  # else a leftover process still holds the other end
                pipe.close()
        return self.front.returncode

    @property
    def status(self):
        return self.front.returncode

    def __str__(self):
        return (f"$ {' '.join(self.argv)}\nstatus {self.front.poll()}\n--- stdout\n{self.out[-6000:]}"
                f"--- stderr\n{self.err[-6000:]}")


class Cluster:
    counter = itertools.count(1)  # atomic: some tests start clusters from several threads

    def __init__(self, count, *options):
        self.name = f"e2e-{os.getpid()}-{next(Cluster.counter)}"
        extra = ["--tree", BIN] if BIN else []
        subprocess.run([CLUSTER, "up", str(count), "--quiet", "--name", self.name, "--owner-pid", str(os.getpid()),
                        *extra, *options], check=True, timeout=120)
        self.data = state.load(self.name)

    def down(self):
        subprocess.run([CLUSTER, "down", "--quiet", "--name", self.name], check=True, timeout=60)

    def verb(self, verb, *arguments):
        subprocess.run([CLUSTER, verb, "--name", self.name, *arguments], check=True, timeout=60)

    def start(self, host, *command, user="root", cwd=None, env=None, stdin=subprocess.DEVNULL):
        cwd = cwd or ("/root" if user == "root" else "/")
        environment = {name: value for name, value in os.environ.items()
                       if name in ("PATH", "LANG", "TERM") or name.endswith("SAN_OPTIONS")}
        environment["PATH"] = f"{BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        environment.update(env or {})
        return Job(self.entering(host, user, cwd, *command), stdin, environment)

    def entering(self, host, user, cwd, *command):
        """The command line that runs the command on the host, like `cluster exec`."""
        pid = next(one["pid"] for one in self.data["hosts"] if one["name"] == host)
        return [f"{HERE}/enter", str(pid), user, cwd, *command]

    def run(self, host, *command, stdin_text=None, limit=LIMIT_S, **options):
        """Runs the command to its end; the Job has status, out and err."""
        job = self.start(host, *command, stdin=subprocess.DEVNULL if stdin_text is None else subprocess.PIPE, **options)
        if stdin_text is not None:
            job.front.stdin.write(stdin_text.encode())
            job.front.stdin.close()
        job.finish(limit)
        return job

    def shell(self, host, script, **options):
        """Runs a script, which must succeed; returns its output."""
        job = self.run(host, "sh", "-c", script, **options)
        if job.status != 0:
            raise AssertionError(str(job))
        return job.out

    def filter(self, host, **chains):
        """Sets rules of the host's packet filter: `input=[rule, ...], output=[...]`; unfilter() removes them."""
        text = "table inet test {\n"
        for hook, rules in chains.items():
            lines = "\n".join([f"type filter hook {hook} priority 0;", *rules])
            text += f"chain {hook} {{\n{lines}\n}}\n"
        job = self.run(host, "nft", "-f", "-", stdin_text=text + "}\n")
        if job.status != 0:
            raise AssertionError(str(job))

    def unfilter(self, host):
        self.shell(host, "nft delete table inet test")

    def write(self, host, path, text, mode=0o644):
        subprocess.run([CLUSTER, "put", "--name", self.name, host, "-", path], input=text.encode(), check=True)
        self.shell(host, f"chmod {mode:o} '{path}'")

    def put(self, host, path):
        """Copies a file of this machine to the same path on a bare host."""
        self.verb("put", host, path, path)

    def processes(self):
        """host -> [(pid here, name, command line)], without zombies and the host's own processes."""
        found = {host["name"]: [] for host in self.data["hosts"]}
        host_of, inits = {}, set()
        for host in self.data["hosts"]:
            host_of[os.readlink(f"/proc/{host['pid']}/ns/pid")] = host["name"]
            inits.add(host["pid"])
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) in inits:
                continue
            try:
                name = host_of.get(os.readlink(f"/proc/{entry}/ns/pid"))
                command = open(f"/proc/{entry}/cmdline", "rb").read().replace(b"\0", b" ").decode(errors="replace")
                comm = open(f"/proc/{entry}/comm", encoding="utf-8", errors="replace").read().strip()
            except OSError:
                continue  # it has ended
            listener = re.match(r"(sshd: )?/usr/sbin/sshd -D", command)
            if name and command and not listener and state.started(entry) is not None:
                found[name].append((int(entry), comm, command.strip()))
        return found

    def find(self, host, pattern, limit=LIMIT_S):
        """The pid here of the first process of the host whose name or command line matches; waits for one."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            for pid, comm, command in sorted(self.processes()[host]):
                if re.search(pattern, comm) or re.search(pattern, command):
                    return pid
            time.sleep(0.05)
        raise AssertionError(f"no process like {pattern!r} on {host}: {self.processes()[host]}")

    def find_all(self, host, pattern):
        """The pids here of the host's processes whose name or command line matches now."""
        return [pid for pid, comm, command in sorted(self.processes()[host])
                if re.search(pattern, comm) or re.search(pattern, command)]

    def assert_clean(self, limit=CLEAN_LIMIT_S):
        """Asserts that within the limit no process except the hosts' own is left on any host."""
        end = time.monotonic() + limit
        while True:
            left = {host: rest for host, rest in self.processes().items() if rest}
            if not left:
                return
            if time.monotonic() > end:
                raise AssertionError(f"left after {limit:.0f} s: {left}")
            time.sleep(0.05)

    def pids(self):
        """The pids here of all processes in processes()."""
        return {pid for rest in self.processes().values() for pid, _, _ in rest}


# Acts like a shell with job control: a process group of its own in the shell's session, so that it can be stopped.
SHELL = """
import os, sys
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.execvp(sys.argv[1], sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


class ClusterTest(unittest.TestCase):
    """One cluster per class. Each test must leave no process of its own on any host."""

    hosts = 2
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cls.hosts, *cls.options)
        cls.addClassCleanup(cls.cluster.down)

    def run(self, result):
        """Kills the processes that a failed test leaves, so that later tests don't fail: find("sleep") would find its
        sleep."""
        failed, before = len(result.failures) + len(result.errors), self.cluster.pids()
        super().run(result)
        if len(result.failures) + len(result.errors) > failed:
            for pid in self.cluster.pids() - before:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        return result

    def drun(self, *arguments, host="h0", **options):
        return self.cluster.run(host, "drun", *arguments, **options)

    def start_drun(self, *arguments, host="h0", **options):
        job = self.cluster.start(host, "drun", *arguments, **options)
        self.addCleanup(self._end, job)
        return job

    def start_under_a_shell(self, *arguments, host="h0"):
        """Starts drun as a job of a shell, so that it can be stopped."""
        job = self.cluster.start(host, "python3", "-c", SHELL, "drun", *arguments)
        self.addCleanup(self._end, job)
        return job

    @staticmethod
    def _end(job):
        if job.front.poll() is None:
            job.front.kill()
            job.finish()

    def good(self, *arguments, **options):
        """A run that must exit with 0."""
        job = self.drun(*arguments, **options)
        self.assertEqual(job.status, 0, str(job))
        return job

    def assert_trained(self, job, ranks):
        """Asserts that every rank has the same model, and that it is a good one."""
        self.assertEqual(job.status, 0, str(job))
        accuracy = re.findall(r"test accuracy ([0-9.]+)", job.out)
        self.assertTrue(accuracy, str(job))
        self.assertGreater(float(accuracy[-1]), 95.0, str(job))
        checksums = re.findall(rf"checksum ([0-9a-f]+), the same on {ranks} of {ranks} ranks", job.out)
        self.assertEqual(len(checksums), 1, str(job))
        return checksums[0]


def environments(text):
    """rank -> its environment, from the tagged (or, for one rank, bare) output of `env`."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"(?:\[(\d+)\] )?([A-Za-z_]\w*)=(.*)$", line)
        if match:
            found.setdefault(int(match[1] or 0), {})[match[2]] = match[3]
    return found


def untagged(text):
    """(rank, line) pairs of tagged output."""
    return [(int(rank), line) for rank, line in re.findall(r"^\[(\d+)\] (.*)$", text, re.MULTILINE)]


def why_not_here():
    """The reason why the tests can't run here, in words; None if they can."""
    reason = commands.missing()
    if reason:
        return reason
    if not BIN or not os.access(f"{BIN}/drun", os.X_OK):
        return f"no drun in DRUN_BIN_DIR={BIN!r}"
    return None
