"""The homes of root and of the ordinary user, with ssh keys and config, an empty known_hosts and nothing else."""
import os

from . import accounts, kernel

USERS = [("root", "/root", 0), (accounts.USER, accounts.USER_HOME, accounts.USER_ID)]


def ssh_config(plan):
    """`host1` and `gpu1` mean h1; the names resolve only here."""
    blocks = []
    for host in plan.hosts:
        for alias, user in ((f"host{host.index}", "root"), (f"gpu{host.index}", "root")):
            blocks.append(f"Host {alias}\n  HostName {host.address}\n  User {user}\n  Port {host.ports[-1]}\n")
    return "\n".join(blocks)


def _write(path, text, user_id, mode):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    os.chown(path, user_id, user_id)
    os.chmod(path, mode)


def fill_home(plan, keys, home, user_id):
    """`keys`: a folder with id_ed25519 and id_ed25519.pub."""
    os.chown(home, user_id, user_id)
    os.chmod(home, 0o700)
    ssh = f"{home}/.ssh"
    os.makedirs(ssh, exist_ok=True)
    os.chown(ssh, user_id, user_id)
    os.chmod(ssh, 0o700)
    private = open(f"{keys}/id_ed25519", encoding="utf-8").read()
    public = open(f"{keys}/id_ed25519.pub", encoding="utf-8").read()
    _write(f"{ssh}/id_ed25519", private, user_id, 0o600)
    _write(f"{ssh}/id_ed25519.pub", public, user_id, 0o644)
    _write(f"{ssh}/authorized_keys", public, user_id, 0o600)
    _write(f"{ssh}/known_hosts", "", user_id, 0o600)
    _write(f"{ssh}/config", ssh_config(plan), user_id, 0o600)


def make_shared_homes(plan, keys, stage):
    """Called once, by the supervisor: creates the folders that hosts with a shared home bind."""
    for user, _, user_id in USERS:
        home = f"{stage}/home-{user}"
        os.makedirs(home)
        fill_home(plan, keys, home, user_id)


def mount_homes(plan, me, stage):
    """Called on a host, while the supervisor's stage is still visible there."""
    kernel.mount("tmpfs", "/home", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    os.makedirs(accounts.USER_HOME)
    for user, home, user_id in USERS:
        if me.home == "shared":
            kernel.mount(f"{stage}/home-{user}", home, flags=kernel.MS_BIND)
            continue
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | (kernel.MS_NOEXEC if me.home == "noexec" else 0)
        kernel.mount("tmpfs", home, "tmpfs", flags, "mode=700")
        fill_home(plan, f"{stage}/keys", home, user_id)
        if me.home == "readonly":
            kernel.mount(None, home, flags=kernel.MS_REMOUNT | kernel.MS_RDONLY | flags)
