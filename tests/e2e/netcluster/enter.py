"""Runs commands on a host, or in the switch, from outside."""
import os
import signal
import sys

from . import accounts, kernel

NAMESPACES = [("ipc", kernel.CLONE_NEWIPC), ("uts", kernel.CLONE_NEWUTS), ("net", kernel.CLONE_NEWNET),
              ("pid", kernel.CLONE_NEWPID), ("mnt", kernel.CLONE_NEWNS)]
NOT_INHERITED = ("SSH_", "XDG_", "DBUS_")
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def _enter(pid, names):
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
    fds = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), kind) for name, kind in NAMESPACES if name in names]
    for fd, kind in fds:
        kernel.setns(fd, kind)
        os.close(fd)
    if "mnt" in names:  # setns leads to the namespace's root, which is not the host's if the cluster is in a chroot
        os.fchdir(root)
        os.chroot(".")
    os.close(root)


def _become(user):
    if user == "root":
        return "/root"
    os.setgroups([accounts.USER_ID])
    os.setgid(accounts.USER_ID)
    os.setuid(accounts.USER_ID)
    return accounts.USER_HOME


def _environment(user, home, extra):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(NOT_INHERITED) and name not in ("TMPDIR", "HOSTNAME", "MAIL", "OLDPWD", "PWD")}
    env.update(HOME=home, USER=user, LOGNAME=user, SHELL="/bin/bash")
    for item in extra:
        name, _, value = item.partition("=")
        env[name] = value
    return env


def execute(pid, command, user="root", cwd=None, env=()):
    """Runs the command on the host and returns its status, 128+n for a signal. It dies with this process."""
    here = os.getcwd()
    _enter(pid, [name for name, _ in NAMESPACES])
    child = os.fork()
    if child == 0:
        try:
            home = _become(user)
            kernel.die_with_parent(signal.SIGKILL)  # after the change of user, which clears it
            for folder in (cwd or here, home, "/"):
                try:
                    os.chdir(folder)
                    break
                except OSError:
                    if folder == cwd:
                        raise
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)  # Python ignores them, and the command would inherit that
            environment = _environment(user, home, env)
            os.execvpe(command[0], command, environment)
        except OSError as error:
            print(f"cluster: {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127)
    # On a terminal the child is in our process group and gets Ctrl-C itself.
    on_terminal = os.isatty(0)
    for number in FORWARDED:
        if on_terminal and number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        else:
            signal.signal(number, lambda got, _: os.kill(child, got))
    while True:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


def in_namespaces(pid, names, function, *arguments):
    """Calls the function in a child that is in these namespaces of process `pid`; raises RuntimeError if it fails."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _enter(pid, names)
            function(*arguments)
            status = 0
        except Exception as error:  # pylint: disable=broad-except
            print(f"cluster: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise RuntimeError("that failed")
