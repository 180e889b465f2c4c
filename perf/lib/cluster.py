"""A cluster of namespaces (tests/e2e/cluster) that one measurement uses, and commands on its head."""
import contextlib
import dataclasses
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# "1": the kernel divides the processors between sessions before it divides them between processes. Each sshd and each
# worker has a session of its own, and all ssh clients of a launcher are in one: on the hosts' own machines they would not
# compete, here they would come short.
AUTOGROUP = "/proc/sys/kernel/sched_autogroup_enabled"
CLUSTER = os.path.join(ROOT, "tests", "e2e", "cluster")
MEET = """
import json, socket, sys, time
for address in json.loads(sys.argv[1]):
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(tuple(address), 5).close()
            break
        except OSError:
            if time.monotonic() > end:
                raise
"""
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from netcluster import state  # noqa: E402


def setting(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def change_setting(path, value):
    """Writes to a file of /proc/sys. The kernel ignores a write that is not at the beginning of the file, such as one after a
    read, so the value is read again."""
    with open(path, "w", encoding="ascii") as file:
        file.write(value)
    if setting(path) != value:
        raise OSError(f"{path} did not become {value}")


class Short(Exception):
    """A run that gives no figure: output is missing, a status is not 0, or it took too long. The text says which."""


@dataclasses.dataclass
class Done:
    seconds: float  # in the host, without the time to enter it
    processor: float  # seconds of the command and its children on its own host
    status: int
    stdout: str
    stderr: str


class Cluster:
    """A context manager: up when entered, down when left. The head is h0, on which the launchers run, and has no process of
    a job; the hosts of jobs are h1 to h(n_hosts). All know each other's keys, so that no peer asks."""

    def __init__(self, n_hosts):
        self.n_hosts = n_hosts
        self.name = f"bench-{os.getpid()}"
        self._autogroup = None

    def __enter__(self):
        subprocess.run([CLUSTER, "up", str(self.n_hosts + 1), "--quiet", "--name", self.name, "--owner-pid", str(os.getpid())],
                       check=True)
        self._exchange_keys()
        self._meet()
        if os.path.exists(AUTOGROUP):
            self._autogroup = setting(AUTOGROUP)
            change_setting(AUTOGROUP, "0")
        return self

    def __exit__(self, *_):
        if self._autogroup:
            change_setting(AUTOGROUP, self._autogroup)
        subprocess.run([CLUSTER, "down", "--quiet", "--name", self.name], check=False)

    def hosts(self):
        """The hosts of jobs, by their names in ~/.ssh/config."""
        return [f"host{i + 1}" for i in range(self.n_hosts)]

    def names(self):
        """What they answer to `hostname`."""
        return [f"h{i + 1}" for i in range(self.n_hosts)]

    def _addresses(self):
        """(address, port) of each."""
        return [(host["address"], host["ports"][0]) for host in state.load(self.name)["hosts"][1:]]

    def logins(self):
        """user@address:port of each."""
        return [f"root@{address}:{port}" for address, port in self._addresses()]

    def _files(self, path):
        return [f"/proc/{host['pid']}/root{path}" for host in state.load(self.name)["hosts"]]

    def _exchange_keys(self):
        known = ""
        for host, path in zip(state.load(self.name)["hosts"], self._files("/run/sshd/host_key.pub")):
            with open(path, encoding="ascii") as file:
                known += f"[{host['address']}]:{host['ports'][0]} {' '.join(file.read().split()[:2])}\n"
        for path in self._files("/root/.ssh/known_hosts"):
            with open(path, "w", encoding="ascii") as file:
                file.write(known)

    def _meet(self):
        """The head connects to each host, one by one. All at once would be too many broadcasts for a thousand hosts on one
        switch, and the first measurement would have hosts without a route."""
        subprocess.run(self.command("/usr/bin/python3", "-c", MEET, json.dumps(self._addresses())), check=True, timeout=300)

    def remove_everywhere(self, path):
        """Removes a folder on every host. It must be in a place that each host has of its own, such as /root."""
        for one in self._files(path):
            shutil.rmtree(one, ignore_errors=True)

    def limit_link(self, host, rate):
        subprocess.run([CLUSTER, "slow", "--name", self.name, host, rate], check=True)

    def command(self, *words, host="h0"):
        return [CLUSTER, "exec", "--name", self.name, "--cwd", "/", host, "--", *words]

    @contextlib.contextmanager
    def limit(self, limit_s):
        """Gives an event, which is set if the block takes longer. All that runs on the hosts is ended then, so that its pipes
        close, and after the block the hosts are new ones."""
        late = threading.Event()

        def end():
            late.set()
            self.__exit__()

        timer = threading.Timer(limit_s, end)
        timer.start()
        try:
            yield late
        finally:
            timer.cancel()
            timer.join()
        if late.is_set():
            self.__enter__()

    def run(self, line, limit_s=120, good=(0,)):
        """Runs a line of bash on the head. Raises Short if its status is not in `good`, or if it takes too long: then
        the hosts are new ones, because processes may be left on the old ones."""
        # All in a process group of its own: mpiexec.hydra signals its whole group when it fails.
        script = f"TIMEFORMAT=$'\\n%R %U %S'; time setsid -w bash -c {shlex.quote(line)}"
        job = subprocess.Popen(self.command("bash", "-c", script), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace")
        with self.limit(limit_s) as late:
            stdout, stderr = job.communicate()
        if late.is_set():
            raise Short(f"did not end within {limit_s:.0f} s")
        stderr, _, times = stderr.rstrip("\n").rpartition("\n")
        if job.returncode not in good:
            raise Short(f"status {job.returncode}{first_line(stderr)}")
        real, user, system = (float(word) for word in times.split())
        return Done(real, user + system, job.returncode, stdout, stderr)


def first_line(text):
    """The first line with words, to add to a message."""
    lines = [line.strip() for line in text.splitlines() if any(letter.isalpha() for letter in line)]
    return f": {lines[0][:160]}" if lines else ""
