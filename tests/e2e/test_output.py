"""Workers' output and input: whole lines, every byte, bounded memory, and no rank slowed down by another's reader."""
import hashlib
import os
import re
import shlex
import signal
import time

from support import LIMIT_S, SLOWDOWN, ClusterTest

HOSTS = "localhost:2,host1:2"
MEMORY_KB = 64 << 10

# Joins tagged lines; argv is a file. Exits with an error at a line that is not rank by rank 1, 2, 3, ...
CHECK_NUMBERED = r"""
import re, sys
last = {}
parts = {}
for line in open(sys.argv[1], "rb"):
    # A worker that is not scheduled for 200 ms within a line gets that line shown in parts: marked, so that they fit.
    tag = re.match(rb"\[(\d+)(\+?)\] ", line)
    if tag and tag[2]:
        line = b"[" + tag[1] + b"] " + parts.pop(tag[1]) + line[tag.end():]
    if tag and not line.endswith(b"can\n"):
        parts[tag[1]] = re.sub(rb"^\[\d+\] ", b"", line)[:-1]
        continue
    match = re.fullmatch(rb"\[(\d+)\] line (\d+) of a worker that writes as fast as it can\n", line)
    if not match:
        sys.exit(f"torn: {line!r}")
    rank, number = int(match[1]), int(match[2])
    if number != last.get(rank, 0) + 1:
        sys.exit(f"rank {rank}: {number} after {last.get(rank)}")
    last[rank] = number
print(sorted(last.items()))
"""
# The output of each rank, by its tags: argv is a file; prints "RANK BYTES SHA256 BREAKS".
CHECK_BYTES = r"""
import hashlib, re, sys
ranks = {}  # the lines of each, and the number of breaks
for line in open(sys.argv[1], "rb"):
    match = re.match(rb"\[(\d+)(\+?)\] ", line)
    if not match:
        sys.exit(f"no tag: {line[:80]!r}")
    text = ranks.setdefault(int(match[1]), [[], 0])
    if match[2]:
        text[0][-1], text[1] = text[0][-1][:-1], text[1] + 1
    text[0].append(line[match.end():])
for rank, (lines, breaks) in sorted(ranks.items()):
    text = b"".join(lines)
    print(rank, len(text), hashlib.sha256(text).hexdigest(), breaks)
"""


def memory_kb(pid):
    """Peak memory of a process in kB; None if it is gone."""
    try:
        match = re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{pid}/status", encoding="ascii").read())
    except OSError:
        return None
    return int(match[1]) if match else None


class OutputTest(ClusterTest):
    def shell(self, script, limit=LIMIT_S, **options):
        """Runs a script on h0 that must succeed."""
        job = self.cluster.run("h0", "bash", "-c", f"set -eo pipefail; {script}", limit=limit, **options)
        self.assertEqual(job.status, 0, str(job))
        return job

    def check(self, program, path):
        job = self.cluster.run("h0", "python3", "-c", program, path)
        self.assertEqual(job.status, 0, str(job))
        return job.out

    def background(self, script):
        job = self.cluster.start("h0", "bash", "-c", script)
        self.addCleanup(self._end, job)
        return job

    def assert_bounded(self, name, kb):
        self.assertIsNotNone(kb, name)
        if SLOWDOWN == 1:  # sanitizers need memory of their own
            self.assertLess(kb, MEMORY_KB, name)

    def assert_gone(self, pattern, limit):
        """Asserts that within the limit no such process is left on any host."""
        end = time.monotonic() + limit
        while True:
            left = [entry for rest in self.cluster.processes().values() for entry in rest if re.search(pattern, entry[1])]
            if not left:
                return
            self.assertLess(time.monotonic(), end, f"still there after {limit:.0f} s: {left}")
            time.sleep(0.05)


class Lines(OutputTest):
    def test_none_is_torn_lost_or_doubled_at_full_speed(self):
        worker = "seq -f 'line %.0f of a worker that writes as fast as it can' 100000"
        self.shell(f"drun -H {HOSTS} {worker} > /tmp/out", limit=3 * LIMIT_S)
        self.assertEqual(self.check(CHECK_NUMBERED, "/tmp/out"), f"{[(rank, 100000) for rank in range(4)]}\n")
        self.cluster.assert_clean()

    def test_stdout_and_stderr_in_one_pipe_do_not_mix(self):
        worker = "seq -f 'out %.0f' 20000 & seq -f 'err %.0f' 20000 >&2; wait"
        self.shell(f"drun -H {HOSTS} sh -c {worker!r} 2>&1 | cat > /tmp/out")
        job = self.shell("grep -cxE '\\[[0-3]\\] (out|err) [0-9]+' /tmp/out; sort /tmp/out | uniq | wc -l; wc -l < /tmp/out")
        self.assertEqual(job.out.split(), ["160000"] * 3, str(job))

    def test_without_tags_lines_of_several_ranks_stay_whole(self):
        self.shell(f"drun --no-tag-output -H {HOSTS} seq 30000 > /tmp/out")
        job = self.shell("sort -n /tmp/out | uniq -c | awk '$1 != 4 {exit 1} END {print NR}'")
        self.assertEqual(job.out, "30000\n")

    def test_every_byte_of_one_worker_is_kept(self):
        worker = "import os; b = bytes(range(256)) * 40000 + b'\\\\x00 no end'; [os.write(1, b[i:i + 777]) for i in range(0, len(b), 777)]"
        job = self.shell(f'drun -H host1:1 python3 -c "{worker}" | sha256sum')
        expected = hashlib.sha256(bytes(range(256)) * 40000 + b"\x00 no end").hexdigest()
        self.assertEqual(job.out.split()[0], expected)

    def test_every_byte_of_many_workers_is_kept_behind_their_tags(self):
        # Without \r and \n, which would start lines with their own tags.
        alphabet = bytes(b for b in range(256) if b not in b"\r\n")
        worker = f"import os; b = bytes.fromhex('{alphabet.hex()}'); [os.write(1, b * 3 + b'\\\\n') for i in range(4000)]"
        self.shell(f'drun -H {HOSTS} python3 -c "{worker}" > /tmp/out')
        text = (alphabet * 3 + b"\n") * 4000
        expected = [[str(rank), str(len(text)), hashlib.sha256(text).hexdigest()] for rank in range(4)]
        self.assertEqual([line.split()[:3] for line in self.check(CHECK_BYTES, "/tmp/out").splitlines()], expected)

    def test_no_newline_at_the_end(self):
        self.assertEqual(self.good("-np", "1", "printf", "abc").out, "abc")
        job = self.good("-H", "localhost:1,host1:1", "printf", "abc")
        self.assertEqual(sorted(job.out.splitlines(True)), ["[0] abc\n", "[1] abc\n"])

    def test_a_prompt_is_shown_while_its_worker_waits(self):
        worker = "test $RANK = 1 || { printf Name:; until grep -q Name: /tmp/out; do sleep 0.05; done; echo Ada; }"
        self.shell(f"rm -f /tmp/out; drun -H localhost:2 sh -c '{worker}' > /tmp/out")
        self.assertEqual(self.cluster.shell("h0", "cat /tmp/out"), "[0] Name:Ada\n")

    def test_a_reader_that_pauses_breaks_no_line(self):
        # The workers block in the middle of their lines for as long as the reader pauses.
        self.shell(f"drun -H {HOSTS} seq 400000 | (sleep 1; head -c 3000000; sleep 1; cat) > /tmp/out")
        job = self.shell("grep -cxE '\\[[0-3]\\] [0-9]+' /tmp/out; wc -l < /tmp/out")
        self.assertEqual(job.out.split(), ["1600000"] * 2, str(job))

    def test_a_line_of_100_mb_beside_others_costs_no_memory(self):
        # Rank 0's line is interrupted by lines of the other ranks, and can be joined again.
        worker = ("if [ $RANK = 0 ]; then head -c 100000000 /dev/zero | tr '\\000' x; echo; touch /tmp/long-is-over; "
                  "else while [ ! -e /tmp/long-is-over ]; do echo tick; sleep 0.05; done; fi")
        self.shell("rm -f /tmp/long-is-over")
        job = self.background(f"exec drun -H localhost:4 sh -c \"{worker.replace('$', chr(92) + '$')}\" > /tmp/out")
        pid, most = self.cluster.find("h0", r"^drun$"), None
        while job.front.poll() is None:
            most = memory_kb(pid) or most
            time.sleep(0.01)
        self.assertEqual(job.finish(), 0, str(job))
        self.assert_bounded("drun", most)
        rank0 = self.check(CHECK_BYTES, "/tmp/out").splitlines()[0].split()
        text = b"x" * 100000000 + b"\n"
        self.assertEqual(rank0[:3], ["0", str(len(text)), hashlib.sha256(text).hexdigest()])
        self.assertGreater(int(rank0[3]), 0, "the others never came in between")
        self.shell("rm -f /tmp/out /tmp/long-is-over")


class SleepingReader(OutputTest):
    """drun's stdout is a pipe that is not read."""

    def begin(self, worker, name="yes"):
        script = f"rm -f /tmp/status; (drun --grace 1 -H {HOSTS} {worker}; echo $? > /tmp/status) | sleep 1000"
        job = self.background(script)
        pid = self.cluster.find("h0", r"^drun$")
        self.cluster.find("h1", f"^{name}$")
        # Stuck: all credit is used up, and drun reads only heartbeats.
        before = -10000
        while (now := int(re.search(r"rchar: (\d+)", open(f"/proc/{pid}/io", encoding="ascii").read())[1])) > before + 5000:
            before = now
            time.sleep(1)
        return job, pid

    def assert_all_bounded(self):
        processes = self.cluster.processes()
        found = [(name, pid) for rest in processes.values() for pid, name, _ in rest if name.startswith("drun")]
        self.assertGreaterEqual(len(found), 3, found)
        for name, pid in found:
            self.assert_bounded(name, memory_kb(pid))

    def end_reader(self):
        os.kill(self.cluster.find("h0", r"^sleep$"), signal.SIGKILL)

    def status(self):
        return self.cluster.shell("h0", "cat /tmp/status").strip()

    def test_memory_is_bounded_on_both_sides(self):
        job, _ = self.begin("yes a line of some length")  # until the reader exits
        self.assert_all_bounded()
        self.end_reader()
        self.assertEqual(job.finish(), 128 + signal.SIGKILL, str(job))
        self.assertEqual(self.status(), "141")
        self.cluster.assert_clean()

    def test_memory_is_bounded_for_single_bytes_too(self):
        # Each byte waits until the agent has read the one before: one Output frame each. Sets the name in the kernel.
        script = ("import array, fcntl, os, termios\n"
                  "open('/proc/self/comm', 'w').write('byte-by-byte')\n"
                  "left = array.array('i', [0])\n"
                  "while True:\n"
                  "    os.write(1, b'\\n')\n"
                  "    while fcntl.ioctl(1, termios.FIONREAD, left) or left[0]: pass\n")
        job, _ = self.begin(f"python3 -c {shlex.quote(script)}", "byte-by-byte")
        self.assert_all_bounded()
        self.end_reader()
        job.finish()
        self.cluster.assert_clean()

    def test_a_worker_that_closes_its_terminal_goes_on(self):
        worker = "exec < /dev/null > /dev/null 2>&1; sleep 0.2; exit 3"
        for stdin in ("none", "0"):
            job = self.drun("--pty", "-np", "2", "-H", "localhost:2", "--stdin", stdin, "sh", "-c", worker)
            self.assertEqual(job.status, 3, str(job))

    def test_all_that_a_terminal_holds_at_its_workers_end_arrives(self):
        # Writes until no more is accepted, then exits: at that time every buffer is full, and the reader begins.
        worker = ("import hashlib, os, select, tty; tty.setraw(1); os.set_blocking(1, False); h = hashlib.sha256()\n"
                  "for i in range(10**9):\n"
                  "    text = f'{i:04095d}\\n'.encode()\n"
                  "    while text and select.select([], [1], [], 3)[1]:\n"
                  "        try: n = os.write(1, text)\n"
                  "        except BlockingIOError: continue\n"
                  "        h.update(text[:n]); text = text[n:]\n"
                  "    if text: break\n"
                  "print(os.getpid(), h.hexdigest(), i, file=open('/tmp/wrote', 'w'))\n")
        reader = "until read pid hash n < /tmp/wrote && ! kill -0 $pid; do sleep 0.1; done 2> /dev/null; sha256sum"
        job = self.shell(f"rm -f /tmp/wrote; drun --pty -np 1 python3 -c {shlex.quote(worker)} | ({reader}); cat /tmp/wrote")
        got, (_, wrote, n) = job.out.split()[0], job.out.split()[2:]
        self.assertGreaterEqual(int(n), 64, "less than 256 KiB")
        self.assertEqual(got, wrote, str(job))

    def test_ctrl_c_ends_the_workers_and_drun_itself(self):
        job, pid = self.begin("yes")
        os.kill(pid, signal.SIGINT)
        self.assert_gone(r"^yes$", 3 * SLOWDOWN)
        self.assert_gone(r"^drun", 12 * SLOWDOWN)
        self.end_reader()
        job.finish()  # only then has the shell written drun's status
        self.assertEqual(self.status(), "130")
        self.cluster.assert_clean()

    def test_a_failure_ends_the_workers_and_the_reader_still_gets_all(self):
        job = self.background("rm -f /tmp/status; (drun --grace 1 -H " + HOSTS +
                              " sh -c 'test $RANK = 3 && { seq 20000; sleep 2; exit 3; }; exec yes'; echo $? > /tmp/status)"
                              " | (until [ -e /tmp/read ]; do sleep 0.1; done; cat > /tmp/out)")
        self.cluster.find("h1", r"^yes$")
        self.assert_gone(r"^yes$", 15 * SLOWDOWN)
        self.cluster.shell("h0", "touch /tmp/read")
        self.assertEqual(job.finish(), 0, str(job))
        self.assertEqual(self.status(), "3")
        self.assertEqual(self.cluster.shell("h0", "grep -c '^\\[3\\] ' /tmp/out").strip(), "20000")
        self.cluster.assert_clean()


class Shown(OutputTest):
    def test_tags_name_the_rank_or_the_host_and_the_rank(self):
        where = ("-H", "localhost:1,host1:1", "echo", "hi")
        for option, tags in (("--tag-output", ("[0]", "[1]")), ("--tag-output=rank", ("[0]", "[1]")),
                             ("--tag-output=host", ("[localhost:0]", "[host1:1]"))):
            job = self.good(option, *where)
            self.assertEqual(sorted(job.out.splitlines()), sorted(f"{tag} hi" for tag in tags), str(job))

    def test_times_are_those_of_the_agent_not_of_the_reader(self):
        # The output before the date fits into the credit, but not into the reader's pipe: drun writes it 3 s later.
        worker = "seq 60000; date +now:%s.%N"
        job = self.shell(f"drun --timestamp-output -H localhost:1,host1:1 sh -c '{worker}' | (sleep 3; grep now:)",
                         env={"TZ": "UTC-3"})
        lines = re.findall(r"^(\d\d):(\d\d):(\d\d\.\d{3}) \[(\d)\] now:([0-9.]+)$", job.out, re.MULTILINE)
        self.assertEqual(sorted(line[3] for line in lines), ["0", "1"], str(job))
        for hours, minutes, seconds, _, written in lines:
            shown = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
            late = (shown - (float(written) + 3 * 3600)) % 86400
            self.assertTrue(late < 2 * SLOWDOWN or late > 86399, f"{late} s\n{job}")

    def test_files_have_every_byte_of_every_rank_and_the_terminal_those_that_are_asked_for(self):
        worker = "printf \"out\\\\0\\\\r%s\" $RANK; printf err$RANK >&2"
        job = self.good("--ranks", "1,3", "--output-filename", "/tmp/logs", "-H", HOSTS, "sh", "-c", worker)
        self.assertEqual(sorted(re.findall(r"^\[(\d)\] err\1$", job.err, re.MULTILINE)), ["1", "3"], str(job))
        for stream in (job.out, job.err):
            self.assertEqual(set(re.findall(r"\[(\d)", stream)), {"1", "3"}, str(job))
        for rank in range(4):
            dump = self.cluster.shell("h0", f"od -An -c /tmp/logs/rank.{rank}/stdout; cat /tmp/logs/rank.{rank}/stderr")
            self.assertEqual(dump.split(), ["o", "u", "t", "\\0", "\\r", str(rank), f"err{rank}"])

    def test_files_are_written_as_the_bytes_come(self):
        self.cluster.shell("h0", "rm -rf /tmp/logs /tmp/go")
        job = self.start_drun("--output-filename", "/tmp/logs", "-np", "1", "sh", "-c",
                              "printf half; until [ -e /tmp/go ]; do sleep 0.05; done")
        self.cluster.shell("h0", "until grep -q half /tmp/logs/rank.0/stdout; do sleep 0.05; done; touch /tmp/go")
        self.assertEqual(job.finish(), 0, str(job))

    def test_a_rank_that_does_not_exist_is_named(self):
        job = self.drun("--ranks", "0,4", "-H", HOSTS, "true")
        self.assertEqual(job.status, 2, str(job))
        self.assertRegex(job.err, r"--ranks: there is no rank 4 among 4 workers \[usage\]\n\s+hint: --ranks 0-3")

    def test_output_that_cannot_be_written_is_an_error_however_late(self):
        for script in ("echo hi", "seq 200000", "seq 200000; exit 0"):
            job = self.shell(f"drun -np 2 sh -c '{script}' > /dev/full || echo status $?")
            self.assertIn("status 68", job.out, str(job))
            self.assertIn("no space left on device", job.err)

    def test_colour_is_for_terminals(self):
        command = "drun -H localhost:1,host1:1 echo hi"
        on_terminal = f"script -qec '{command}' /dev/null < /dev/null"
        job = self.shell(on_terminal, env={"TERM": "xterm"})
        colours = re.findall(r"\x1b\[(\d+)m\[(\d)\]\x1b\[0m hi", job.out)
        self.assertEqual(sorted(rank for _, rank in colours), ["0", "1"], repr(job.out))
        self.assertEqual(len({colour for colour, _ in colours}), 2, "both hosts have the same")
        for script, env in ((command, {"TERM": "xterm"}), (on_terminal, {"TERM": "dumb"}),
                            (on_terminal, {"TERM": "xterm", "NO_COLOR": "1"})):
            shown = self.shell(script, env=env).out
            self.assertNotRegex(shown, r"\x1b\[[0-9;]*m", repr(shown))  # erasing the progress line is not a color
            if env["TERM"] == "dumb" or script is command:
                self.assertNotIn("\x1b", shown)


class Stdin(OutputTest):
    def test_120_mb_arrive_at_rank_0_from_a_file_and_from_a_pipe(self):
        self.shell("head -c 120000000 /dev/urandom > /tmp/in")
        expected = self.shell("sha256sum < /tmp/in").out.split()[0]
        worker = "sh -c 'test $RANK = 1 || sha256sum'"
        for script in (f"drun -H host1:1,localhost:1 {worker} < /tmp/in", f"cat /tmp/in | drun -H host1:1,localhost:1 {worker}"):
            job = self.shell(script, limit=3 * LIMIT_S)
            self.assertEqual(job.out, f"[0] {expected}  -\n", str(job))
        self.shell("rm /tmp/in")

    def test_the_end_is_passed_on(self):
        self.assertEqual(self.good("-np", "1", "cat").out, "")
        job = self.cluster.run("h0", "drun", "--stdin", "all", "-H", HOSTS, "cat", stdin_text="one\ntwo")
        self.assertEqual(job.status, 0, str(job))
        self.assertEqual(sorted(job.out.splitlines()), sorted(f"[{r}] {w}" for r in range(4) for w in ("one", "two")))
        job = self.cluster.run("h0", "drun", "--stdin", "2", "-H", HOSTS, "cat", stdin_text="x\n")
        self.assertEqual(job.out, "[2] x\n")
        job = self.cluster.run("h0", "drun", "--stdin", "none", "-H", HOSTS, "cat", stdin_text="x\n")
        self.assertEqual(job.out, "")

    def test_ranks_that_exit_or_close_their_input_do_not_disturb_the_others(self):
        worker = ("case $RANK in 1) head -c 100000 > /dev/null; exit 0;; 2) exec < /dev/null; until [ -e /tmp/read ]; do "
                  "sleep 0.1; done;; *) sha256sum; touch /tmp/read;; esac")
        self.shell("rm -f /tmp/read; head -c 20000000 /dev/urandom > /tmp/in")
        expected = self.shell("sha256sum < /tmp/in").out.split()[0]
        job = self.shell(f"drun --stdin all -H localhost:3,host1:1 sh -c '{worker}' < /tmp/in", limit=2 * LIMIT_S)
        self.assertEqual(sorted(job.out.splitlines()), [f"[0] {expected}  -", f"[3] {expected}  -"], str(job))

    def test_one_that_never_reads_is_left_behind(self):
        worker = "if [ $RANK = 1 ]; then until [ -e /tmp/read ]; do sleep 0.1; done; else sha256sum; touch /tmp/read; fi"
        self.shell("rm -f /tmp/read; head -c 5000000 /dev/urandom > /tmp/in")
        expected = self.shell("sha256sum < /tmp/in").out.split()[0]
        job = self.shell(f"drun --stdin all -H localhost:2 sh -c '{worker}' < /tmp/in", limit=30 + LIMIT_S)
        self.assertEqual(job.out, f"[0] {expected}  -\n", str(job))
        self.assertRegex(job.err, "rank 1 has not read its standard input for 30 s")

    def test_one_that_has_read_a_single_line_is_waited_for(self):
        # Less than a page of the pipe: the pipe accepts nothing more for all that time.
        worker = ("if [ $RANK = 1 ]; then read -r line; until [ -e /tmp/warned ]; do sleep 0.1; done; "
                  "(echo $line; cat) | sha256sum; else sha256sum; fi")
        self.shell("rm -f /tmp/warned /tmp/err; seq 1000000 > /tmp/in")
        expected = self.shell("sha256sum < /tmp/in").out.split()[0]
        job = self.shell(f"drun --stdin all -H localhost:2 sh -c '{worker}' < /tmp/in 2> /tmp/err & "
                         "until grep -q 'rank 1' /tmp/err; do sleep 0.1; done; touch /tmp/warned; wait $!; cat /tmp/err >&2",
                         limit=30 + LIMIT_S)
        self.assertEqual(sorted(job.out.splitlines()), [f"[{rank}] {expected}  -" for rank in range(2)], str(job))
        self.assertRegex(job.err, "rank 1 has read nothing more of its standard input for 30 s: the others wait for it")

    def test_one_that_reads_too_late_fails_instead_of_missing_bytes(self):
        worker = "if [ $RANK = 1 ]; then until [ -e /tmp/read ]; do sleep 0.1; done; sha256sum; else sha256sum; touch /tmp/read; fi"
        self.shell("rm -f /tmp/read; head -c 5000000 /dev/urandom > /tmp/in")
        job = self.cluster.run("h0", "sh", "-c", f"drun --stdin all -H localhost:2 sh -c '{worker}' < /tmp/in",
                               limit=30 + LIMIT_S)
        self.assertEqual(job.status, 1, str(job))
        self.assertNotIn("[1] ", job.out)
        self.assertRegex(job.err, "error: rank 1: began to read its standard input after")
        self.cluster.assert_clean()
