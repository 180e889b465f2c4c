"""The state of a running cluster: /run/drun-cluster-NAME/state.json, valid only while its process lives."""
import dataclasses
import json
import os
import select
import shutil
import signal

from . import plan as plans

STOP_LIMIT_S = 5


class StateError(Exception):
    pass


def folder_of(name):
    return f"/run/drun-cluster-{name}"


def started(pid):
    """The start time of a process in clock ticks, which identifies it together with its pid; None if it is gone."""
    try:
        fields = open(f"/proc/{pid}/stat", encoding="ascii", errors="replace").read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def make_folder(name):
    folder = folder_of(name)
    if os.path.exists(folder):
        if _alive(folder):
            raise StateError(f"cluster {name!r} is up already: `cluster down --name {name}` ends it")
        shutil.rmtree(folder)  # left by a killed one: a folder with a text file
    os.makedirs(f"{folder}/stage", mode=0o700)
    return folder


def save_supervisor(folder, pid):
    with open(f"{folder}/supervisor", "w", encoding="ascii") as out:
        out.write(f"{pid} {started(pid)}")


def _alive(folder):
    """The supervisor's pid, or None."""
    try:
        pid, start = open(f"{folder}/supervisor", encoding="ascii").read().split()
    except (OSError, ValueError):
        return None
    return int(pid) if str(started(int(pid))) == start else None


def _pids_below(parent):
    """Maps the pid in the parent's PID namespace to the pid here, for the parent's children."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            status = dict(line.split(":", 1) for line in open(f"/proc/{entry}/status", encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if int(status["PPid"]) == parent:
            found[int(status["NSpid"].split()[-2])] = int(entry)
    return found


def save(plan, folder, supervisor, inner_pids):
    below = _pids_below(supervisor)
    data = dataclasses.asdict(plan)
    data["supervisor"] = supervisor
    data["losses"] = {}
    for host, inner in zip(data["hosts"], inner_pids):
        host["pid"] = below[inner]
        host["started"] = started(below[inner])
    store(folder, data)
    return data


def store(folder, data):
    with open(f"{folder}/state.new", "w", encoding="utf-8") as out:
        json.dump(data, out, indent=1)
    os.rename(f"{folder}/state.new", f"{folder}/state.json")


def load(name):
    folder = folder_of(name)
    if not _alive(folder):
        raise StateError(f"cluster {name!r} is not up: `cluster up 4 --name {name}` starts one")
    try:
        return json.load(open(f"{folder}/state.json", encoding="utf-8"))
    except OSError as error:
        raise StateError(f"cluster {name!r} is still starting") from error


def host_of(data, name):
    """(plans.Host, pid of its PID 1)"""
    for host in data["hosts"]:
        if host["name"] == name:
            if started(host["pid"]) != host["started"]:
                raise StateError(f"{name} has no init any more")
            fields = {field.name for field in dataclasses.fields(plans.Host)}
            return plans.Host(**{key: value for key, value in host.items() if key in fields}), host["pid"]
    raise StateError(f"no host {name!r}: there are {', '.join(host['name'] for host in data['hosts'])}")


def stop(name):
    """Returns True if there was one."""
    folder = folder_of(name)
    pid = _alive(folder)
    if pid:
        process = os.pidfd_open(pid)
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal.pidfd_send_signal(process, number)
            if select.select([process], [], [], STOP_LIMIT_S)[0]:
                break
        os.close(process)
    existed = os.path.exists(folder)
    remove_folder(folder)
    return bool(pid) or existed


def remove_folder(folder):
    shutil.rmtree(folder, ignore_errors=True)
