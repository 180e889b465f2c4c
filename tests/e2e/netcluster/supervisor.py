"""The process that holds a cluster: PID 1 of a PID namespace around all hosts.

When it ends, in any way, the kernel ends every process of every host. With the last of them the network and mount
namespaces go, and with these all links and mounts. Only one folder in /run needs to be removed.
"""
import json
import os
import select
import signal
import sys
import time

from . import homes, kernel, machine, network, sshd, state

SHOWN_PROBLEMS = 3


def _fork_host(plan, me, stage, shared_net):
    """Returns (pid as the supervisor sees it, write end of links_ready, read end of report)."""
    ready_read, ready_write = os.pipe()
    report_read, report_write = os.pipe()
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)
    own_net = os.open("/proc/self/ns/net", os.O_RDONLY)
    kernel.unshare(kernel.CLONE_NEWPID)
    if shared_net is not None:
        kernel.setns(shared_net, kernel.CLONE_NEWNET)
    pid = os.fork()
    if pid == 0:
        keep = {0, 1, 2, ready_read, report_write}
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd not in keep:  # above all the supervisor's report: `up` waits for its end
                try:
                    os.close(fd)
                except OSError:
                    pass  # the descriptor that listed them
        kinds = kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC
        kernel.unshare(kinds | (kernel.CLONE_NEWNET if shared_net is None else 0))
        os.write(report_write, b"up\n")
        machine.run(plan, me, stage, ready_read, report_write)
    kernel.setns(own_pids, kernel.CLONE_NEWPID)  # else a second unshare of CLONE_NEWPID is refused
    kernel.setns(own_net, kernel.CLONE_NEWNET)
    for fd in (own_pids, own_net, ready_read, report_write):
        os.close(fd)
    return pid, ready_write, report_read


def _start_hosts(plan, stage):
    pids, ready, reports = [], [], []
    shared_net = None
    for me in plan.hosts:
        pid, ready_write, report = _fork_host(plan, me, stage, shared_net)
        pids.append(pid)
        ready.append(ready_write)
        reports.append(os.fdopen(report, "r", encoding="utf-8"))
        reports[-1].readline()  # it is in its namespaces
        if plan.containers and shared_net is None:
            shared_net = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    network.connect(list(zip(plan.hosts, pids))[: 1 if plan.containers else None])
    for fd in ready:
        os.write(fd, b"1")
        os.close(fd)
    problems = []
    for report in reports:
        text = report.read()
        if not text.endswith(" ok\n"):
            problems.append(text or "a host ended without a word")
    return pids, problems


def _become_child(signal_fd_write):
    signal.signal(signal.SIGTERM, lambda *_: os.write(signal_fd_write, b"t"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)


def _hold(owner, stop_read):
    """Returns when told to stop, or when the owner is gone."""
    poll = select.poll()
    poll.register(stop_read, select.POLLIN)
    if owner is not None:
        poll.register(owner, select.POLLIN)
    while not poll.poll(1000):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return  # no host is left


def _supervise(plan, folder, owner, report):
    kernel.die_with_parent(signal.SIGKILL)  # until the cluster is up, Ctrl-C of `up` ends it
    os.setsid()
    stop_read, stop_write = os.pipe()
    _become_child(stop_write)
    kernel.set_process_name("drun-cluster")
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc")
    stage = f"{folder}/stage"
    kernel.mount("tmpfs", stage, "tmpfs", data="mode=700")
    os.makedirs(f"{stage}/keys")
    sshd.make_key(f"{stage}/keys/id_ed25519", "drun test cluster")
    homes.make_shared_homes(plan, f"{stage}/keys", stage)
    network.make_switch()
    pids, problems = _start_hosts(plan, stage)
    # `up` exits as soon as it has read the report; from here on only SIGTERM and the owner's end stop the cluster.
    kernel.die_with_parent(0)
    os.write(report, json.dumps({"pids": pids, "problems": problems}).encode())
    os.close(report)
    if problems:
        return
    machine.leave_terminal()
    _hold(owner, stop_read)
    kernel.unmount(stage)
    state.remove_folder(folder)


def start(plan):
    """Returns the state of the running cluster; raises RuntimeError with the error."""
    if len(plan.hosts) >= 32:
        network.make_room_for_neighbours(len(plan.hosts))
    folder = state.make_folder(plan.name)
    owner = os.pidfd_open(plan.owner_pid) if plan.owner_pid else None
    report_read, report_write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    kernel.unshare(kernel.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(report_read)
            kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET)
            _supervise(plan, folder, owner, report_write)
            status = 0
        except BaseException as error:  # pylint: disable=broad-except
            try:
                os.write(report_write, json.dumps({"pids": [], "problems": [repr(error)]}).encode())
            except OSError:
                pass
        finally:
            os._exit(status)
    os.close(report_write)
    state.save_supervisor(folder, pid)
    limit_s = 2 * machine.start_limit_s(plan)
    limit = time.monotonic() + limit_s
    text = b""
    while True:
        ready, _, _ = select.select([report_read], [], [], max(0, limit - time.monotonic()))
        chunk = os.read(report_read, 65536) if ready else None
        if not chunk:
            break
        text += chunk
    answer = json.loads(text) if text else {"pids": [], "problems": [f"no answer within {limit_s:.0f} s"]}
    if answer["problems"]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        state.remove_folder(folder)
        shown, more = answer["problems"][:SHOWN_PROBLEMS], len(answer["problems"]) - SHOWN_PROBLEMS
        raise RuntimeError("\n".join([*shown, f"and {more} more"] if more > 0 else shown))
    return state.save(plan, folder, pid, answer["pids"])
