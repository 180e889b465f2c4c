"""The links. The supervisor's network namespace is the switch: a bridge with one port per host, named after the host.

Each host has its data NIC on the bridge; a decoy NIC that is up and leads nowhere, but has the default route; and a
docker0 with the same address everywhere, kept running by a port whose other end is in the switch.
"""
import array
import fcntl
import re
import socket
import struct
import subprocess

TABLE = "bridge drun"


def _ip_batch(lines):
    done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError("ip -batch: " + done.stderr.strip())


def make_room_for_neighbours(n_hosts):
    """Raises the size of the neighbor table, which all network namespaces share: 1,024 are too few for many hosts.

    The limit is the machine's, and stays.
    """
    for family in ("ipv4", "ipv6"):
        for number in (1, 2, 3):
            path = f"/proc/sys/net/{family}/neigh/default/gc_thresh{number}"
            with open(path, encoding="ascii") as limit:
                enough = int(limit.read()) >= 64 * n_hosts
            if not enough:
                with open(path, "w", encoding="ascii") as limit:
                    limit.write(str(64 * n_hosts))


def make_switch():
    """Called in the switch, before any host exists."""
    _ip_batch(["link set lo up", "link add data0 type bridge", "link set data0 up"])
    rules = (f"table {TABLE} {{\n set cut {{ type ifname; }}\n"
             " chain loss { type filter hook prerouting priority 0; }\n"
             " chain cut { type filter hook forward priority 0; iifname @cut drop; oifname @cut drop; }\n"
             " chain corrupt { type filter hook forward priority 1; }\n}\n")
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)


def connect(hosts_and_pids):
    """Called in the switch: creates the links of all hosts, their far ends in the namespaces of the given processes."""
    lines = []
    for host, pid in hosts_and_pids:
        lines += [f"link add {host.name} type veth peer name {host.nic} netns {pid}",
                  f"link set {host.name} master data0 up",
                  f"link add {host.name}x type veth peer name {host.decoy_nic} netns {pid}",
                  f"link set {host.name}x up",
                  f"link add {host.name}d type veth peer name vethd0c{host.index} netns {pid}",
                  f"link set {host.name}d up"]
    _ip_batch(lines)


def configure(plan, me):
    """Called on a host, when its links exist."""
    for name in ("all", "default", me.nic, me.decoy_nic):
        try:
            with open(f"/proc/sys/net/ipv6/conf/{name}/accept_dad", "w", encoding="ascii") as out:
                out.write("0")
        except OSError:
            pass  # a kernel without IPv6
    port = f"vethd0c{me.index}"
    _ip_batch(["link set lo up",
               f"addr add {me.address}/{plan.prefix} dev {me.nic}",
               f"addr add {me.address6}/{plan.prefix6} dev {me.nic} nodad",
               f"link set {me.nic} up",
               f"addr add {me.decoy_subnet}.1/24 dev {me.decoy_nic}",
               f"link set {me.decoy_nic} up",
               f"route add default via {me.decoy_subnet}.254 dev {me.decoy_nic}",
               "link add docker0 type bridge",
               "addr add 172.17.0.1/16 brd 172.17.255.255 dev docker0",
               f"link set {port} master docker0 up",
               "link set docker0 up"])


def cut(host, silent):
    """Called in the switch. Silent: the link stays up and passes nothing. No end sees a FIN in either case."""
    if silent:
        subprocess.run(["nft", "add", "element", *TABLE.split(), "cut", f'{{ "{host.name}" }}'], check=True)
    else:
        _ip_batch([f"link set {host.name} down"])


def heal(host):
    subprocess.run(["nft", "delete", "element", *TABLE.split(), "cut", f'{{ "{host.name}" }}'],
                   stderr=subprocess.DEVNULL, check=False)
    _ip_batch([f"link set {host.name} up"])


def shape(device, rate, htb=False):
    """Called where the device is: limits its outgoing traffic to `rate` (tc's notation); 'off' undoes it."""
    if rate == "off" or htb:
        subprocess.run(["tc", "qdisc", "del", "dev", device, "root"], stderr=subprocess.DEVNULL, check=False)
    if rate == "off":
        return
    if not htb:
        subprocess.run(["tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "32kb",
                        "latency", "300ms"], check=True)
        return
    queue = max(64 << 10, round(_bits_per_second(rate) / 8 * 0.3))
    for words in (f"qdisc add dev {device} root handle 1: htb default 1",
                  f"class add dev {device} parent 1: classid 1:1 htb rate {rate} burst 16kb cburst 16kb",
                  f"qdisc add dev {device} parent 1:1 bfifo limit {queue}"):
        subprocess.run(["tc", *words.split()], check=True)


def _bits_per_second(rate):
    number, unit = re.fullmatch(r"([0-9.]+)([kmg]?)bit", rate).groups()
    return float(number) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[unit]


def lose(losses):
    """Called in the switch: `losses` maps a port to the percentage of its frames that are dropped, in both directions;
    replaces all earlier losses."""
    lines = [f"flush chain {TABLE} loss"]
    for port, percent in losses.items():
        limit = round(percent * 100)
        lines.append(f'add rule {TABLE} loss iifname "{port}" numgen random mod 10000 < {limit} drop')
        lines.append(f'add rule {TABLE} cut oifname "{port}" numgen random mod 10000 < {limit} drop')
    head = [f"flush chain {TABLE} cut", f"add rule {TABLE} cut iifname @cut drop",
            f"add rule {TABLE} cut oifname @cut drop"]
    subprocess.run(["nft", "-f", "-"], input="\n".join(head + lines) + "\n", text=True, check=True)


def send_checksums(device):
    """Called on a host: frames leave it with their checksums. Else the kernel, which calculates none for links within
    one machine, would believe what corrupt() made of them."""
    SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
    off = array.array("B", struct.pack("II", ETHTOOL_STXCSUM, 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, struct.pack("16sP8x", device.encode(), off.buffer_info()[0]))


def corrupt(port, percent):
    """Called in the switch: a byte of this percentage of the TCP segments of a port changes, in both directions.
    Replaces the corruption of all ports."""
    lines = [f"flush chain {TABLE} corrupt"]
    for way in ("iifname", "oifname") if percent else ():
        for protocol in ("ip protocol tcp", "ip6 nexthdr tcp"):
            # Byte 50 from the TCP header: payload. Segments without it stay as they are.
            lines.append(f'add rule {TABLE} corrupt {way} "{port}" {protocol} numgen random mod 10000 < '
                         f'{round(percent * 100)} @th,400,8 set 0x7e counter')
    subprocess.run(["nft", "-f", "-"], input="\n".join(lines) + "\n", text=True, check=True)
