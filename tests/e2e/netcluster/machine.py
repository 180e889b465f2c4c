"""One host, from the inside: its process is forked into a new PID namespace and is PID 1 there."""
import errno
import os
import signal
import subprocess
import sys
import time
import traceback

from . import accounts, homes, kernel, network, sshd


def start_limit_s(plan):
    """The time in which sshd starts on all hosts: they share the processors."""
    return 60 + len(plan.hosts) / 4


def _private_tmpfs(path, mode):
    if os.path.isdir(path):
        kernel.mount("tmpfs", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode={mode}")


def _make_folder(path):
    """Returns False if the folder is below a home that is now read-only: then the host doesn't have it at all."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as e:
        if e.errno != errno.EROFS:
            raise
        return False
    return True


def _mount_all(plan, me, stage):
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    kernel.mount("sysfs", "/sys", "sysfs", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    # A tree may lie below a folder that is about to be covered: kept open, to be bound back later.
    trees = [(tree, os.open(tree, os.O_PATH | os.O_DIRECTORY)) for tree in plan.trees]
    homes.mount_homes(plan, me, stage)
    for path in ("/tmp", "/var/tmp", "/dev/shm"):
        _private_tmpfs(path, "1777")
    for tree, fd in trees:
        if me.bare:
            if _make_folder(tree):
                _private_tmpfs(tree, "755")
        elif not (os.path.isdir(tree) and os.path.samestat(os.stat(tree), os.fstat(fd))) and _make_folder(tree):
            kernel.mount(f"/proc/self/fd/{fd}", tree, flags=kernel.MS_BIND)
        os.close(fd)
    _private_tmpfs("/run", "755")
    accounts.bind_etc(plan, me)


def leave_terminal():
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _reap_forever():
    kernel.set_process_name("init")
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            signal.pause()


def run(plan, me, stage, links_ready, report):
    """Never returns. `links_ready` yields one byte when the links exist; `report` gets ok, or the error."""
    try:
        kernel.die_with_parent(signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # an ignored signal would stay ignored in all processes here
        os.chdir("/")
        os.umask(0o022)
        kernel.set_hostname(me.name)
        os.read(links_ready, 1)
        os.close(links_ready)
        _mount_all(plan, me, stage)
        if not (plan.containers and me.index):
            network.configure(plan, me)
        server = sshd.start(me)
        limit = time.monotonic() + start_limit_s(plan)
        pause = 0.01
        while not sshd.listens(me):
            if server.poll() is not None or time.monotonic() > limit:
                raise RuntimeError("sshd did not start: " + open(f"{sshd.RUN}/log", encoding="utf-8").read())
            time.sleep(pause)
            pause = min(2 * pause, 0.001 * max(10, len(plan.hosts)))  # many that ask often would take each other's time
        os.write(report, f"{me.name} ok\n".encode())
        os.close(report)
        leave_terminal()
        os.setsid()
        if me.init == "sleep":
            os.execvp("sleep", ["sleep", "infinity"])
        _reap_forever()
    except subprocess.CalledProcessError as error:
        os.write(report, f"{me.name} failed: {error}\n".encode())
    except BaseException:  # pylint: disable=broad-except
        os.write(report, f"{me.name} failed: {traceback.format_exc()}\n".encode())
    sys.stderr.flush()
    os._exit(1)
