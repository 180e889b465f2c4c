"""The conditions of a measurement: facts about the machine and the programs, and what makes it refuse to begin."""
import os
import platform
import re
import shutil
import subprocess

from . import launchers
from .cluster import ROOT

# Drun and its agent are built from these. Other changes in the tree do not change what is measured.
SOURCES = ("CMakeLists.txt", "CMakePresets.json", "cmake", "base", "cli", "launcher", "transport", "control", "agent", "netdetect", "check",
           "bench", "rendezvous", "recorder", "runtime")
OPTIMIZED = ("Release", "RelWithDebInfo")
TARGETS = ("drun", "drun-agent")


def said(*command):
    """stdout of a command without the last newline; empty if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def git(*words):
    return said("git", "-C", ROOT, "-c", f"safe.directory={ROOT}", *words)


def load_average():
    return round(os.getloadavg()[0], 2)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    with open("/proc/meminfo", encoding="utf-8") as file:
        kib = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1])
    return {"processor": model[1] if model else platform.machine(), "processors": len(os.sched_getaffinity(0)),
            "memory_gib": kib >> 20, "system": platform.freedesktop_os_release()["PRETTY_NAME"], "kernel": platform.release().split("-")[0]}


def versions(build):
    """Versions of drun and of its peers, the latter from the packages."""
    found = {"drun": said(os.path.join(build, "bin", "drun"), "--version").split()[-1], "commit": git("rev-parse", "--short=8", "HEAD")}
    packages = {name: package for name, (_, package) in launchers.PEERS.items()} | {launchers.SSH: "openssh-client"}
    for name, package in packages.items():
        found[name] = re.sub(r"^\d+:|[-+].*", "", said("dpkg-query", "-W", "-f", "${Version}", package)) or "unknown"
    return found


def cache(build):
    """The variables of CMakeCache.txt; none if the folder has not been configured."""
    try:
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
            return dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.MULTILINE))
    except OSError:
        return {}


def refusal_of_build(variables, changed, pending, build="build/release"):
    """The reason why this build is not an optimized one of the commit; None if it is. `changed`: changes that are not
    committed; `pending`: what ninja would do."""
    again = f"cmake --preset release && cmake --build --preset release --target {' '.join(TARGETS)}"
    if not variables:
        return f"there is no build in {build}: {again}"
    kind = variables.get("CMAKE_BUILD_TYPE", "")
    if kind not in OPTIMIZED or variables.get("DRUN_SANITIZE"):
        sanitizers = f" with sanitizers {variables['DRUN_SANITIZE']}" if variables.get("DRUN_SANITIZE") else ""
        return f"{build} is a build of type {kind or 'none'}{sanitizers}, not an optimized one: {again}"
    if changed:
        return f"sources have changes that are not committed, so no commit names what would be measured: {' '.join(changed)}"
    if "no work to do" not in pending:
        return f"{build} is not a build of this commit: {again}"
    return None


def refusal(build, max_load):
    """The first reason not to measure here and now; None if there is none."""
    absent = launchers.missing()
    if absent:
        return f"not installed: {', '.join(absent)}; scripts/packages install peers"
    if os.geteuid() != 0:
        return "the test cluster needs root"
    if not shutil.which("c++"):
        return "there is no C++ compiler for the floor of the start: scripts/packages install build"
    changed = [line.split()[-1] for line in git("status", "--porcelain", "--", *SOURCES).splitlines()]
    reason = refusal_of_build(cache(build), changed, said("ninja", "-C", build, "-n", *TARGETS), os.path.relpath(build, ROOT))
    return reason or refusal_of_load(load_average(), max_load)


def refusal_of_load(load, max_load):
    if load > max_load:
        return f"the load average is {load}, above {max_load}: wait until other programs have ended, or use --max-load"
    return None
