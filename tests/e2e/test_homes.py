"""The agent gets to hosts with all sorts of shells and homes."""
import hashlib
import os
import signal

from support import BIN, ClusterTest, untagged


class Shells(ClusterTest):
    hosts = 5
    options = ("--shell", "h1=/bin/bash", "--shell", "h2=/bin/dash", "--shell", "h3=/usr/bin/tcsh",
               "--shell", "h4=/usr/bin/fish")

    def check(self, *options):
        job = self.good(*options, "-H", "host[1-4]:1", "sh", "-c", "hostname")
        self.assertEqual(sorted(untagged(job.out)), [(r, f"h{r + 1}") for r in range(4)])
        self.cluster.assert_clean()

    def test_bash_dash_tcsh_and_fish(self):
        self.check()

    def test_bash_dash_tcsh_and_fish_through_openssh(self):
        self.check("--transport", "openssh")

    def test_rc_files_that_print(self):
        noise = {"h1": ".bashrc", "h3": ".cshrc", "h4": ".config/fish/config.fish"}
        for host, name in noise.items():
            self.cluster.write(host, f"/root/{name}", "echo welcome to this machine; echo mind the gap 1>&2\n"
                               if host == "h1" else "echo welcome to this machine\n")
            self.addCleanup(self.cluster.shell, host, f"rm /root/{name}")
        self.check()

    def test_workers_have_the_umask_of_the_login(self):
        for _ in range(2):  # with the agent just delivered, and from the cache
            job = self.good("-H", "host[1-4]:1", "sh", "-c", "umask")
            self.assertEqual(sorted(untagged(job.out)), [(r, "0022") for r in range(4)])
            self.cluster.shell("h1", "rm -rf /root/.cache/drun")

    def test_the_agent_is_sent_once(self):
        self.check()
        # A second delivery would leave the file as it was, and its own beside it for a moment.
        files = "cd /root/.cache/drun; stat -c '%n %i %y' . *"
        before = self.cluster.shell("h1", files)
        self.check()
        self.assertEqual(self.cluster.shell("h1", files), before)

    def test_the_agent_of_an_installed_package_is_used(self):
        with open(f"{BIN}/drun-agent", "rb") as agent:
            name = "agent-" + hashlib.sha256(agent.read()).hexdigest()[:16]
        self.addCleanup(self.cluster.shell, "h1", "umount /usr/local; rm -rf /root/.cache/drun")
        self.cluster.shell("h1", "rm -rf /root/.cache/drun; mount -t tmpfs tmpfs /usr/local; mkdir -p /usr/local/libexec/drun; "
                                 f"cp {BIN}/drun-agent /usr/local/libexec/drun/; ln -s drun-agent /usr/local/libexec/drun/{name}")
        self.good("-np", "2", "-H", "localhost:1,host1:1", "true")
        self.cluster.shell("h1", "test ! -e /root/.cache/drun")

    def test_a_damaged_agent_is_delivered_again_once(self):
        self.check()
        whole = self.cluster.shell("h1", "sha256sum /root/.cache/drun/*").split()[0]
        for damage in ("head -c 1000 $f", ":", "head -c $n /dev/zero"):  # truncated, emptied, of the right size
            with self.subTest(damage):
                self.addCleanup(self.cluster.shell, "h1", "rm -rf /root/.cache/drun")
                self.cluster.shell("h1", f"cd /root/.cache/drun; rm -f *.2; f=$(echo agent-*); n=$(stat -c %s $f); ({damage}) > new; "
                                         "chmod 700 new; mv new $f")
                job = self.good("-H", "host[1-4]:1", "hostname")
                notes = [line for line in job.err.splitlines() if "did not start, and is delivered again" in line]
                self.assertEqual(len(notes), 1, str(job))
                self.assertIn("host1: /root/.cache/drun/agent-", notes[0])
                self.assertIn(whole, self.cluster.shell("h1", "sha256sum /root/.cache/drun/*.2"))
                again = self.good("-H", "host[1-4]:1", "hostname")
                self.assertNotIn("delivered again", again.err)
                self.cluster.assert_clean()

    def test_a_host_without_gzip_gets_the_agent_as_it_is(self):
        self.addCleanup(self.cluster.shell, "h1", "umount /usr/bin/gzip; rm -rf /root/.cache/drun")
        self.cluster.shell("h1", "rm -rf /root/.cache/drun; mount --bind /dev/null /usr/bin/gzip")
        self.check()

    def test_a_cache_that_is_a_link_is_not_used(self):
        self.addCleanup(self.cluster.shell, "h1", "rm -rf /root/.cache /root/elsewhere /var/tmp/drun-0")
        self.cluster.shell("h1", "rm -rf /root/.cache/drun; mkdir -p -m 755 /root/elsewhere /root/.cache; "
                                 "ln -s /root/elsewhere /root/.cache/drun")
        self.check()
        self.assertEqual(self.cluster.shell("h1", "ls -A /root/elsewhere; stat -c %a /root/elsewhere"), "755\n")

    def test_a_logout_while_the_job_runs(self):
        """systemd removes $XDG_RUNTIME_DIR when its user logs out."""
        self.cluster.shell("h1", "mkdir -p -m 700 /run/user-dir")
        job = self.cluster.run("h1", "env", "XDG_RUNTIME_DIR=/run/user-dir", "drun", "-np", "2", "-H", "localhost:2",
                               "sh", "-c", f"rm -rf /run/user-dir; exec {BIN}/hello")
        self.assertEqual(job.status, 0, str(job))
        self.cluster.assert_clean()


class Homes(ClusterTest):
    hosts = 4
    options = ("--noexec-home", "h1", "--readonly-home", "h2", "--sshd", "h3=ForceCommand echo only backups here",
               "--bare", "h1", "--bare", "h2")

    def test_a_home_that_forbids_execution(self):
        self.assertEqual(self.good("-H", "host1:1", "hostname").out, "h1\n")

    def test_a_home_that_is_read_only(self):
        self.assertEqual(self.good("-H", "host2:1", "hostname").out, "h2\n")

    def test_a_forced_command_is_reported_with_what_it_said(self):
        for transport in ("ssh", "openssh"):
            job = self.drun("--transport", transport, "-H", "host1:1,host3:1", "hostname")
            self.assertEqual(job.status, 68, str(job))
            self.assertIn("host3", job.err)
            self.assertIn("only backups here", job.err)
            self.cluster.assert_clean()


class NoPlaceForTheAgent(ClusterTest):
    options = ("--noexec-home", "h1", "--bare", "h1")

    def test_every_place_that_was_tried_is_named(self):
        for path in ("/tmp", "/var/tmp", "/dev/shm"):
            self.cluster.shell("h1", f"mount -o remount,noexec {path}")
        job = self.drun("-H", "host1:1", "hostname")
        self.assertEqual(job.status, 68, str(job))
        self.assertIn("host1", job.err)
        for place in ("/root/.cache", "/var/tmp", "/dev/shm", "/tmp"):
            self.assertRegex(job.err, rf"[ (]{place}\b", str(job))


class SharedHome(ClusterTest):
    hosts = 64
    options = ("--shared-home",)

    def test_64_hosts_deliver_into_one_home_at_once(self):
        hosts = "localhost:1," + ",".join(f"host{i}:1" for i in range(1, 64))
        job = self.start_drun("-np", "64", "-H", hosts, "sh", "-c", "echo up; exec sleep 1000")
        job.wait_for(r"\] up", 64)
        left = self.cluster.shell("h5", "ls -a /root/.cache/drun").split()
        agents = [name for name in left if name.startswith("agent-")]
        self.assertEqual(len(agents), 1, left)
        self.assertEqual([name for name in left if name.startswith(".agent-")], [])
        # All of them execute that one file: one that another host had replaced would be gone from under its agent.
        inode = self.cluster.shell("h5", f"stat -c %i /root/.cache/drun/{agents[0]}").strip()
        for i in range(1, 64):
            pid = self.cluster.find(f"h{i}", "^drun-agent$")
            self.assertEqual(str(os.stat(f"/proc/{pid}/exe").st_ino), inode, f"host{i}")
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(), 130, str(job))
        self.assert_trained(self.drun("-np", "16", "-H", hosts, "./train", cwd=BIN), 16)
