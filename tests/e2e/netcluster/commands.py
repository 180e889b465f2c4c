"""The command line of tests/e2e/cluster."""
import argparse
import os
import shutil
import stat
import sys
import time

from . import enter, network, plan, state, supervisor

SKIPPED = 77  # status of a test that can't run on this machine
TOOLS = ["ip", "nft", "tc", "sshd", "ssh", "ssh-keygen"]
REPOSITORY = os.path.realpath(f"{os.path.dirname(os.path.abspath(__file__))}/../../..")


def missing():
    """The reason why this machine can't run a cluster, in words; None if it can."""
    if os.geteuid() != 0:
        return "it needs root"
    absent = [tool for tool in TOOLS if not shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin")]
    if absent:
        return f"it needs {', '.join(absent)} (Debian: apt-get install iproute2 nftables openssh-server openssh-client)"
    return None


def up(options):
    reason = missing()
    if reason:
        print(f"cluster: cannot run here: {reason}", file=sys.stderr)
        return SKIPPED
    options.tree = (options.tree or []) + [REPOSITORY]
    started = time.monotonic()
    data = supervisor.start(plan.make_plan(options))
    if options.lossy:
        for host in data["hosts"]:
            _lose(data, host["name"], options.lossy)
    if not options.quiet:
        hosts = data["hosts"]
        print(f"cluster {options.name}: {hosts[0]['name']} to {hosts[-1]['name']} are up "
              f"({time.monotonic() - started:.1f} s); try: {sys.argv[0]} exec {hosts[0]['name']} hostname")
    return 0


def down(options):
    if not state.stop(options.name) and not options.quiet:
        print(f"cluster {options.name}: there was none")
    return 0


def execute(options):
    _, pid = state.host_of(state.load(options.name), options.host)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        print("cluster: exec needs a command", file=sys.stderr)
        return 2
    return enter.execute(pid, command, options.user, options.cwd, options.env or [])


def processes(options):
    options.command, options.user, options.cwd, options.env = ["ps", "auxww"], "root", "/", []
    return execute(options)


def put(options):
    _, pid = state.host_of(state.load(options.name), options.host)
    content = sys.stdin.buffer.read() if options.source == "-" else open(options.source, "rb").read()
    mode = 0o644 if options.source == "-" else stat.S_IMODE(os.stat(options.source).st_mode)

    def write():
        folder = os.path.dirname(options.target) or "/"
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        if os.stat(folder).st_dev == os.stat("/").st_dev:
            raise OSError(f"{options.target} is on this machine's own disk: hosts own /root, /home, /tmp, /run, ...")
        os.makedirs(os.path.dirname(options.target) or "/", exist_ok=True)
        with open(options.target, "wb") as out:
            out.write(content)
        os.chmod(options.target, mode)

    enter.in_namespaces(pid, ["mnt"], write)
    return 0


def cut(options):
    data = state.load(options.name)
    host, _ = state.host_of(data, options.host)
    enter.in_namespaces(data["supervisor"], ["net"], network.cut, host, options.silent)
    return 0


def heal(options):
    data = state.load(options.name)
    host, _ = state.host_of(data, options.host)
    enter.in_namespaces(data["supervisor"], ["net"], network.heal, host)
    return 0


def slow(options):
    data = state.load(options.name)
    host, pid = state.host_of(data, options.host)
    enter.in_namespaces(data["supervisor"], ["net"], network.shape, host.name, options.rate, options.htb)
    enter.in_namespaces(pid, ["net"], network.shape, host.nic, options.rate, options.htb)
    return 0


def _percent(text):
    percent = float(text.rstrip("%"))
    if not 0 <= percent <= 100:
        raise plan.PlanError(f"{text}: not within 0% to 100%")
    return percent


def _lose(data, name, text):
    percent = _percent(text)
    data["losses"][name] = percent
    losses = {host: loss for host, loss in data["losses"].items() if loss}
    enter.in_namespaces(data["supervisor"], ["net"], network.lose, losses)
    state.store(state.folder_of(data["name"]), data)


def lossy(options):
    data = state.load(options.name)
    state.host_of(data, options.host)
    _lose(data, options.host, options.percent)
    return 0


def corrupt(options):
    data = state.load(options.name)
    state.host_of(data, options.host)
    percent = _percent(options.percent)
    if percent:
        for host in data["hosts"]:
            enter.in_namespaces(host["pid"], ["net"], network.send_checksums, host["nic"])
    enter.in_namespaces(data["supervisor"], ["net"], network.corrupt, options.host, percent)
    return 0


def show(options):
    for host in state.load(options.name)["hosts"]:
        ports = ",".join(map(str, host["ports"]))
        print(f"{host['name']}  {host['address']}  {host['address6']}  on {host['nic']}  sshd {ports}  pid {host['pid']}")
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="cluster", description="N hosts on this machine, made of namespaces.")
    sub = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name, function, text, host=False):
        made = sub.add_parser(name, help=text, description=text)
        made.set_defaults(function=function)
        made.add_argument("--name", default=os.environ.get("DRUN_CLUSTER", "default"), help="which cluster")
        if host:
            made.add_argument("host", help="h0, h1, ...")
        return made

    one = verb("up", up, "start hosts h0 to h(N-1)")
    one.add_argument("hosts", type=int, metavar="N")
    one.add_argument("--quiet", action="store_true")
    one.add_argument("--nic", help="name of the data NIC on every host (default: another on each)")
    one.add_argument("--bond0", action="store_const", const="bond0", dest="nic", help="--nic bond0")
    one.add_argument("--port", type=int, action="append", help="of sshd; repeatable (12345)")
    one.add_argument("--subnet", help="10.77.0.0/24; /22 for more than 254 hosts")
    one.add_argument("--subnet6", default="fd77::/64")
    one.add_argument("--containers", action="store_true", help="all share one network namespace; sshd on PORT + i")
    one.add_argument("--sleep-init", action="store_true", help="PID 1 of every host is `sleep` (else of the last)")
    one.add_argument("--lossy", metavar="PERCENT", help="every link loses frames")
    one.add_argument("--shared-home", action="store_true", help="one home for all hosts")
    one.add_argument("--noexec-home", action="append", metavar="HOST")
    one.add_argument("--readonly-home", action="append", metavar="HOST")
    one.add_argument("--bare", action="append", metavar="HOST", help="does not see the trees")
    one.add_argument("--tree", action="append", type=os.path.abspath, metavar="DIR", help="visible on all hosts but bare ones (repository)")
    one.add_argument("--shell", action="append", metavar="HOST=PATH", help="login shell there")
    one.add_argument("--sshd", action="append", metavar="HOST=LINE", help="a line for its sshd_config")
    one.add_argument("--owner-pid", type=int, default=0, help="the cluster ends with this process")
    verb("down", down, "end it; no error if there is none").add_argument("--quiet", action="store_true")
    one = verb("exec", execute, "run a command on a host", host=True)
    one.add_argument("--user", choices=["root", "drun-user"], default="root")
    one.add_argument("--cwd", help="default: this folder if the host has it")
    one.add_argument("--env", action="append", metavar="NAME=VALUE")
    one.add_argument("command", nargs=argparse.REMAINDER)
    one = verb("put", put, "copy a file of this machine (-: stdin) to a host", host=True)
    one.add_argument("source")
    one.add_argument("target")
    verb("ps", processes, "ps auxww on a host", host=True)
    verb("show", show, "list the hosts")
    verb("cut", cut, "take its link down", host=True).add_argument(
        "--silent", action="store_true", help="drop all frames, the link stays up")
    verb("heal", heal, "undo cut", host=True)
    one = verb("slow", slow, "limit its link, both ways", host=True)
    one.add_argument("rate", help="10mbit; off")
    one.add_argument("--htb", action="store_true", help="by HTB; else TBF")
    verb("lossy", lossy, "lose frames of its link, both ways", host=True).add_argument("percent", help="5%%; 0")
    verb("corrupt", corrupt, "change a byte of TCP segments of its link, both ways; of one link at a time",
         host=True).add_argument("percent", help="3%%; 0")
    return parser


def main():
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    options = _parser().parse_args()
    try:
        return options.function(options)
    except (plan.PlanError, state.StateError, RuntimeError, OSError, ValueError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
