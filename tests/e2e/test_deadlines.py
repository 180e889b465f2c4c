"""Every wait of the start has a deadline whose error names what is missing; --timeout shows what the ranks do;
progress, events."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

from support import BIN, LIMIT_S, SLOWDOWN, ClusterTest

# h1's sshd runs this in place of every command. /root/mode controls how far a login gets.
GATE = """#!/bin/sh
case $(cat /root/mode) in
  open) ;;
  wait) while ! [ -e /root/go ]; do sleep 0.05; done;;
  silent) exec sleep 1000;;
  need) nonce=${SSH_ORIGINAL_COMMAND#*DRUN-}; echo "DRUN-${nonce%%-*}-NEED"; exec sleep 1000;;
esac
exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
"""
SILENT_SERVER = """import socket, sys
server = socket.create_server(("0.0.0.0", 4444))
print("listening", flush=True)
taken = []
while True:
    taken.append(server.accept())
"""
TIME = r"[0-9.]+ [mu]?s"
LIMIT = 4  # --start-timeout of the starts that hang, in seconds


class Gated(ClusterTest):
    """h1 admits logins as the test says, h3 delays each by some seconds."""

    hosts = 4
    options = ("--sshd", "h1=ForceCommand /root/gate", "--sshd", "h3=AuthorizedKeysFile none",
               "--sshd", f"h3=AuthorizedKeysCommand /usr/bin/sleep {LIMIT + 2}", "--sshd", "h3=AuthorizedKeysCommandUser root")

    def setUp(self):
        self.cluster.write("h1", "/root/gate", GATE, 0o755)
        self.gate("open")

    def gate(self, mode):
        self.cluster.shell("h1", f"rm -f /root/go; echo {mode} > /root/mode")

    def open_gate(self):
        self.cluster.shell("h1", "touch /root/go")

    def events(self, path="/root/events"):
        text = self.cluster.shell("h0", f"cat {path} 2>/dev/null || true")
        return [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]

    def wait_for_event(self, **fields):
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            for event in self.events():
                if all(event.get(name) == value for name, value in fields.items()):
                    return event
            time.sleep(0.05)
        raise AssertionError(f"no event like {fields}: {self.events()}")

    def freeze(self, host, pattern=r"^drun-agent$"):
        """Freezes a process, until the end of the test at the latest."""
        pid = self.cluster.find(host, pattern)
        os.kill(pid, signal.SIGSTOP)

        def thaw():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.addCleanup(thaw)
        return thaw


class StartHangs(Gated):
    def hangs(self, status, words, *arguments, **options):
        begin = time.monotonic()
        job = self.drun("--start-timeout", str(LIMIT), *arguments, "hostname", **options)
        self.assertLess(time.monotonic() - begin, LIMIT + 20 * SLOWDOWN, str(job))
        self.assertEqual(job.status, status, str(job))
        self.assertEqual(job.out, "")
        for word in words:
            self.assertRegex(job.err, word)
        return job

    def test_a_name_server_that_never_answers(self):
        self.cluster.filter("h2", input=["udp dport 53 drop", "tcp dport 53 drop"])
        self.addCleanup(self.cluster.unfilter, "h2")
        job = self.cluster.run("h0", "unshare", "-m", "sh", "-c",
                               "echo nameserver 10.77.0.3 > /root/resolv && mount --bind /root/resolv /etc/resolv.conf && "
                               f"exec drun --start-timeout {LIMIT} -H far.example:1 hostname")
        self.assertEqual(job.status, 68, str(job))
        self.assertRegex(job.err, rf"far.example: resolve: no answer for 'far.example' within {LIMIT} s")

    def test_a_host_that_drops_connections(self):
        self.cluster.filter("h2", input=["tcp dport 12345 drop"])
        self.addCleanup(self.cluster.unfilter, "h2")
        self.hangs(68, [r"host2: connect: 10.77.0.3 port 12345: timed out after \d+ s"], "-H", "localhost:1,host2:1")
        self.cluster.assert_clean()

    def test_a_port_where_no_ssh_server_speaks(self):
        server = self.cluster.start("h2", "python3", "-c", SILENT_SERVER)
        self.addCleanup(self._end, server)
        server.wait_for("listening")
        self.hangs(68, [rf"host2: handshake: no answer within {LIMIT} s; the port is open, but no ssh server speaks"],
                   "-p", "4444", "-H", "host2:1")

    def test_a_login_that_never_answers(self):
        self.hangs(68, [r"host3: login: no answer within \d+ s"], "-H", "localhost:1,host3:1")
        self.cluster.assert_clean(20 * SLOWDOWN)

    def test_a_login_that_never_answers_through_openssh(self):
        self.hangs(68, [rf"host3: agent: no hello within {LIMIT} s; OpenSSH's client does not say how far it got"],
                   "--transport", "openssh", "-H", "localhost:1,host3:1")
        self.cluster.assert_clean(20 * SLOWDOWN)

    def test_a_host_that_never_says_hello(self):
        self.gate("silent")
        for transport in ("ssh", "openssh"):
            job = self.hangs(68, [rf"host1: agent: no hello within {LIMIT} s", "--start-timeout"],
                             "--transport", transport, "-H", "localhost:1,host1:1")
            self.assertNotIn("localhost:", job.err)
        self.end_gate()

    def test_a_host_that_does_not_take_the_agent(self):
        self.gate("need")
        self.hangs(68, [rf"host1: agent: (its delivery did not end|no hello) within {LIMIT} s"], "-H", "localhost:1,host1:1")
        self.end_gate()

    def end_gate(self):
        """Kills sleeping ForceCommands: they have no agent, and so outlive their connection."""
        for pid, _, command in self.cluster.processes()["h1"]:
            if command.endswith("sleep 1000"):
                os.kill(pid, signal.SIGKILL)
        self.cluster.assert_clean()

    def test_all_hosts_that_hang_are_named_each_with_its_phase(self):
        self.gate("silent")
        self.cluster.filter("h2", input=["tcp dport 12345 drop"])
        self.addCleanup(self.cluster.unfilter, "h2")
        job = self.hangs(68, ["host1: agent: no hello", "host2: connect: ", "host3: login: no answer"],
                         "-H", "localhost:1,host1:1,host2:1,host3:1")
        self.assertNotIn("localhost:", job.err)
        self.end_gate()

    def begin(self, hosts, *options, until, start_timeout=8):
        """Begins a start that waits for host1, after all other hosts have their agents."""
        self.gate("wait")
        self.cluster.shell("h0", "rm -f /root/events")
        # Less than the 10 s after which the guard of a frozen agent ends it.
        job = self.start_drun("--start-timeout", str(start_timeout), "--events", "/root/events", *options, "-H", hosts, "hostname")
        self.wait_for_event(event="agent_ready", host=until)
        return job

    def test_an_agent_that_freezes_before_the_probe(self):
        job = self.begin("localhost:1,host1:1,host2:1", until="host2")
        thaw = self.freeze("h2")
        self.open_gate()
        self.assertEqual(job.finish(), 75, str(job))
        self.assertRegex(job.err, r"host2: probe: its agent gave no answer within \d+ s")
        self.assertIn("raise --start-timeout", job.err)
        thaw()
        self.cluster.assert_clean()

    def test_several_frozen_agents_are_all_named(self):
        job = self.begin("localhost:1,host1:1,host2:1", until="host2")
        thaws = [self.freeze("h2"), self.freeze("h0")]
        self.open_gate()
        self.assertEqual(job.finish(), 75, str(job))
        self.assertRegex(job.err, r"localhost: probe: its agent gave no answer within \d+ s \[deadline\]\n  and host2: probe: ")
        self.assertIn("raise --start-timeout", job.err)
        for thaw in thaws:
            thaw()
        self.cluster.assert_clean()

    def test_an_agent_that_falls_silent_is_lost_with_its_host(self):
        # On a slow machine host1 may still be connecting when host2's silence is noticed. Below 10 s: as in begin().
        job = self.begin("localhost:1,host1:1,host2:1", "--heartbeat-timeout", "5", until="host2", start_timeout=30)
        thaw = self.freeze("h2")
        self.open_gate()
        self.assertEqual(job.finish(), 68, str(job))
        # On a busy machine drun may notice it later than the agent's guard, whose limit is 8 s.
        self.assertRegex(job.err, r"host2: (agent|probe): silent for \d+ s|"
                                  r"(?s:host2: \w+: the connection to the agent ended.*silent for 8 s in state T, its guard ends it)")
        thaw()
        self.cluster.assert_clean()


class Running(ClusterTest):
    hosts = 2

    def test_a_rank_that_never_joins_is_named_to_those_that_wait_and_by_drun(self):
        job = self.drun("--start-timeout", "6", "-x", "DRUN_INIT_TIMEOUT=7",
                        "-H", "localhost:1,host1:1", "sh", "-c", "test $RANK = 1 && exec sleep 1000; exec ./hello", cwd=BIN)
        self.assertEqual(job.status, 1, str(job))
        self.assertRegex(job.err, r"not every rank called drun_init within \d+ s; missing: "
                                  r"rank 1 on host1 \(has not joined; pid \d+ runs\)")
        self.assertRegex(job.err, r"warning: 1 of 2 ranks joined the job within \d+ s and may wait for the others: "
                                  r"rank 1 on host1 \(pid \d+ runs\)")
        self.cluster.assert_clean()

    def test_a_host_that_is_silent_until_the_end_is_named(self):
        job = self.start_drun("--grace", "0.5", "--heartbeat-timeout", "100", "-H", "localhost:1,host1:1",
                              "sh", "-c", "echo ready; sleep 1000")
        job.wait_for(r"\] ready", 2)
        pids = [self.cluster.find("h1", name) for name in (r"^drun-guard$", r"^drun-agent$")]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish(), 130, str(job))
        self.assertRegex(job.err, r"warning: host host1 was lost: silent for 1\d s: the host is down, frozen or cut off")
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        self.cluster.assert_clean()

    def timeout(self, *command, options=(), hosts="localhost:1,host1:1"):
        job = self.drun("--timeout", "3", *options, "-H", hosts, *command, cwd=BIN)
        self.assertEqual(job.status, 75, str(job))
        self.assertIn("error: --timeout: the job did not end within 3 s", job.err)
        self.cluster.assert_clean()
        return job

    def test_timeout_shows_the_state_of_each_rank_and_where_its_program_is(self):
        job = self.timeout("sh", "-c", "test $RANK = 0 && ./hello; sleep 1000; true")
        # A rank that waits looks at its job now and then.
        self.assertRegex(job.err, r"rank 0 on localhost: pid \d+ \(sh\) sleeps.*; pid \d+ \(hello\) (sleeps|runs).*s of CPU; joined")
        self.assertRegex(job.err, r"rank 1 on host1: pid \d+ \(sh\) .* pid \d+ \(sleep\) .*; has not joined")
        hello = job.err[job.err.index("stack of rank 0, hello:"):]
        self.assertRegex(hello, r"#\d+ drun_init\n(.*\n)*.*#\d+ main")
        self.assertNotIn("0x", hello)

    def test_timeout_folds_equal_stacks_and_knows_who_has_ended(self):
        job = self.timeout("sh", "-c", "test $RANK = 2 && exit 0; exec sleep 1000", hosts="localhost:2,host1:2")
        self.assertIn("stack of ranks 0-1,3, sleep:", job.err)
        self.assertIn("rank 2 on host1: exited with status 0", job.err)

    def test_timeout_names_a_host_that_does_not_answer(self):
        job = self.start_drun("--timeout", "3", "--stack-timeout", "1", "-H", "localhost:1,host1:1", "sh", "-c",
                              "echo ready; sleep 1000")
        job.wait_for(r"\] ready", 2)
        pid = self.cluster.find("h1", r"^drun-agent$")
        os.kill(pid, signal.SIGSTOP)
        job.wait_for("rank 1 on host1: no answer from its agent")
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(job.finish(), 75, str(job))
        self.cluster.assert_clean()

    def test_timeout_without_a_tool_says_what_to_install(self):
        for tool in ("eu-stack", "gdb"):
            script = f"if [ -e /usr/bin/{tool} ]; then mount --bind /dev/null /usr/bin/{tool}; fi"
            self.cluster.shell("h1", script)
            self.addCleanup(self.cluster.shell, "h1", f"umount /usr/bin/{tool} 2>/dev/null || true")
        job = self.timeout("sleep", "1000", hosts="host1:1")
        self.assertIn("rank 0, sleep: no stack: neither eu-stack nor gdb is there", job.err)
        self.assertIn("apt-get install elfutils", job.err)

    def test_timeout_does_not_wait_for_a_tool_that_hangs(self):
        self.cluster.write("h1", "/root/eu-stack", "#!/bin/sh\nexec sleep 1000\n", 0o755)
        begin = time.monotonic()
        job = self.timeout("sleep", "1000", options=("-x", "PATH=/root:/usr/bin:/bin", "--stack-timeout", "1"), hosts="host1:1")
        self.assertLess(time.monotonic() - begin, 12 * SLOWDOWN)  # 13 s with the default of --stack-timeout
        self.assertIn("rank 0, sleep: no stack: eu-stack did not finish in time", job.err)

    def test_timeout_without_stacks(self):
        job = self.timeout("sleep", "1000", options=("--stack-timeout", "0"))
        self.assertIn("rank 1 on host1: pid", job.err)
        self.assertNotIn("stack", job.err)


def screen(data):
    """The final screen of a terminal that has received `data`, line by line: handles CR, LF and erase to end of
    line."""
    lines, column = [""], 0
    for token in re.findall(r"\x1b\[K|\x1b\[[0-9;]*m|\r|\n|[^\r\n\x1b]+", data):
        if token == "\r":
            column = 0
        elif token == "\n":
            lines.append("")
            column = 0
        elif token == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif not token.startswith("\x1b"):
            lines[-1] = lines[-1][:column].ljust(column) + token + lines[-1][column + len(token):]
            column += len(token)
    return lines


class Progress(Gated):
    def on_terminal(self, *arguments, meanwhile=None, term="xterm"):
        """Runs drun on its own pty. Returns its status and all that it wrote there. Calls `meanwhile` with the output
        so far."""
        argv = self.cluster.entering("h0", "root", "/root", "drun", *arguments)
        pid, master = pty.fork()
        if pid == 0:
            os.environ.update(TERM=term, PATH=f"{BIN}:{os.environ['PATH']}")
            os.execv(argv[0], argv)
        data = b""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    more = os.read(master, 65536)
                except OSError:
                    break  # the other side is closed
                if not more:
                    break
                data += more
            if meanwhile and meanwhile(data.decode(errors="replace")):
                meanwhile = None
        else:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        os.close(master)
        return os.waitstatus_to_exitcode(status), data.decode(errors="replace")

    def test_a_terminal_shows_who_is_slow_and_nothing_of_it_stays(self):
        self.gate("wait")

        def release(seen):
            if "connecting 2/3: waiting for host1 (agent)" not in seen:
                return False
            self.open_gate()
            return True
        status, data = self.on_terminal("-H", "localhost:1,host1:1,host2:1", "echo", "hi", meanwhile=release)
        self.assertEqual(status, 0, data)
        self.assertIn("drun: connecting 2/3: waiting for host1 (agent)", data)
        shown = screen(data)
        self.assertEqual(sorted(line for line in shown if line.startswith("[")), ["[0] hi", "[1] hi", "[2] hi"], data)
        self.assertFalse([line for line in shown if "connecting" in line or "probing" in line], data)

    def test_a_terminal_is_told_which_network_was_chosen(self):
        self.open_gate()
        status, data = self.on_terminal("-H", "localhost:1,host1:1", "true")
        self.assertEqual(status, 0, data)
        nics = [host["nic"] for host in self.cluster.data["hosts"]]
        self.assertIn(f"drun: note: network 10.77.0.0/24: {nics[0]} on localhost, {nics[1]} on host1", data)
        self.assertNotIn("network 10.77", self.good("-H", "localhost:1,host1:1", "true").err)

    def test_an_error_takes_the_line_away(self):
        self.gate("silent")
        status, data = self.on_terminal("--start-timeout", str(LIMIT), "-H", "localhost:1,host1:1", "true")
        self.assertEqual(status, 68, data)
        self.assertIn("waiting for host1 (agent)", data)
        shown = screen(data)
        self.assertTrue(any(line.startswith("drun: error: host1: agent: no hello") for line in shown), data)
        self.assertFalse([line for line in shown if "connecting" in line], data)
        for pid, _, command in self.cluster.processes()["h1"]:
            if command.endswith("sleep 1000"):
                os.kill(pid, signal.SIGKILL)

    def test_a_dumb_terminal_gets_no_line(self):
        self.gate("wait")
        begin = time.monotonic()

        def release(_):
            if time.monotonic() - begin < 1:
                return False
            self.open_gate()
            return True
        status, data = self.on_terminal("-H", "localhost:1,host1:1", "echo", "hi", meanwhile=release, term="dumb")
        self.assertEqual(status, 0, data)
        self.assertNotIn("connecting", data)

    def test_a_quick_start_shows_no_line(self):
        status, data = self.on_terminal("--events", "/root/events", "-np", "2", "echo", "hi")
        self.assertEqual(status, 0, data)
        # On a busy machine the start may take so long that a line is drawn and erased. StartWatch's unit test checks
        # that there is none before 300 ms.
        started = [event["elapsed"] for event in self.events() if event["event"] == "worker_started"]
        self.assertEqual(len(started), 2)
        self.assertEqual(sorted(line for line in screen(data) if line and "OMP_NUM_THREADS=" not in line), ["[0] hi", "[1] hi"], data)
        self.assertEqual(data.count("drun: note: OMP_NUM_THREADS="), 1, data)
        if max(started) < 0.25:
            self.assertNotIn("drun:", data.replace("drun: note: OMP_NUM_THREADS=", ""))
            self.assertNotIn("\x1b[K", data)

    def test_a_pipe_gets_no_line(self):
        self.gate("wait")
        job = self.start_drun("-H", "localhost:1,host1:1", "--events", "/root/events", "echo", "hi", env={"TERM": "xterm"})
        time.sleep(1)  # not for synchronization: longer than a terminal would stay without a line
        self.open_gate()
        self.assertEqual(job.finish(), 0, str(job))
        self.assertNotIn("connecting", job.err)

    def test_v_gives_a_line_per_stage_with_the_slowest_host_and_vv_one_per_host(self):
        job = self.good("-v", "--no-cache", "-H", "localhost:1,host1:1", "true")
        for stage in ("connect", "probe", "prepare", "start"):
            self.assertRegex(job.err, rf" {stage} 2 hosts {TIME} \(slowest (localhost|host1) {TIME}\)\n")
        self.assertNotIn("login ", job.err)
        job = self.good("-vv", "--no-cache", "-H", "localhost:1,host1:1", "true")
        self.assertRegex(job.err, f" host1: resolve {TIME}, connect {TIME}, handshake {TIME}, login {TIME}, agent {TIME}\n")
        self.assertRegex(job.err, f" localhost: agent {TIME}\n")
        self.assertRegex(job.err, f" host1: probe {TIME}\n")


class EventsFile(Gated):
    def test_events_tell_the_whole_job(self):
        job = self.drun("--events", "/root/events", "-H", "localhost:1,host1:2", "sh", "-c",
                        "test $RANK = 2 && exit 3; exec sleep 1000")
        self.assertEqual(job.status, 3, str(job))
        events = self.events()
        self.assertEqual(events[0]["schema"], 1)
        self.assertFalse([event for event in events[1:] if "schema" in event])
        self.assertEqual(events[0]["event"], "job_begun")
        self.assertEqual(events[0]["np"], 3)
        self.assertEqual(events[0]["hosts"], [{"name": "localhost", "workers": 1}, {"name": "host1", "workers": 2}])
        self.assertEqual(events[-1]["event"], "job_ended")
        self.assertEqual(events[-1]["status"], 3)
        for event in events:
            self.assertRegex(event["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual([event["elapsed"] for event in events], sorted(event["elapsed"] for event in events))

        def all_of(name):
            return [event for event in events if event["event"] == name]
        connected = {event["host"]: event["phases"] for event in all_of("host_connected")}
        self.assertEqual(list(connected["host1"]), ["resolve", "connect", "handshake", "login"])
        self.assertEqual(connected["localhost"], {})
        self.assertIn("agent", {event["host"]: event["phases"] for event in all_of("agent_ready")}["host1"])
        nics = {event["host"]: event["interface"] for event in all_of("interface_chosen")}
        self.assertEqual(nics["host1"], self.cluster.data["hosts"][1]["nic"])
        started = {event["rank"]: (event["host"], event["pid"]) for event in all_of("worker_started")}
        self.assertEqual({rank: host for rank, (host, _) in started.items()}, {0: "localhost", 1: "host1", 2: "host1"})
        exited = {event["rank"]: event for event in all_of("worker_exited")}
        self.assertEqual(sorted(exited), [0, 1, 2])
        self.assertEqual((exited[2]["status"], exited[2]["signal"], exited[2]["ended_by_drun"]), (3, None, False))
        self.assertEqual((exited[0]["status"], exited[0]["signal"], exited[0]["ended_by_drun"]), (None, 15, True))
        self.assertEqual({rank: event["pid"] for rank, event in exited.items()},
                         {rank: pid for rank, (_, pid) in started.items()})
        failure, = all_of("first_failure")
        self.assertEqual((failure["rank"], failure["host"], failure["status"]), (2, "host1", 3))
        stop, = all_of("stop_ordered")
        self.assertIn("exited with status 3", stop["why"])

    def test_a_start_that_fails_is_told_too(self):
        job = self.drun("--events", "/root/events", "-H", "localhost:1,10.77.0.200:1", "--start-timeout", "2", "true")
        self.assertEqual(job.status, 68, str(job))
        failed, = [event for event in self.events() if event["event"] == "host_failed"]
        self.assertEqual(failed["host"], "10.77.0.200")
        self.assertIn("connect", failed["error"])
        self.assertEqual(self.events()[-1]["event"], "job_ended")

    def test_a_full_disk_is_one_warning_and_the_job_goes_on(self):
        job = self.good("--events", "/dev/full", "-np", "2", "echo", "hi")
        self.assertEqual(job.out.count("hi\n"), 2)
        self.assertEqual(job.err.count("--events"), 1, job.err)

    def test_places_that_can_not_be_written_are_refused_before_anything_starts(self):
        for path, word in (("/nonexistent/events", "No such file"), ("-", "stdout belongs to the workers")):
            job = self.drun("--events", path, "-np", "1", "echo", "hi")
            self.assertEqual((job.status, job.out), (2, ""), str(job))
            self.assertIn(word.lower(), job.err.lower())
