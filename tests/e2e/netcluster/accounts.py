"""A host's own files of /etc, bind-mounted over the machine's; the machine's files are never written."""
import os

from . import kernel

USER = "drun-user"
USER_ID = 20077
USER_HOME = "/home/drun-user"
PRIVATE_ETC = "/run/cluster/etc"


def _passwd(shell):
    lines = []
    for line in open("/etc/passwd", encoding="utf-8"):
        fields = line.rstrip("\n").split(":")
        if fields[0] == USER:
            continue
        if fields[0] == "root":
            fields[5], fields[6] = "/root", shell
        lines.append(":".join(fields))
    lines.append(f"{USER}:x:{USER_ID}:{USER_ID}:drun test user:{USER_HOME}:{shell}")
    return "\n".join(lines) + "\n"


def _shadow():
    # `*`: no password matches, and the account is not locked, so that keys are accepted.
    lines = []
    for line in open("/etc/shadow", encoding="utf-8"):
        fields = line.rstrip("\n").split(":")
        if fields[0] == USER:
            continue
        if fields[0] == "root":
            fields[1:] = ["*", "19000", "0", "99999", "7", "", "", ""]
        lines.append(":".join(fields))
    lines.append(f"{USER}:*:19000:0:99999:7:::")
    return "\n".join(lines) + "\n"


def _group():
    lines = [line.rstrip("\n") for line in open("/etc/group", encoding="utf-8") if not line.startswith(USER + ":")]
    return "\n".join(lines + [f"{USER}:x:{USER_ID}:"]) + "\n"


def _hosts(plan, me):
    # The host's own name is a loopback address, as in Debian's installer; `host1` is only in ssh config.
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost", f"127.0.1.1 {me.name}"]
    if not plan.containers:
        lines += [f"{host.address} {host.name}" for host in plan.hosts if host is not me]
    return "\n".join(lines) + "\n"


def bind_file(path, text, mode=0o644):
    """Shows `text` at `path` on this host only."""
    os.makedirs(PRIVATE_ETC, exist_ok=True)
    source = f"{PRIVATE_ETC}/{os.path.basename(path)}"
    with open(source, "w", encoding="utf-8") as out:
        out.write(text)
    os.chmod(source, mode)
    target = os.path.realpath(path)
    if not os.path.exists(target):
        if not target.startswith("/run/"):
            return  # would have to be created on the machine's own disk
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "w", encoding="utf-8").close()
    kernel.mount(source, target, flags=kernel.MS_BIND)


def bind_etc(plan, me):
    shell = me.shell or "/bin/bash"
    bind_file("/etc/passwd", _passwd(shell))
    bind_file("/etc/shadow", _shadow(), 0o600)
    bind_file("/etc/group", _group())
    bind_file("/etc/hostname", me.name + "\n")
    bind_file("/etc/hosts", _hosts(plan, me))
    # No name server: port 53 of loopback refuses at once.
    bind_file("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    shells = open("/etc/shells", encoding="utf-8").read() if os.path.exists("/etc/shells") else ""
    bind_file("/etc/shells", shells + shell + "\n")
