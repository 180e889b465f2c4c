"""The matrix of endings: what ends (rows), the kind of worker (columns), the transport, the user.

A lane is a cluster on which one job runs at a time, so all additional processes on its hosts belong to that job.
Examines all processes in the hosts' PID namespaces, and those with the job's DRUN_JOB_ID on the whole machine.
"""
import dataclasses
import os
import re
import select
import signal
import threading
import time

from support import HERE, SLOWDOWN, Cluster

GRACE_S = 2
HEARTBEAT_TIMEOUT_S = 10
# The limits of the project: the time until an ending is noticed, and the time from then plus --grace until all is
# gone.
NOTICED_S = 0.5        # if there is a FIN or an exit
SWEPT_S = 2.0
LOST = 68

COLUMNS = ("plain", "ignores-term", "child", "setsid-child", "daemon", "script", "wrapper")
TRANSPORTS = ("local", "ssh", "openssh")
USERS = ("root", "drun-user")
WORKER = open(f"{HERE}/matrix_worker.sh", encoding="utf-8").read()
ENGINE = open(f"{HERE}/matrix_engine.sh", encoding="utf-8").read()


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    acts_on: str         # drun, agent, worker, link, host, output
    status: int          # exit status of drun
    says: str            # on stderr; {host} and {rank} are the target's
    number: int = 0      # the signal
    silent: bool = False  # no FIN, no exit: only the heartbeat detects it


def _signal_rows():
    for name, says in (("INT", "Ctrl-C"), ("TERM", "SIGTERM"), ("HUP", "SIGHUP"), ("QUIT", "SIGQUIT"), ("KILL", "")):
        number = getattr(signal, f"SIG{name}")
        yield Row(f"drun gets {name}", "drun", 128 + number, says, number)


ROWS = (
    *_signal_rows(),
    Row("drun's reader leaves", "output", 141, ""),
    Row("agent gets TERM", "agent", LOST, "{host}: .*ended from outside", signal.SIGTERM),
    Row("agent gets KILL", "agent", LOST, "{host}: (.|\n)*was killed by signal 9", signal.SIGKILL),
    Row("agent gets STOP", "agent", LOST, "{host}: (.|\n)*its guard ends it", signal.SIGSTOP, silent=True),
    Row("worker exits 3", "worker", 3, "rank {rank} on {host} .*exited with status 3"),
    Row("worker gets SEGV", "worker", 139, "rank {rank} on {host} .*SIGSEGV", signal.SIGSEGV),
    Row("worker gets KILL", "worker", 137, "rank {rank} on {host} .*SIGKILL", signal.SIGKILL),
    Row("link of the head is cut", "link", LOST, "host[12]: silent for", silent=True),
    Row("host is frozen", "host", LOST, "{host}: silent for", silent=True),
    Row("host is powered off", "host", LOST, "{host}: silent for", silent=True),
)


def applies(row, transport):
    """False for a job on this machine alone if the row needs a link or another host."""
    return transport != "local" or row.acts_on not in ("link", "host")


@dataclasses.dataclass(frozen=True)
class Process:
    host: str
    pid: int
    start: int
    comm: str
    parent: int
    inner_pid: int
    env: dict

    @property
    def id(self):
        return (self.pid, self.start)

    @property
    def rank(self):
        """The rank; -1 for a part of drun."""
        return int(self.env.get("RANK") or self.env.get("me", "-1").rpartition(".")[2])

    def __str__(self):
        return f"{self.comm} ({self.pid} on {self.host}, rank {self.rank})"


def _read(pid, host):
    """The process, or None if it is gone or a zombie."""
    try:
        stat = open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace").read()
        status = open(f"/proc/{pid}/status", encoding="utf-8", errors="replace").read()
        env = open(f"/proc/{pid}/environ", "rb").read().decode(errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    pairs = dict(item.split("=", 1) for item in env.split("\0") if "=" in item)
    inner = int(re.search(r"^NSpid:.*\t(\d+)$", status, re.MULTILINE)[1])
    comm = stat[stat.index("(") + 1:stat.rindex(")")]
    return Process(host, int(pid), int(fields[19]), comm, int(fields[1]), inner, pairs)


def processes(cluster):
    """Every living process in the PID namespaces of the hosts, except their PID 1."""
    spaces, inits = {}, set()
    for host in cluster.data["hosts"]:
        try:
            spaces[os.readlink(f"/proc/{host['pid']}/ns/pid")] = host["name"]
            inits.add(host["pid"])
        except OSError:
            pass  # powered off
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in inits:
            continue
        try:
            host = spaces.get(os.readlink(f"/proc/{entry}/ns/pid"))
        except OSError:
            continue
        process = _read(entry, host) if host else None
        if process:
            found.append(process)
    return found


def with_job_id(job_id):
    """The job's processes anywhere on this machine, in any namespace."""
    mark = f"DRUN_JOB_ID={job_id}".encode()
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and mark in open(f"/proc/{entry}/environ", "rb").read().split(b"\0"):
                found.append(_read(entry, "?"))
        except OSError:
            pass
    return [process for process in found if process]


def _cpu_pressure():
    """Total seconds in which a process on this machine waited for a CPU; 0 if the kernel doesn't tell."""
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as file:
            return int(re.search(r"some .*total=(\d+)", file.read())[1]) / 1e6
    except OSError:
        return 0.0


class Watch:
    """Records when processes end, to the millisecond, by pidfds instead of polling."""

    def __init__(self):
        self._poll = select.poll()
        self._fds = {}
        self._known = set()
        self.ended = []  # (time, process)
        self.stalled = 0.0  # delays of this process, which are not drun's
        self._pressure = []  # (time, _cpu_pressure()), every 20 ms

    def add(self, found):
        for process in found:
            if process.id in self._known:
                continue
            try:
                fd = os.pidfd_open(process.pid)
            except ProcessLookupError:
                continue
            self._known.add(process.id)
            self._fds[fd] = process
            self._poll.register(fd, select.POLLIN)

    def until_all_ended(self, deadline):
        self._pressure.append((time.monotonic(), _cpu_pressure()))
        while self._fds and time.monotonic() < deadline:
            before = time.monotonic()
            ready = self._poll.poll(20)
            now = time.monotonic()
            self._pressure.append((now, _cpu_pressure()))
            self.stalled += max(0.0, now - before - 0.05)
            for fd, _ in ready:
                self.ended.append((now, self._fds.pop(fd)))
                self._poll.unregister(fd)
                os.close(fd)

    def contended(self, begin, end):
        """Seconds between the two times in which a process waited for a CPU."""
        before = [total for at, total in self._pressure if at <= begin] or [total for _, total in self._pressure[:1]]
        until = [total for at, total in self._pressure if at >= end] or [total for _, total in self._pressure[-1:]]
        return until[0] - before[-1] if before else 0.0

    def close(self):
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()


@dataclasses.dataclass
class Result:
    row: Row
    column: str           # or "all": one job with a worker of each column
    transport: str
    user: str
    noticed: float = 0.0  # seconds after the event
    gone: float = 0.0
    problems: list = dataclasses.field(default_factory=list)
    left: dict = dataclasses.field(default_factory=dict)  # column -> its leftovers
    ended: dict = dataclasses.field(default_factory=dict)  # column -> seconds after the event
    text: str = ""
    seconds: float = 0.0  # duration of the job, including its start

    def ok(self, column):
        return column not in self.left and (not self.problems or bool(self.left))


class Lane:
    def __init__(self, transport, user):
        self.transport, self.user = transport, user
        self.target = "h0" if transport == "local" else "h2" if user == "root" else "h1"
        self.alias = {"h0": "localhost", "h1": "host1", "h2": "host2"}[self.target]
        self.count = 0
        self.cluster = None
        self.engines = []

    def up(self):
        if self.transport == "local":
            self.cluster = Cluster(1, *(["--sleep-init"] if self.user == "root" else []))
        else:
            self.cluster = Cluster(3)  # PID 1 of h2 doesn't reap
        self.engines = [self.cluster.start(host["name"], "sh", "-c", ENGINE, cwd="/")
                        for host in self.cluster.data["hosts"]]
        for host in self.cluster.data["hosts"]:
            self._wait(lambda host=host: os.path.exists(self._path(host, "/run/matrix/engine")), "the engine")

    def down(self):
        if self.cluster:
            self.cluster.down()
            for engine in self.engines:
                engine.finish()
            self.cluster = None

    @staticmethod
    def _path(host, path):
        return f"/proc/{host['pid']}/root{path}"

    @staticmethod
    def _wait(done, what, limit=30):
        end = time.monotonic() + limit * SLOWDOWN
        while not done():
            if time.monotonic() > end:
                raise AssertionError(f"waited {limit} s for {what}")
            time.sleep(0.01)

    def _hosts(self):
        return {host["name"]: host for host in self.cluster.data["hosts"]}

    def run(self, row, column):
        """Runs one job until it has ended and returns a Result. Leaves the lane clean, whatever the result."""
        result = Result(row, column, self.transport, self.user)
        if self.cluster is None:
            self.up()
        self.count += 1
        try:
            self._run(row, column, result)
        except AssertionError as error:
            result.problems.append(str(error))
        finally:
            self._clean_up(row)
        return result

    def _clean_up(self, row):
        if row.acts_on in ("link", "host"):
            self.down()  # a host is cut off or gone
            return
        for process in processes(self.cluster):
            if process.id not in self.baseline and not process.comm.startswith("sshd"):
                self._kill(process.pid, signal.SIGKILL)

    @staticmethod
    def _kill(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it has ended

    def _run(self, row, column, result):
        hosts = self._hosts()
        self.baseline = {process.id for process in processes(self.cluster)}
        per_host = len(COLUMNS) if column == "all" else 1
        first = {name: index * per_host for index, name in enumerate(hosts)}
        if self.transport == "local" and column != "all":
            per_host = 2
        cell = f"{os.getpid()}x{self.count}"
        target_rank = first[self.target]
        job = self._start(row, column, cell, per_host, target_rank)
        host_of = {rank: name for name, start in first.items() for rank in range(start, start + per_host)}
        marks = {rank: self._path(hosts[name], f"/tmp/matrix.{cell}.{rank}") for rank, name in host_of.items()}

        def ready():
            if job.front.poll() is not None:
                raise AssertionError(f"it ended before it was ready\n{job}")
            return all(os.path.exists(f"{mark}.ready") for mark in marks.values())
        try:
            self._wait(ready, "the workers")
        except AssertionError as error:
            job.front.kill()
            job.finish()
            raise AssertionError(f"{error}\n{job}") from None

        # While a worker executes its program, the kernel shows no environment of it.
        self._wait(lambda: sum("DRUN_JOB_ID" in process.env for process in self._of_job()) >= len(marks),
                   "the workers' environments")
        found = self._of_job()
        ids = {process.env["DRUN_JOB_ID"] for process in found if "DRUN_JOB_ID" in process.env}
        if len(ids) != 1:
            raise AssertionError(f"job ids {ids}\n{job}")
        job_id = ids.pop()
        tops = {rank: int(open(f"{mark}.top", encoding="ascii").read()) for rank, mark in marks.items()}
        watch = Watch()
        watch.add(found)
        event = self._act(row, cell, found, marks, tops, target_rank)
        limit = self._limit(row) + GRACE_S + SWEPT_S
        deadline = event + (limit + 5) * SLOWDOWN

        def left():
            return self._of_job(without=self.target if row.acts_on == "host" else None)

        # The watch first: a pass over /proc can take most of a second here, and ends would be seen late.
        last = [process for process in found if row.acts_on != "host" or process.host != self.target]
        while last and time.monotonic() < deadline:
            if row.acts_on == "host":  # processes of a host that is off can't be waited for
                self._until(watch, last, deadline)
            else:
                watch.until_all_ended(deadline)
            last = left()
            watch.add(last)
        last = left()
        self._judge(result, job, job_id, watch, event, last, tops, column, host_of, target_rank)
        if row.name == "host is frozen" and not result.problems:
            self._thaw(result, job_id)
        watch.close()

    @staticmethod
    def _until(watch, last, deadline):
        wanted = {process.id for process in last}
        while time.monotonic() < deadline:
            watch.until_all_ended(time.monotonic() + 0.1)
            wanted -= {process.id for _, process in watch.ended}
            if not wanted:
                return

    def _start(self, row, column, cell, per_host, target_rank):
        exits = str(target_rank) if row.name == "worker exits 3" else ""
        names = ["localhost"] if self.transport == "local" else ["localhost", "host1", "host2"]
        words = ["drun", "--grace", str(GRACE_S), "--heartbeat-timeout", str(HEARTBEAT_TIMEOUT_S), "--stdin", "none",
                 "-x", f"MATRIX_CELL={cell}", "-x", f"MATRIX_COLUMN={column}", "-x", f"MATRIX_EXITS={exits}",
                 "-x", f"MATRIX_TALKS={'yes' if row.acts_on == 'output' else ''}",
                 "-H", ",".join(f"{name}:{per_host}" for name in names)]
        if self.transport != "local":
            words += ["--transport", self.transport]
        words += ["sh", "-c", WORKER]
        if row.acts_on == "output":  # a reader that exits on request
            words = ["bash", "-c", 'go=$1; shift; "$@" | (read -r _ <$go); exit ${PIPESTATUS[0]}', "-",
                     f"/run/matrix/{cell}.go", *words]
            os.mkfifo(self._path(self._hosts()["h0"], f"/run/matrix/{cell}.go"), 0o666)
            os.chmod(self._path(self._hosts()["h0"], f"/run/matrix/{cell}.go"), 0o666)
        return self.cluster.start("h0", *words, user=self.user, cwd="/")

    def _of_job(self, without=None):
        """The hosts' processes that were not there before; sshd's sessions belong to the hosts."""
        return [process for process in processes(self.cluster)
                if process.id not in self.baseline and process.host != without and
                (not process.comm.startswith("sshd") or "DRUN_JOB_ID" in process.env)]

    @staticmethod
    def _limit(row):
        return HEARTBEAT_TIMEOUT_S if row.silent else NOTICED_S

    @staticmethod
    def _poke(path):
        """Writes a line to a fifo that has, or will soon have, a reader."""
        fd = os.open(path, os.O_RDWR)
        os.write(fd, b"\n")
        return fd

    def _act(self, row, cell, found, marks, tops, target_rank):
        """Executes the row's event. Returns its time."""
        on_target = [process for process in found if process.host == self.target]
        before = time.monotonic()
        if row.acts_on == "drun":
            os.kill(next(p.pid for p in found if p.host == "h0" and p.comm == "drun"), row.number)
        elif row.acts_on == "agent":
            os.kill(next(p.pid for p in on_target if p.comm == "drun-agent"), row.number)
        elif row.acts_on == "worker" and row.number:
            os.kill(next(p.pid for p in on_target if p.inner_pid == tops[target_rank]), row.number)
        elif row.acts_on == "worker":
            fd = self._poke(f"{marks[target_rank]}.go")
            threading.Timer(5, os.close, [fd]).start()  # closing the last end would drop the byte
        elif row.acts_on == "output":
            fd = self._poke(self._path(self._hosts()["h0"], f"/run/matrix/{cell}.go"))
            threading.Timer(5, os.close, [fd]).start()
        elif row.acts_on == "link":
            self.cluster.verb("cut", "--silent", "h0")
            return time.monotonic()
        elif row.name == "host is frozen":
            for process in processes(self.cluster):
                if process.host == self.target:
                    self._kill(process.pid, signal.SIGSTOP)
            return time.monotonic()
        else:
            # Without the cut, the kernel would still send FINs while it tears down the namespace.
            self.cluster.verb("cut", "--silent", self.target)
            os.kill(self._hosts()[self.target]["pid"], signal.SIGKILL)
            return time.monotonic()
        return before

    def _thaw(self, result, job_id):
        """Thaws a frozen host, which must find that its job is over."""
        for process in processes(self.cluster):
            if process.host == self.target:
                self._kill(process.pid, signal.SIGCONT)
        end = time.monotonic() + (HEARTBEAT_TIMEOUT_S + GRACE_S + SWEPT_S) * SLOWDOWN
        while self._of_job() and time.monotonic() < end:
            time.sleep(0.1)
        left = self._of_job() + with_job_id(job_id)
        if left:
            result.problems.append(f"left after the host was thawed: {', '.join(map(str, left))}")

    def _judge(self, result, job, job_id, watch, event, last, tops, column, host_of, target_rank):
        row = result.row
        last_ids = {process.id for process in last}
        off = self.target if row.acts_on == "host" else None
        last += [process for process in with_job_id(job_id)
                 if process.id not in last_ids and not (off and self._on(process, off))]
        limit = (self._limit(row) + GRACE_S + SWEPT_S) * SLOWDOWN + watch.stalled
        for process in last:
            result.left[self._column(process.rank, column)] = str(process)
        if last:
            result.problems.append(f"left: {', '.join(map(str, last))}")
        ended = [(at - event, process) for at, process in watch.ended if at >= event and process.host != off]
        if ended:
            result.gone = max(at for at, _ in ended)
            for at, process in ended:
                name = self._column(process.rank, column)
                result.ended[name] = max(at, result.ended.get(name, 0))
        if result.gone > limit:
            late = [f"{process} after {at:.2f} s" for at, process in ended if at > limit]
            result.problems.append(f"late, the limit is {limit:.2f} s: {', '.join(late)}")
        # A worker that obeys TERM ends as soon as its host has noticed.
        obedient = {(host_of[rank], top) for rank, top in tops.items()
                    if self._column(rank, column) != "ignores-term" and
                    not (row.acts_on == "worker" and rank == target_rank)}
        noticed = [(at, process) for at, process in ended if (process.host, process.inner_pid) in obedient]
        if noticed:
            result.noticed, slowest = max(noticed, key=lambda pair: pair[0])
            limit = (self._limit(row) + (NOTICED_S if row.silent else 0)) * SLOWDOWN + watch.stalled  # TERM takes time
            # On a contended machine allows as much time as was lost, at most NOTICED_S.
            limit += min(watch.contended(event, event + result.noticed), NOTICED_S)
            if result.noticed > limit:
                result.problems.append(f"{slowest.host} noticed it after {result.noticed:.2f} s, the limit is {limit:.2f} s")
        job.finish(5 * SLOWDOWN)
        result.text = f"--- stdout\n{job.out[-2000:]}--- stderr\n{job.err[-4000:]}"
        if job.status != row.status:
            result.problems.append(f"status {job.status} instead of {row.status}")
        says = row.says.format(host=self.alias, rank=target_rank)
        if not re.search(says, job.err):
            result.problems.append(f"its words are not like {says!r}")

    def _on(self, process, name):
        try:
            pid = self._hosts()[name]["pid"]
            return os.readlink(f"/proc/{process.pid}/ns/pid") == os.readlink(f"/proc/{pid}/ns/pid")
        except OSError:
            return True  # its namespace is gone

    @staticmethod
    def _column(rank, column):
        if column != "all":
            return column
        return COLUMNS[rank % len(COLUMNS)] if rank >= 0 else "drun itself"


def cells(transport, user, rows):
    """(transport, user, row, column) of each job, those with the longest waits first."""
    for row in sorted(rows, key=lambda row: not row.silent):
        if not applies(row, transport):
            continue
        for column in COLUMNS if row.acts_on == "worker" else ("all",):
            yield transport, user, row, column


def run_cells(todo, n_lanes, done):
    """Runs the cells on several clusters at once. A lane keeps its transport and user while there are cells for it."""
    todo = list(todo)
    lock = threading.Lock()

    def take(lane):
        with lock:
            for index, (transport, user, _, _) in enumerate(todo):
                if lane is None or (lane.transport, lane.user) == (transport, user):
                    return todo.pop(index)
            return None

    def work():
        lane = None
        try:
            while True:
                cell = take(lane)
                if cell is None and lane is not None:
                    lane.down()
                    lane = None
                    cell = take(None)
                if cell is None:
                    return
                transport, user, row, column = cell
                lane = lane or Lane(transport, user)
                began = time.monotonic()
                try:
                    result = lane.run(row, column)
                except Exception as error:  # pylint: disable=broad-except
                    result = Result(row, column, transport, user, problems=[repr(error)])
                result.seconds = time.monotonic() - began
                with lock:
                    done(result)
        finally:
            if lane:
                lane.down()

    workers = [threading.Thread(target=work) for _ in range(n_lanes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def table(results):
    """Lines of a table: seconds from the event to the last end, for the slower user."""
    by_cell = {}
    for result in results:
        for column in COLUMNS if result.column == "all" else (result.column,):
            by_cell.setdefault((result.transport, result.row.name, column), []).append(result)

    def cell_text(found, column):
        bad = [result.user for result in found if not result.ok(column)]
        return f"**{', '.join(bad)}: left**" if bad else f"{max(result.ended.get(column, 0) for result in found):.1f}"

    yield "| transport | event | noticed | " + " | ".join(COLUMNS) + " | all |"
    yield "|" + "---|" * (4 + len(COLUMNS))
    for transport in TRANSPORTS:
        for row in ROWS:
            found = [by_cell.get((transport, row.name, column), []) for column in COLUMNS]
            if all(found):
                yield (f"| {transport} | {row.name} | {max(r.noticed for some in found for r in some):.2f} | " +
                       " | ".join(cell_text(some, column) for some, column in zip(found, COLUMNS)) +
                       f" | {max(r.gone for some in found for r in some):.1f} |")
