"""The plan of a cluster: hosts, names, addresses. Pure; made from the options of `up`."""
import dataclasses
import ipaddress

# The data NIC has a different name on each host, and its name on one host is a decoy's on another.
DATA_NICS = ["enp3s0", "eth1", "ens5", "eno1", "enp65s0f0", "p1p1"]
DECOY_NICS = ["eno2", "eth0", "enp3s0", "ens6", "eth1", "p2p1"]
DEFAULT_PORT = 12345
SMALL, MAX_HOSTS = 254, 1022  # addresses of a network of 24 and 22 bits; a bridge has 1,023 ports


class PlanError(Exception):
    pass


@dataclasses.dataclass
class Host:
    index: int
    name: str
    address: str
    address6: str
    nic: str
    decoy_nic: str
    decoy_subnet: str
    ports: list
    shell: str = ""
    init: str = "reaper"  # or "sleep": a PID 1 that doesn't reap, like `sshd; sleep infinity` in a container
    home: str = "private"  # or "shared", "noexec", "readonly"
    bare: bool = False  # has no access to the trees
    sshd_lines: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Plan:
    name: str
    hosts: list
    prefix: int
    prefix6: int
    containers: bool
    trees: list
    owner_pid: int

    def host(self, name):
        for host in self.hosts:
            if host.name == name:
                return host
        raise PlanError(f"no host {name!r}: there are {self.hosts[0].name} to {self.hosts[-1].name}")


def _per_host(values, option):
    """`h1=VALUE` items of a repeatable option, as pairs."""
    for item in values or []:
        name, mark, value = item.partition("=")
        if not mark:
            raise PlanError(f"{option} {item}: write {option} h1=VALUE")
        yield name, value


def make_plan(options):
    count = options.hosts
    if not 1 <= count <= MAX_HOSTS:
        raise PlanError(f"{count} hosts: 1 to {MAX_HOSTS} can be made")
    subnet = ipaddress.ip_network(options.subnet or f"10.77.0.0/{24 if count <= SMALL else 22}")
    if count > subnet.num_addresses - 2:
        raise PlanError(f"{count} hosts: {subnet} has {subnet.num_addresses - 2} addresses")
    subnet6 = ipaddress.ip_network(options.subnet6)
    ports = options.port or [DEFAULT_PORT]
    hosts = []
    for i in range(count):
        shared_net = options.containers
        hosts.append(Host(
            index=i, name=f"h{i}",
            address=str(subnet[1 if shared_net else i + 1]), address6=str(subnet6[1 if shared_net else i + 1]),
            nic=options.nic or DATA_NICS[0 if shared_net else i % len(DATA_NICS)],
            decoy_nic=DECOY_NICS[0 if shared_net else i % len(DECOY_NICS)],
            decoy_subnet=f"192.168.{100 + i}" if i < 150 else f"172.{21 + (i - 150) // 256}.{(i - 150) % 256}",
            ports=[port + i for port in ports] if shared_net else list(ports),
            home="shared" if options.shared_home else "private"))
    for host in hosts:
        if host.decoy_nic == host.nic:
            host.decoy_nic = "eno9"
    plan = Plan(options.name, hosts, subnet.prefixlen, subnet6.prefixlen, options.containers,
                [t for t in options.tree or []], options.owner_pid)
    if count > 1 or options.sleep_init:
        for host in hosts if options.sleep_init else hosts[-1:]:
            host.init = "sleep"
    for name, value in _per_host(options.shell, "--shell"):
        plan.host(name).shell = value
    for name, value in _per_host(options.sshd, "--sshd"):
        plan.host(name).sshd_lines.append(value)
    for name in options.noexec_home or []:
        plan.host(name).home = "noexec"
    for name in options.readonly_home or []:
        plan.host(name).home = "readonly"
    for name in options.bare or []:
        plan.host(name).bare = True
    return plan
