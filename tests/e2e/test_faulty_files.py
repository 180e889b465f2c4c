"""Files that answer late or never, as those of a network file system whose server is busy or dead. The file system is
drun-test-faulty-fs, in FUSE: a process that waits for it is in uninterruptible sleep, as with NFS."""
import os
import re
import signal
import subprocess
import time

from support import BIN, SLOWDOWN, ClusterTest

FOLDER = "/run/slow"        # its files
MOUNT = "/run/mount"        # as the file system shows them
START_TIMEOUT = 6           # for starts that must fail: seconds
SLOWER_THAN_THE_GUARD = 9   # kGuardSilenceLimit in agent/guard.h is 8 s
LONGEST = 60 if os.environ.get("DRUN_TEST_FULL") else SLOWER_THAN_THE_GUARD


class Mounts(ClusterTest):
    def setUp(self):
        self.mounts = 0

    def mount(self, host, operation, how, name=""):
        """Mounts the folder there. Returns the mount point, and what ends the file system: whoever waits gets an
        error."""
        self.mounts += 1
        point = f"{MOUNT}{self.mounts}"
        self.cluster.shell(host, f"mkdir -p {FOLDER}/work {point}; cp /bin/pwd {FOLDER}/pwd; cp /bin/pwd {FOLDER}/work/")
        pid = next(one["pid"] for one in self.cluster.data["hosts"] if one["name"] == host)
        # In the host's mount namespace only: it is no process of the host.
        server = subprocess.Popen(["nsenter", f"--mount=/proc/{pid}/ns/mnt", f"{BIN}/drun-test-faulty-fs", FOLDER, point,
                                   operation, str(how), name], stderr=subprocess.DEVNULL)
        ended = []
        self.server = server

        def end():
            if not ended:
                ended.append(True)
                server.kill()
                server.wait()
                self.cluster.shell(host, f"umount -l {point}")
        self.addCleanup(end)
        limit = time.monotonic() + 10 * SLOWDOWN
        while self.cluster.run(host, "sh", "-c", f"grep -q ' {point} fuse' /proc/mounts").status != 0:
            self.assertLess(time.monotonic(), limit, "not mounted")
            time.sleep(0.02)
        return point, end


class Slow(Mounts):
    hosts = 3

    def begin(self, host, *command, options=(), start_timeout=60):
        return self.start_drun("--start-timeout", str(start_timeout), "-np", "1", "-H", f"{host}:1", *options, *command)

    def test_slow_is_not_dead(self):
        jobs = []
        for host, at in (("localhost", "h0"), ("host1", "h1")):
            for operation, seconds in (("chdir", 1), ("chdir", LONGEST), ("exec", LONGEST), ("open", LONGEST)):
                point, _ = self.mount(at, operation, seconds, "work" if operation == "chdir" else "pwd")
                jobs.append((operation, point, self.begin(host, f"{point}/work/pwd", options=("--wdir", f"{point}/work"),
                                                          start_timeout=5 * LONGEST + 15)))
        began = time.monotonic()
        for operation, point, job in jobs:
            # chdir and access() of the check, and the chdir of the worker; each once or twice.
            self.assertEqual(job.finish((4 * LONGEST + 15) * SLOWDOWN), 0, f"{operation}\n{job}")
            self.assertEqual(job.out, f"{point}/work\n")
        self.assertGreater(time.monotonic() - began, LONGEST - 1, "nothing was slow")
        self.cluster.assert_clean()

    def test_files_of_the_ranks_may_be_slow_longer_than_a_host_may_be_silent(self):
        self.cluster.shell("h0", f"mkdir -p {FOLDER}/out/rank.0; touch {FOLDER}/out/rank.0/stdout")
        point, _ = self.mount("h0", "open", 5, "stdout")
        job = self.begin("host1", "echo", "in", options=("--output-filename", f"{point}/out", "--heartbeat-timeout", "2"))
        self.assertEqual(job.finish(30 * SLOWDOWN), 0, str(job))
        self.assertRegex(job.err, rf"warning: --output-filename: creating .* in {point}/out takes long")
        self.assertEqual(job.out, "in\n")
        self.assertEqual(self.cluster.shell("h0", f"cat {FOLDER}/out/rank.0/stdout"), "in\n")
        self.cluster.assert_clean()

    def test_dead_is_an_error_of_its_host_in_time(self):
        cases = (
            ("chdir", "work", "{point}/work/pwd", "'{point}/work'"),
            ("open", "pwd", "{point}/work/pwd", "'{point}/work/pwd'"),
            ("stat", "nothing", "nothing", "'{point}/nothing'"),  # looked for in PATH
            ("exec", "pwd", "{point}/work/pwd", "execute {point}/work/pwd"),
        )
        jobs = []
        for host, at in (("localhost", "h0"), ("host1", "h1")):
            for operation, name, command, words in cases:
                point, end = self.mount(at, operation, "forever", name)
                options = ("-x", f"PATH={point}:/usr/bin:/bin") if operation == "stat" else ()
                options += ("--wdir", f"{point}/work") if operation == "chdir" else ("--wdir", "/")
                began = time.monotonic()
                job = self.begin(host, command.format(point=point), options=options, start_timeout=START_TIMEOUT)
                jobs.append((operation, host, words.format(point=point), job, end, began))
        # Files of drun's own. It waits where SIGKILL reaches it, as with NFS.
        point, end = self.mount("h0", "stat", 0)
        self.server.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        job = self.begin("host1", "echo", "in", options=("--output-filename", f"{point}/out"), start_timeout=START_TIMEOUT)
        jobs.append(("stop", "--output-filename", f"{point}/out: its file system has given no answer within", job, end, began))
        for operation, host, words, job, end, began in jobs:
            self.assertEqual(job.finish(30 * SLOWDOWN), 75, f"{operation}\n{job}")
            # The job has no worker that runs, so --grace is not waited for.
            self.assertLess(time.monotonic() - began, (START_TIMEOUT + 12) * SLOWDOWN, f"{operation}\n{job}")
            self.assertIn(host, job.err)
            self.assertIn(words, job.err, operation)
            self.assertNotIn("its guard", job.err, "the agent fell silent")
        for _, _, _, _, end, _ in jobs:
            end()
        self.cluster.assert_clean()

    def test_a_worker_in_uninterruptible_sleep_is_named_and_not_waited_for(self):
        grace = 2
        point, end = self.mount("h1", "open", "forever", "data")
        self.cluster.shell("h1", f"touch {FOLDER}/data")
        job = self.start_drun("--grace", str(grace), "-np", "2", "-H", "host1:1,host2:1",
                              "sh", "-c", f'echo up; [ $RANK = 1 ] || exec cat {point}/data; exec sleep 1000')
        job.wait_for(r"\] up", 2)
        stuck = self.cluster.find("h1", f"^cat {point}")
        self.wait_until_asleep(stuck)
        interrupted = time.monotonic()
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(30 * SLOWDOWN), 130, str(job))
        # Grace and 2 s on each host, and drun's own end on a busy machine.
        self.assertLess(time.monotonic() - interrupted, (grace + 4) * SLOWDOWN, str(job))
        self.assertRegex(job.err, r"warning: host1: still there after KILL: pid \d+ \(cat\), in uninterruptible sleep")
        self.assertEqual(self.cluster.find_all("h1", f"^cat {point}"), [stuck], "nothing else is left there")
        shown = self.drun("clean", "-H", "host1")
        self.assertEqual(shown.status, 1, str(shown))
        self.assertIn(f"cat {point}/data", shown.out)
        self.assertEqual(self.drun("clean", "-H", "host1", "--yes", "--grace", "0.2").status, 1)
        self.assertIn(f"cat {point}/data", self.drun("clean", "-H", "host1").out, "it must not be forgotten")
        end()
        self.cluster.assert_clean()
        self.assertEqual(self.drun("clean", "-H", "host1", "--yes").status, 0)
        self.cluster.assert_clean()

    def test_a_process_outside_the_tree_in_uninterruptible_sleep_is_named_too(self):
        point, end = self.mount("h1", "open", "forever", "data")
        self.cluster.shell("h1", f"touch {FOLDER}/data")
        script = "import os, time; print('up', flush=True)\nwhile not os.path.exists('/tmp/go'): time.sleep(0.05)"
        self.cluster.shell("h1", "rm -f /tmp/go")
        job = self.start_drun("-np", "1", "-H", "host1:1", "python3", "-c", script)
        job.wait_for("up")
        with open(f"/proc/{self.cluster.find('h1', '^python3')}/environ", encoding="utf-8") as environ:
            marks = [one for one in environ.read().split("\0") if one.startswith(("DRUN_JOB_ID=", "DRUN_AGENT="))]
        self.assertEqual(len(marks), 2)
        stray = self.cluster.start("h1", "env", *marks, "cat", f"{point}/data")  # as `docker exec` would be
        self.wait_until_asleep(self.cluster.find("h1", f"^cat {point}"))
        self.cluster.shell("h1", "touch /tmp/go")
        self.assertEqual(job.finish(30 * SLOWDOWN), 75, str(job))  # its only worker has exited with 0
        self.assertRegex(job.err, r"warning: host1: still there after KILL: pid \d+ \(cat\), in uninterruptible sleep")
        end()
        stray.finish()
        self.cluster.assert_clean()

    def test_a_tool_on_a_dead_file_system_is_not_said_to_be_absent(self):
        point, end = self.mount("h1", "stat", "forever", "eu-stack")
        job = self.start_drun("--timeout", "2", "--stack-timeout", "1", "-x", f"PATH={point}:/usr/bin:/bin", "-np", "1", "-H",
                              "host1:1", "sleep", "1000")
        self.assertEqual(job.finish(30 * SLOWDOWN), 75, str(job))
        self.assertIn(f"no stack: looking for {point}/eu-stack did not end in time", job.err)
        end()
        self.cluster.assert_clean()

    def test_a_place_without_sockets_is_left_for_the_next_one(self):
        point, _ = self.mount("h1", "open", 0, "nothing")
        self.cluster.shell("h1", f"mount --bind {point} /tmp")
        self.addCleanup(self.cluster.shell, "h1", "umount /tmp")
        job = self.good("-H", "host1:1", "sh", "-c", f"echo $DRUN_AGENT; ls {FOLDER}")
        self.assertRegex(job.out, r"^/var/tmp/drun-", str(job))
        self.assertNotIn("drun-", job.out.split("\n", 1)[1], "left in /tmp")
        self.cluster.assert_clean()

    def wait_until_asleep(self, pid):
        """Until the process waits for the file system: in FUSE, until a signal makes it uninterruptible."""
        limit = time.monotonic() + 10 * SLOWDOWN
        while True:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                if re.search(r"\) [SD] ", stat.read()):
                    with open(f"/proc/{pid}/comm", encoding="utf-8") as comm:
                        if comm.read() == "cat\n":
                            return
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.02)

    def test_what_a_worker_puts_in_the_place_of_its_error_file(self):
        for script in ("mkfifo $TORCHELASTIC_ERROR_FILE", "ln -s /dev/zero $TORCHELASTIC_ERROR_FILE",
                       "mkdir $TORCHELASTIC_ERROR_FILE"):
            with self.subTest(script):
                began = time.monotonic()
                job = self.drun("-np", "1", "-H", "host1:1", "sh", "-c",
                                f"rm -f $TORCHELASTIC_ERROR_FILE; {script}; exit 3")
                self.assertEqual(job.status, 3, str(job))
                self.assertLess(time.monotonic() - began, 5 * SLOWDOWN, str(job))
        self.cluster.assert_clean()


class Full(Mounts):
    """Each file that drun writes: the job goes on, or ends with the reason. No file is silently short."""

    def test_an_error_that_comes_with_the_close_is_told(self):
        point, _ = self.mount("h0", "close", "EDQUOT")
        job = self.drun("--output-filename", f"{point}/output", "-np", "2", f"{BIN}/hello")
        self.assertEqual(job.status, 68, str(job))
        self.assertIn("disk quota exceeded", job.err.lower())
        self.assertIn("--output-filename", job.err)
        self.cluster.assert_clean()

    def test_errors_of_writes_are_told(self):
        for error, text in (("ENOSPC", "no space left on device"), ("EDQUOT", "disk quota exceeded"),
                            ("EIO", "input/output error")):
            point, _ = self.mount("h0", "write", error)
            for option, path, status in (("--report", "report", None), ("--events", "events", 0),
                                         ("--timeline", "timeline", None), ("--output-filename", "output", 68),
                                         ("--log-file", "log", None)):
                with self.subTest(option=option, error=error):
                    words = ("-v",) if option == "--log-file" else ()
                    job = self.drun(option, f"{point}/{path}", *words, "-np", "2", f"{BIN}/hello")
                    self.assertIn(text, job.err.lower(), str(job))
                    self.assertIn(f"{point}/{path}", job.err)
                    if status is not None:
                        self.assertEqual(job.status, status, str(job))
                    if status != 68:
                        self.assertEqual(job.out.count("hello from rank"), 2, str(job))
            with self.subTest("cache and known_hosts", error=error):
                job = self.cluster.run("h0", "env", f"XDG_CACHE_HOME={point}", "drun", "-np", "2", "-H",
                                       "localhost:1,host1:1", "echo", "in")
                self.assertEqual(job.status, 0, str(job))
                self.assertEqual(job.out.count("in\n"), 2)
                self.cluster.write("h0", "/root/config", f"Host other\n HostName h1\n Port 12345\n UserKnownHostsFile {point}/known\n"
                                                         "Include ~/.ssh/config\n")
                job = self.good("-F", "/root/config", "-np", "1", "-H", "other:1", "echo", "in")
                self.assertIn("good for this run only", job.err)
                self.assertIn(text, job.err.lower())
        self.cluster.assert_clean()
