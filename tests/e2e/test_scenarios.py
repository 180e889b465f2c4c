"""Command lines exactly as users type them."""
import json
import os
import re
import signal
import subprocess
import tempfile

from support import BIN, ClusterTest, environments, untagged

TRAIN_PY = """import os, sys
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "local", os.environ["LOCAL_RANK"])
"""


def cpus_of(text):
    """Parses the kernel's "0-3,8" into numbers."""
    ranges = [[int(n) for n in item.split("-")] for item in text.strip().split(",")]
    return {cpu for ends in ranges for cpu in range(ends[0], ends[-1] + 1)}


def cores():
    """For each core, the usable CPUs."""
    usable = os.sched_getaffinity(0)
    found = set()
    for cpu in usable:
        with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", encoding="ascii") as siblings:
            found.add(frozenset(cpus_of(siblings.read()) & usable))
    return found


class OneMachine(ClusterTest):
    hosts = 1

    def setUp(self):
        self.cluster.write("h0", "/root/job/train.py", TRAIN_PY)

    def test_one_worker_without_ssh(self):
        job = self.good("-np", "1", "-H", "localhost:1", "python3", "train.py", cwd="/root/job",
                        env={"PATH": f"{BIN}:/usr/bin:/bin"})
        self.assertEqual(job.out, "rank 0 of 1 local 0\n")

    def test_four_workers(self):
        job = self.good("-np", "4", "-H", "localhost:4", "python3", "train.py", cwd="/root/job")
        self.assertEqual(sorted(untagged(job.out)), [(r, f"rank {r} of 4 local {r}") for r in range(4)])

    def test_train_gives_the_same_model_for_one_worker_without_drun(self):
        def model(job):
            return re.search(r"final loss (\S+), norm (\S+)", job.out).groups()
        alone = self.cluster.run("h0", "./train", "--epochs", "3", cwd=BIN)
        self.assertEqual(alone.status, 0, str(alone))
        self.assertEqual(model(alone), model(self.good("-np", "1", "./train", "--epochs", "3", cwd=BIN)))

    def test_a_program_of_mpi_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text, options in (("libmpi.so.40", "", ["-shared", "-Wl,-soname,libmpi.so.40"]),
                                        ("ring", "int main(void) { return 0; }", ["-Wl,--no-as-needed", f"{folder}/libmpi.so.40"])):
                with open(f"{folder}/{name}.c", "w", encoding="utf-8") as source:
                    source.write(text)
                subprocess.run(["gcc", "-o", f"{folder}/{name}", f"{folder}/{name}.c", *options], check=True, timeout=60)
                self.cluster.put("h0", f"{folder}/{name}")
            shown = ("-x", f"LD_LIBRARY_PATH={folder}", f"{folder}/ring")
            job = self.drun("-np", "2", *shown)
            self.assertEqual(job.status, 2, str(job))
            self.assertIn("needs libmpi.so.40: MPI is not served", job.err)
            self.good("-np", "2", "--mpi", "none", *shown)
            self.good("-np", "1", *shown)
            # Python's library shows up only after it is loaded. Each worker ends after drun has reported it.
            load = f"import ctypes, sys; ctypes.CDLL('{folder}/libmpi.so.40'); sys.stdin.read()"
            job = self.start_drun("-np", "2", "--stdin", "all", "python3", "-c", load, stdin=subprocess.PIPE)
            job.wait_for("python3 has loaded libmpi.so.40: drun does not serve MPI")
            job.front.stdin.close()
            job.finish()
            self.assertEqual(job.status, 0, str(job))

    def test_four_workers_train(self):
        self.assert_trained(self.drun("-np", "4", "-H", "localhost:4", "./train", cwd=BIN), 4)

    def test_workers_are_bound_to_cores(self):
        cpu = str(min(os.sched_getaffinity(0)))
        show = ("--bind-to", "core", "sh", "-c", "grep Cpus_allowed_list: /proc/self/status; echo threads $OMP_NUM_THREADS")
        on_one = ("taskset", "-c", cpu, f"{BIN}/drun", "-np", "2")
        refused = self.cluster.run("h0", *on_one, *show)
        self.assertEqual(refused.status, 2, str(refused))
        self.assertIn("--bind-to core: 2 workers for 1 core that they may use", refused.err)
        shared = self.cluster.run("h0", *on_one, "--oversubscribe", *show)
        self.assertEqual(sorted(untagged(shared.out)),
                         [(r, line) for r in range(2) for line in (f"Cpus_allowed_list:\t{cpu}", "threads 1")], str(shared))
        if len(cores()) < 2:
            return
        job = self.good("-np", "2", "-v", "--report", "/tmp/report.json", *show)
        lines = [line for _, line in sorted(untagged(job.out)) if line.startswith("Cpus")]
        bound = [line.split(":\t")[1] for line in lines]
        report = json.loads(self.cluster.shell("h0", "cat /tmp/report.json"))
        self.assertEqual([rank["cpus"] for rank in report["ranks"]], bound)
        sets = [cpus_of(text) for text in bound]
        self.assertEqual(sets[0] | sets[1], os.sched_getaffinity(0))
        self.assertEqual(sets[0] & sets[1], set())
        for core in cores():
            self.assertTrue(core <= sets[0] or core <= sets[1], f"{core} is shared\n{job}")
        self.assertRegex(job.err, rf"rank 1 on localhost: cores? [0-9-]+ \(CPUs {bound[1]}\)")


class TwoMachines(ClusterTest):
    """The second host has neither drun nor the build tree: only `train` was copied to it."""

    options = ("--bare", "h1", "--nic", "enp3s0")

    def setUp(self):
        self.cluster.put("h1", f"{BIN}/train")

    def test_train_over_the_alias_with_an_empty_known_hosts(self):
        self.cluster.shell("h0", ": > /root/.ssh/known_hosts")
        job = self.drun("-np", "2", "-H", "localhost:1,host1:1", "-p", "12345", "./train", cwd=BIN)
        self.assert_trained(job, 2)
        self.cluster.shell("h0", "ssh-keygen -F '[10.77.0.2]:12345'")  # the entry may be hashed
        self.cluster.assert_clean()

    def test_programs_of_libdrun_one_after_the_other(self):
        """The first one is killed in one rank, and started again; then another one follows."""
        script = ("mark=$(mktemp -u); kill_1=$(test $RANK = 0 || echo timeout -s KILL 1);"
                  "once() { if test -e $mark; then ./train --epochs 1 && ./train --epochs 2; else"
                  " touch $mark; $kill_1 ./train --epochs 100000; false; fi; }; until once; do :; done; rm $mark")
        job = self.good("-np", "2", "-H", "localhost:1,host1:1", "sh", "-c", script, cwd=BIN)
        self.assertIn("rank 1 on host1", job.err)
        self.assertEqual(len(re.findall("checksum [0-9a-f]+, the same on 2 of 2 ranks", job.out)), 2, str(job))
        self.cluster.assert_clean()

    def test_an_environment_that_was_cleared_is_no_job_of_one(self):
        job = self.drun("-np", "2", "-H", "localhost:1,host1:1", "env", "-i", "./train", "--epochs", "1", cwd=BIN)
        self.assertEqual(job.status, 1, str(job))
        self.assertIn("has cleared the environment", job.err)
        job = self.good("-np", "2", "-H", "localhost:1,host1:1", "env", "-i", "DRUN_SOLO=1", "./train", "--epochs", "1", cwd=BIN)
        self.assertEqual(job.out.count("rank 0 of 1"), 2, str(job))

    def test_the_umask_is_that_of_the_command_line(self):
        script = "umask 027; HOME=/nosuch drun -np 2 -H localhost:1,host1:1 -F /root/.ssh/config sh -c umask; ls -d /nosuch"
        out = self.cluster.shell("h0", f"PATH={BIN}:$PATH; {script} 2>&1 || true")
        self.assertEqual(sorted(out.splitlines()[:2]), ["[0] 0027", "[1] 0027"], out)
        self.assertIn("cannot access '/nosuch'", out)

    def test_train_with_the_interface_given(self):
        job = self.drun("-np", "2", "-H", "localhost:1,host1:1", "-p", "12345", "--network-interfaces", "enp3s0",
                        "./train", cwd=BIN)
        self.assert_trained(job, 2)

    def test_the_interface_given_is_exported(self):
        job = self.good("-np", "2", "-H", "localhost:1,host1:1", "--network-interfaces", "enp3s0", "env")
        self.assertEqual([env["NCCL_SOCKET_IFNAME"] for env in environments(job.out).values()], ["=enp3s0"] * 2)

    def test_train_through_openssh(self):
        job = self.drun("-np", "2", "-H", "localhost:1,host1:1", "-p", "12345", "--transport", "openssh", "./train",
                        cwd=BIN)
        self.assert_trained(job, 2)
        self.cluster.assert_clean()

    def test_an_ssh_compatible_hook_reaches_the_host(self):
        self.cluster.write("h0", "/root/hook", "#!/bin/sh\nhost=$1; echo $host >> /root/hooked; shift\n"
                           "exec ssh -T -oBatchMode=yes $host \"$@\"\n", 0o755)
        job = self.good("--launch-agent", "/root/hook", "-H", "localhost:1,host1:1", "hostname")
        self.assertEqual(sorted(job.out.splitlines()), ["[0] h0", "[1] h1"])
        self.assertEqual(self.cluster.shell("h0", "cat /root/hooked"), "host1\n")
        self.cluster.assert_clean()

    def test_a_working_directory_that_a_host_lacks_is_named(self):
        self.cluster.shell("h0", "mkdir -p /root/only-here")
        job = self.drun("-np", "2", "-H", "localhost:1,host1:1", "hostname", cwd="/root/only-here")
        self.assertNotEqual(job.status, 0, str(job))
        self.assertIn("host1", job.err)
        self.assertIn("/root/only-here", job.err)

    def test_a_command_that_one_host_lacks_is_127_and_nothing_starts(self):
        self.cluster.write("h0", "/root/only-h0", "#!/bin/sh\ntouch /root/started\n", 0o755)
        job = self.drun("-np", "2", "-H", "localhost:1,host1:1", "/root/only-h0", cwd="/root")
        self.assertEqual(job.status, 127, str(job))
        self.assertIn("host1", job.err)
        self.assertEqual(self.cluster.run("h0", "test", "-e", "/root/started").status, 1)

    def test_hostfile(self):
        self.cluster.write("h0", "/root/job/hosts", "# two machines\nlocalhost:2\nhost slots=2\n")
        config = self.cluster.shell("h0", "cat /root/.ssh/config")
        self.addCleanup(self.cluster.write, "h0", "/root/.ssh/config", config, 0o600)
        self.cluster.write("h0", "/root/.ssh/config", config + "\nHost host\n  HostName 10.77.0.2\n  Port 12345\n", 0o600)
        self.cluster.write("h0", "/root/job/train.py", TRAIN_PY)
        self.cluster.write("h1", "/root/job/train.py", TRAIN_PY)
        job = self.good("--hostfile", "hosts", "python3", "train.py", cwd="/root/job")
        self.assertEqual(sorted(untagged(job.out)), [(r, f"rank {r} of 4 local {r % 2}") for r in range(4)])


class RawAddresses(ClusterTest):
    hosts = 3
    options = ("--subnet", "10.0.0.0/24", "--subnet6", "fd00::/64", "--port", "22")

    def check(self, hosts):
        for host in ("h0", "h1"):
            self.cluster.write(host, "/root/job/train.py", TRAIN_PY)
        job = self.good("-np", "4", "-H", hosts, "python3", "train.py", cwd="/root/job")
        self.assertEqual(sorted(untagged(job.out)), [(r, f"rank {r} of 4 local {r % 2}") for r in range(4)])
        self.cluster.assert_clean()

    def test_two_addresses(self):
        self.check("10.0.0.1:2,10.0.0.2:2")

    def test_user_at_address(self):
        self.check("10.0.0.1:2,root@10.0.0.2:2")

    def test_ipv6_address(self):
        self.check("10.0.0.1:2,[fd00::2]:2")


class Containers(ClusterTest):
    """`sshd -p N; sleep infinity` in containers that share their host's network: PID 1 doesn't reap."""

    hosts = 3
    options = ("--containers", "--sleep-init")

    def test_the_same_address_on_other_ports_is_another_host(self):
        job = self.good("-np", "3", "-H", "localhost:1,host1:1,host2:1", "sh", "-c", "hostname; echo $LOCAL_RANK")
        self.assertEqual(sorted(line for _, line in untagged(job.out)), ["0", "0", "0", "h0", "h1", "h2"])
        self.cluster.assert_clean()

    def test_train(self):
        self.assert_trained(self.drun("-np", "3", "-H", "localhost:1,host1:1,host2:1", "./train", cwd=BIN), 3)


class FourContainersOnFourMachines(ClusterTest):
    hosts = 4
    options = ("--sleep-init",)

    def test_train_and_leave_nothing(self):
        hosts = "localhost:1,host1:1,host2:1,host3:1"
        self.assert_trained(self.drun("-np", "4", "-H", hosts, "./train", cwd=BIN), 4)
        self.cluster.assert_clean()

    def test_leave_no_zombie(self):
        """Their PID 1 doesn't reap: a process that outlives its parent stays a zombie."""
        for command, status in (("true", 0), ("false", 1), ("no-such-program", 127)):
            for transport in ("ssh", "openssh"):
                job = self.drun("-np", "2", "-H", "localhost,host1", "--transport", transport, command)
                self.assertEqual(job.status, status, str(job))
        self.good("clean", "-H", "localhost,host1")
        job = self.start_drun("-H", "localhost,host1", "sh", "-c", "echo ready; exec sleep 100")
        job.wait_for("ready", 2)
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(), 130, str(job))
        for host in ("h0", "h1"):
            processes = self.cluster.shell(host, "ps -eo stat,comm")
            self.assertNotRegex(processes, r"(?m)^Z\S* +drun-")

    def test_train_where_their_agents_are_hidden(self):
        """As in containers: by the key. With the first host in the job its rendezvous is reached directly, else through
        relays."""
        hidden = "unset DRUN_AGENT; exec ./train"
        for hosts in ("localhost:1,host1:1", "localhost:1,host1:1,host2:1,host3:1", "host1:1,host2:1", "host1:2,host2:1,host3:1"):
            job = self.drun("-H", hosts, "-x", "DRUN_KEY", "sh", "-c", hidden, cwd=BIN)
            self.assert_trained(job, sum(int(item[-1]) for item in hosts.split(",")))
        # Programs started by `su` and `setpriv` can't use the socket either.
        other_user = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "./train", "--epochs", "1")
        job = self.drun("-H", "localhost:1,host1:1", *other_user, cwd=BIN)
        self.assertEqual(job.status, 1, str(job))
        self.assertIn("permission denied (hint: drun -x DRUN_KEY for a container that hides it, or a worker of another user", job.err)
        job = self.good("-H", "localhost:1,host1:1", "-x", "DRUN_KEY", *other_user, cwd=BIN)
        self.assertRegex(job.out, "the same on 2 of 2 ranks")
        # The relay's 127.0.0.1 never becomes a published address.
        hidden = "unset DRUN_AGENT DRUN_DATA_ADDRESS; exec ./train"
        job = self.drun("-H", "host1:1,host2:1", "-x", "DRUN_KEY", "sh", "-c", hidden, cwd=BIN)
        self.assertEqual(job.status, 1, str(job))
        self.assertIn("no address is known at which other hosts reach this one", job.err)
        # With a network of their own: fails at once, with a hint.
        hidden = "unset DRUN_AGENT; exec unshare -n ./train"
        job = self.drun("-H", "host1:1,host2:1", "-x", "DRUN_KEY", "sh", "-c", hidden, cwd=BIN, limit=30)
        self.assertEqual(job.status, 1, str(job))
        self.assertIn("docker run --network host", job.err)
        self.cluster.assert_clean()


class TwoGpuMachines(ClusterTest):
    hosts = 3
    options = ("--bond0", "--port", "2222")

    def test_what_the_user_sets_wins(self):
        job = self.good(
            "-np", "16", "-H", "gpu1:8,gpu2:8", "-x", "NCCL_DEBUG=INFO", "-x", "NCCL_IB_DISABLE=0", "-x",
            "NCCL_SOCKET_IFNAME=bond0", "-x", "NCCL_IB_GID_INDEX=3", "-x", "LD_LIBRARY_PATH", "-x", "PATH", "env",
            env={"LD_LIBRARY_PATH": "/opt/cuda/lib64"})
        found = environments(job.out)
        self.assertEqual(sorted(found), list(range(16)))
        for rank, env in found.items():
            self.assertEqual(env["NCCL_SOCKET_IFNAME"], "bond0")
            self.assertEqual(env["NCCL_IB_GID_INDEX"], "3")
            self.assertEqual(env["NCCL_IB_DISABLE"], "0")
            self.assertEqual(env["NCCL_DEBUG"], "INFO")
            self.assertEqual(env["LD_LIBRARY_PATH"], "/opt/cuda/lib64")
            self.assertTrue(env["PATH"].startswith(BIN), env["PATH"])
            self.assertEqual(env["LOCAL_RANK"], str(rank % 8))
            self.assertEqual(env["MASTER_ADDR"], "10.77.0.2")


class Sizes(ClusterTest):
    hosts = 16

    def check(self, count):
        names = ["localhost"] + [f"host{i}" for i in range(1, count)]
        hosts = ",".join(f"{name}:1" for name in names)
        self.assert_trained(self.drun("-np", str(count), "-H", hosts, "-p", "12345", "./train", cwd=BIN), count)
        job = self.good("-H", hosts, "sh", "-c", "echo $RANK $(hostname) $WORLD_SIZE $CROSS_RANK")
        self.assertEqual(sorted(untagged(job.out)), [(r, f"{r} h{r} {count} {r}") for r in range(count)])
        self.cluster.assert_clean()

    def test_two_hosts(self):
        self.check(2)

    def test_four_hosts(self):
        self.check(4)

    def test_a_gpu_for_each_worker(self):
        job = self.good("-H", "localhost:gpus=0,2,host1:1,host2:gpus=GPU-7", "sh", "-c",
                        "echo $RANK ${CUDA_VISIBLE_DEVICES-none} $NCCL_RAS_ADDR")
        lines = [line.split() for _, line in sorted(untagged(job.out))]
        self.assertEqual([line[:2] for line in lines], [["0", "0"], ["1", "2"], ["2", "none"], ["3", "GPU-7"]])
        self.assertEqual(len({line[2] for line in lines}), 1)  # the same one for the whole job

    def test_sixteen_hosts(self):
        self.check(16)

    def test_the_model_is_the_same_for_one_and_for_four_ranks_up_to_rounding(self):
        one = self.good("-np", "1", "-H", "localhost:1", "./train", cwd=BIN)
        four = self.good("-np", "4", "-H", "localhost:1,host1:1,host2:1,host3:1", "./train", cwd=BIN)
        losses = [[float(x) for x in re.findall(r"loss\D*([0-9.]+)", job.out)] for job in (one, four)]
        self.assertTrue(losses[0], str(one))
        self.assertEqual(len(losses[0]), len(losses[1]), str(four))
        for a, b in zip(*losses):
            self.assertAlmostEqual(a, b, delta=2e-3)

    def test_a_range_of_hosts(self):
        job = self.good("-H", "host[1-15]:2", "hostname")
        self.assertEqual(sorted(untagged(job.out)), [(r, f"h{1 + r // 2}") for r in range(30)])
