"""Errors say what is wrong, where, and what to type instead; the status tells the kind; no process is started."""
from support import ClusterTest


class BadInput(ClusterTest):
    hosts = 3

    def bad(self, status, words, *arguments, **options):
        """`words`: texts that stderr must contain."""
        with self.subTest(arguments=arguments):
            job = self.drun(*arguments, **options)
            self.assertEqual(job.status, status, str(job))
            self.assertIn("drun: error: ", job.err, str(job))
            for word in words:
                self.assertIn(word, job.err, str(job))
            self.assertEqual(job.out, "", str(job))
            self.assertEqual(self.cluster.run("h0", "test", "-e", "/root/started").status, 1, str(job))
            self.assertEqual(self.cluster.run("h1", "test", "-e", "/root/started").status, 1, str(job))
            self.cluster.assert_clean()
            return job

    def test_usage(self):
        run = ["touch", "/root/started"]
        self.bad(2, [], "-np", "1")
        self.bad(2, ["-np"], "-np", "0", *run)
        self.bad(2, ["-np"], "-np", "-1", *run)
        self.bad(2, ["-np"], "-np", "many", *run)
        self.bad(2, ["only 2 slots"], "-np", "3", "-H", "localhost:2", *run)
        self.bad(2, ["-H"], "-H", "", *run)
        self.bad(2, ["-H"], "-H", "host1:1,,host2:1", *run)
        self.bad(2, ["-H", "zero slots"], "-H", "host1:0", *run)
        self.bad(2, ["-H", "'x'"], "-H", "host1:x", *run)
        self.bad(2, ["node[01-"], "-H", "node[01-", *run)
        self.bad(2, ["/root/nosuch"], "--hostfile", "/root/nosuch", *run)
        self.bad(2, ["/root/nokey"], "-H", "host1:1", "-i", "/root/nokey", *run)
        self.bad(2, ["--num-proc"], "--num-prok", "2", *run)
        self.bad(2, ["hint:", "--transport"], "--transpot", "ssh", *run)
        self.bad(2, ["carrier-pigeon", "openssh"], "--transport", "carrier-pigeon", *run)

    def test_a_bad_line_of_a_hostfile_is_named_with_its_column(self):
        self.cluster.write("h0", "/root/hosts", "# ours\nhost1 slots=2\nhost2 slots=none\n")
        self.bad(2, ["hosts:3:"], "--hostfile", "hosts", "touch", "/root/started", cwd="/root")

    def test_a_forgotten_comma_is_noticed(self):
        self.bad(2, ["a comma may be missing", "-H localhost:2,host1:2"], "-np", "4", "-H", "localhost:2", "host1:2", "./train")

    def test_commands_that_do_not_exist_or_cannot_be_executed(self):
        self.bad(127, ["no-such-command"], "-np", "1", "-H", "localhost:1", "no-such-command")
        self.bad(127, ["no-such-command"], "-H", "localhost:1,host1:1", "no-such-command")
        self.cluster.write("h0", "/root/plain", "text\n")
        self.bad(126, ["/root/plain"], "-np", "1", "-H", "localhost:1", "/root/plain")

    def test_all_failing_hosts_are_reported(self):
        # One doesn't resolve, one refuses the port, one doesn't exist; the fourth works, and starts nothing.
        self.bad(68, ["nowhere.invalid", "10.77.0.3", "10.77.0.200"], "--start-timeout", "10", "-H",
                 "localhost:1,host1:1,nowhere.invalid:1,root@10.77.0.3:1,10.77.0.200:1", "touch", "/root/started")


class Logins(ClusterTest):
    hosts = 3

    def setUp(self):
        self.cluster.shell("h0", ": > /root/.ssh/known_hosts")
        config = self.cluster.shell("h0", "cat /root/.ssh/config")
        self.config = config
        self.addCleanup(self.cluster.write, "h0", "/root/.ssh/config", config, 0o600)

    def refused(self, words, *options, hosts="localhost:1,host1:1,host2:1"):
        job = self.drun(*options, "-H", hosts, "touch", "/root/started")
        self.assertEqual(job.status, 68, str(job))
        for word in words:
            self.assertIn(word, job.err, str(job))
        self.assertEqual(self.cluster.run("h0", "test", "-e", "/root/started").status, 1, str(job))
        self.cluster.assert_clean()
        return job

    def test_a_changed_host_key_is_refused(self):
        for transport in ("ssh", "openssh"):
            with self.subTest(transport):
                key = self.cluster.shell("h2", "cut -d' ' -f1,2 /run/sshd/host_key.pub").strip()
                self.cluster.write("h0", "/root/.ssh/known_hosts", f"[10.77.0.2]:12345 {key}\n")
                job = self.refused(["host1", "known_hosts"], "--transport", transport)
                self.assertIn("changed", job.err.lower())

    def test_an_unknown_host_key_is_refused_under_yes(self):
        self.cluster.write("h0", "/root/.ssh/config", "StrictHostKeyChecking yes\n" + self.config, 0o600)
        job = self.refused(["host1", "host2", "hint:"])
        self.assertEqual(self.cluster.shell("h0", "cat /root/.ssh/known_hosts"), "", str(job))

    def test_an_unknown_host_key_is_stored_and_its_fingerprint_shown(self):
        fingerprint = self.cluster.shell("h1", "ssh-keygen -lf /run/sshd/host_key.pub").split()[1]
        job = self.good("-H", "localhost:1,host1:1", "true")
        self.assertIn(fingerprint, job.err)
        self.cluster.shell("h0", "ssh-keygen -F '[10.77.0.2]:12345'")  # the entry may be hashed
        self.assertNotIn(fingerprint, self.good("-H", "localhost:1,host1:1", "true").err)

    def test_a_refused_login_is_reported_for_each_host(self):
        self.cluster.shell("h0", "ssh-keygen -q -t ed25519 -N '' -f /root/other")
        self.addCleanup(self.cluster.shell, "h0", "rm -f /root/other /root/other.pub")
        self.cluster.shell("h0", "mv /root/.ssh/id_ed25519 /root/.ssh/kept")
        self.addCleanup(self.cluster.shell, "h0", "mv /root/.ssh/kept /root/.ssh/id_ed25519")
        self.refused(["host1", "host2"], "-i", "/root/other")

    def test_an_ordinary_user_runs_jobs_as_herself(self):
        job = self.drun("-H", "localhost:1,h1:1", "-p", "12345", "id", "-un", user="drun-user", cwd="/home/drun-user")
        self.assertEqual((job.status, job.out.count("drun-user")), (0, 2), str(job))

    def test_gpus_are_counted_and_one_that_is_not_there_is_named(self):
        about = "/proc/driver/nvidia/gpus/0000:00:06.0"
        for host in ("h0", "h1"):
            self.addCleanup(self.cluster.shell, host, "umount /proc/driver")
        self.cluster.shell("h0", "mount -t tmpfs none /proc/driver")
        self.cluster.shell("h1", f"mount -t tmpfs none /proc/driver; mkdir -p {about}; "
                                 f"printf 'GPU UUID: \t GPU-1234\n' > {about}/information")
        self.good("-H", "localhost:1,host1:gpus=0", "true")
        job = self.drun("-H", "localhost:1,host1:gpus=0,1", "touch", "/root/started")
        self.assertEqual(job.status, 2, str(job))
        self.assertIn("host1: gpus=1: the host has 1 GPU, number 0", job.err)

        self.cluster.shell("h1", f"mkdir {about}0")
        job = self.good("--nproc-per-node", "gpu", "-H", "host1", "sh", "-c", "echo $LOCAL_RANK of $LOCAL_WORLD_SIZE")
        self.assertEqual(sorted(job.out.splitlines()), ["[0] 0 of 2", "[1] 1 of 2"])
        self.assertEqual(self.good("--nproc-per-node", "gpu", "-H", "host1:1", "echo", "one").out, "[0] one\n")
        job = self.drun("--nproc-per-node", "gpu", "-H", "host1,localhost", "touch", "/root/started")
        self.assertEqual(job.status, 2, str(job))
        self.assertIn("localhost has no NVIDIA GPU", job.err)
        self.assertEqual(self.cluster.run("h0", "test", "-e", "/root/started").status, 1, str(job))

    def test_another_processor_type_is_named(self):
        self.cluster.write("h1", "/root/fake/uname", "#!/bin/sh\necho riscv64\n", 0o755)
        self.cluster.write("h1", "/root/.bashrc", "export PATH=/root/fake:$PATH\n")
        self.addCleanup(self.cluster.shell, "h1", "rm -r /root/fake /root/.bashrc; rm -rf /root/.cache")
        # Linux 6.1 and newer name the processor type in this file, which spares uname.
        named = "/proc/sys/kernel/arch"
        self.cluster.shell("h1", f"rm -rf /root/.cache; echo riscv64 > /root/fake/arch; test ! -e {named} || "
                                 f"mount --bind /root/fake/arch {named}")
        self.addCleanup(self.cluster.shell, "h1", f"umount {named} 2>/dev/null || true")
        self.refused(["host1", "riscv64"])
