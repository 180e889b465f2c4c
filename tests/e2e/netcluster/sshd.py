"""One sshd per host: Debian's defaults, its own host key, only the ports of the plan."""
import os
import subprocess

RUN = "/run/sshd"  # also sshd's privilege separation folder
BINARY = "/usr/sbin/sshd"


def make_key(path, comment):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path], check=True,
                   stdin=subprocess.DEVNULL)


def config(me):
    lines = [f"Port {port}" for port in me.ports]
    lines += [f"HostKey {RUN}/host_key", f"PidFile {RUN}/pid", "KbdInteractiveAuthentication no", "UsePAM yes",
              "PrintMotd no", "AcceptEnv LANG LC_*", "LogLevel VERBOSE", "Subsystem sftp internal-sftp"]
    return "\n".join(lines + me.sshd_lines) + "\n"


def start(me):
    """Starts sshd as a child of the caller; it is listening or about to listen."""
    os.makedirs(RUN, exist_ok=True)
    os.chmod(RUN, 0o755)
    make_key(f"{RUN}/host_key", f"root@{me.name}")
    with open(f"{RUN}/config", "w", encoding="utf-8") as out:
        out.write(config(me))
    return subprocess.Popen([BINARY, "-D", "-f", f"{RUN}/config", "-E", f"{RUN}/log"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def listens(me):
    """True if all ports of the plan are listening in the caller's network namespace."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        for line in open(table, encoding="ascii").readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":  # TCP_LISTEN
                found.add(int(fields[1].rsplit(":", 1)[1], 16))
    return found.issuperset(me.ports)
