"""drun and its peers: their names in tables, their packages, and their command lines."""
import dataclasses
import os
import shlex
import shutil

DRUN, OPENSSH = "drun", "drun --transport openssh"
OPENMPI, MPICH, PDSH, CLUSH = "mpirun (Open MPI)", "mpiexec.hydra (MPICH)", "pdsh", "clush"
SSH, SCRIPT, FLOOR = "ssh", "ssh in a shell script, all at once", "floor"

# Peers that Debian has: the program, and the package whose version is the peer's.
PEERS = {OPENMPI: ("mpirun.openmpi", "openmpi-bin"), MPICH: ("mpiexec.hydra", "mpich"), PDSH: ("pdsh", "pdsh"),
         CLUSH: ("clush", "clustershell")}


def missing():
    """The peers that are not installed."""
    return [name for name, (program, _) in PEERS.items() if not shutil.which(program)]


@dataclasses.dataclass
class Launcher:
    """`prefix` starts a command on the hosts; `is_remote_shell` if it passes one text to a shell there, as ssh does."""
    prefix: str
    is_remote_shell: bool = False

    def line(self, *words):
        text = shlex.join(words)
        return f"{self.prefix} {shlex.quote(text) if self.is_remote_shell else text}"


def contenders(folder, hosts, tagged=False, limit_s=60):
    """Maps names to launchers of one process on each of `hosts`; peers that are not installed are left out. `tagged`: each
    line says which process wrote it. (drun does that as it is.) `limit_s`: for drun's start; no peer has such a limit."""
    listed, n = ",".join(hosts), len(hosts)
    program = os.path.join(folder, "drun")
    found = {
        DRUN: Launcher(f"{program} --start-timeout {limit_s:g} -H {listed}"),
        OPENSSH: Launcher(f"{program} --transport openssh --start-timeout {limit_s:g} -H {listed}"),
        OPENMPI: Launcher(f"mpirun.openmpi --allow-run-as-root {'--tag-output ' * tagged}-N 1 -H {listed}"),
        MPICH: Launcher(f"mpiexec.hydra {'-prepend-rank ' * tagged}-launcher ssh -ppn 1 -n {n} -hosts {listed}"),
        PDSH: Launcher(f"pdsh -R ssh -S -f {n} {'' if tagged else '-N '}-w {listed}", True),
        CLUSH: Launcher(f"clush -S -f {n} {'' if tagged else '-N '}-w {listed}", True),
    }
    absent = missing()
    return {name: launcher for name, launcher in found.items() if name not in absent}
