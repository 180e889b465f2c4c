"""The output on a terminal: progress bars beside lines, the size of --pty, the failure box. The terminal is tmux."""
import re
import time

from support import LIMIT_S, ClusterTest

WIDTHS = (40, 60, 80, 200)

# Rank 0 has tqdm's bar, and stops at 60 % until /tmp/go exists; the others print lines. argv: the columns of the bar.
BAR_AND_LINES = r"""
import os, sys, time
rank, columns = int(os.environ["RANK"]), int(sys.argv[1])
def bar(percent):
    sys.stderr.write(f"\r{percent:3d}%|{'#' * (columns * percent // 100):{columns}}|")
    sys.stderr.flush()
    time.sleep(0.01)
def wait():
    while not os.path.exists("/tmp/go"): time.sleep(0.02)
if rank in map(int, sys.argv[2].split(",")):
    sys.stderr.write("\r")
    for percent in range(0, 61, 5): bar(percent)
    wait()
    for percent in range(65, 101, 5): bar(percent)
    sys.stderr.write("\n")
else:
    for i in range(12): print("line", i, flush=True)
    wait()
"""
SIZES = r"""
import os, signal, sys
def show():
    size = os.get_terminal_size(1)
    print("size", size.columns, size.lines, os.environ.get("COLUMNS"), flush=True)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
show()
signal.sigwait({signal.SIGWINCH})
show()
"""
# Exits after all ranks have written theirs.
RAISES = r"""
import os, sys, time, traceback
try:
    raise ValueError(f"bad batch of rank {os.environ['RANK']}: " + "a long word or two " * 5)
except ValueError:
    traceback.print_exc()
ready = "/tmp/ready." + os.environ["DRUN_JOB_ID"]
open(f"{ready}.{os.environ['RANK']}", "w")
while not all(os.path.exists(f"{ready}.{rank}") for rank in range(4)): time.sleep(0.01)
sys.exit(1)
"""


class OnATerminal(ClusterTest):
    def setUp(self):
        for host in ("h0", "h1"):
            self.cluster.shell(host, "rm -f /tmp/go /tmp/ready.* /tmp/*.py")
            for name, text in (("bar", BAR_AND_LINES), ("sizes", SIZES), ("raises", RAISES)):
                self.cluster.write(host, f"/tmp/{name}.py", text)
        self.server = self.cluster.start("h0", "tmux", "-D", "-S", "/tmp/tmux", "-f", "/dev/null",
                                         env={"LANG": "C.UTF-8", "COLUMNS": "7", "LINES": "7"})
        self.addCleanup(self._end, self.server)

    def tearDown(self):
        self.tmux("kill-server")
        self.server.finish()
        self.cluster.assert_clean()

    def tmux(self, *words):
        job = self.cluster.run("h0", "tmux", "-u", "-S", "/tmp/tmux", *words)
        self.assertEqual(job.status, 0, str(job))
        return job.out

    def type(self, columns, command, rows=50):
        """Runs the command in its own window, named after its columns."""
        end = time.monotonic() + LIMIT_S
        while self.cluster.run("h0", "test", "-S", "/tmp/tmux").status != 0:
            self.assertLess(time.monotonic(), end, "no server")
            time.sleep(0.02)
        self.tmux("new-session", "-d", "-s", f"w{columns}", "-x", str(columns), "-y", str(rows),
                  f"{command}; echo over $?; exec sleep 1000")

    def screen(self, columns):
        """The window's rows, including those that have scrolled away."""
        shown = self.tmux("capture-pane", "-p", "-S", "-", "-t", f"w{columns}")
        return shown.rstrip("\n").split("\n")

    def wait_for(self, columns, good):
        """Returns the rows when `good` holds for them."""
        end = time.monotonic() + LIMIT_S
        while True:
            rows = self.screen(columns)
            if good(rows):
                return rows
            self.assertLess(time.monotonic(), end, "\n".join(rows))
            time.sleep(0.05)

    def go(self):
        for host in ("h0", "h1"):
            self.cluster.shell(host, "touch /tmp/go")

    def test_another_reader_of_the_terminal_does_not_stop_drun(self):
        self.cluster.write("h0", "/tmp/shared.sh", "exec 3<&0\ncat <&3 >/dev/null &\n"
                                                   "exec drun -np 1 sh -c 'touch /tmp/up; sleep 1; echo still here'\n")
        self.type(80, "sh /tmp/shared.sh")
        self.cluster.shell("h0", "while ! test -e /tmp/up; do sleep 0.02; done; rm /tmp/up")
        for _ in range(10):
            self.tmux("send-keys", "-t", "w80", *["x", "Enter"] * 100)  # both find the terminal readable; one is faster
        rows = self.wait_for(80, lambda rows: "over 0" in rows)
        self.assertIn("still here", rows)

    def test_workers_of_this_host_have_no_terminal_that_could_stop_them(self):
        self.type(80, "drun -np 2 -H localhost:1,host1:1 bash -ic 'echo bash of $RANK'")
        rows = self.wait_for(80, lambda rows: rows[-1] == "over 0")
        self.assertEqual(sorted(row for row in rows if "bash of" in row), ["[0] bash of 0", "[1] bash of 1"])
        self.type(60, "drun -np 1 sh -c 'true 2>/dev/null </dev/tty || echo none'")
        self.assertIn("none", self.wait_for(60, lambda rows: rows[-1] == "over 0"))

    def test_lines_of_one_rank_stand_above_the_bar_of_another(self):
        for columns in WIDTHS:
            self.type(columns, "drun -np 2 -H localhost:1,host1:1 python3 -SE /tmp/bar.py 50 0")
        lines = [f"[1] line {i}" for i in range(12)]
        for columns in WIDTHS:
            bar = f"[0]  60%|{'#' * 30}{'':20}|"[:columns].rstrip()
            rows = self.wait_for(columns, lambda rows: rows[-1] == bar and rows[-2] == lines[-1])
            self.assertEqual([row for row in rows if row.startswith("[")], [*lines, bar])
        self.go()
        for columns in WIDTHS:
            last = f"[0] 100%|{'#' * 50}|"
            rows = self.wait_for(columns, lambda rows: rows[-1] == "over 0")
            whole = [last[at:at + columns] for at in range(0, len(last), columns)]
            self.assertEqual(rows[-len(lines) - len(whole) - 1:], [*lines, *whole, "over 0"])

    def test_four_bars_have_four_rows_and_nothing_scrolls(self):
        for columns in WIDTHS:
            self.type(columns, "drun -H localhost:2,host1:2 python3 -SE /tmp/bar.py 50 0,1,2,3", rows=12)
        for columns in WIDTHS:
            bars = [f"[{rank}]  60%|{'#' * 30}{'':20}|"[:columns].rstrip() for rank in range(4)]
            rows = self.wait_for(columns, lambda rows: rows[-4:] == bars)
            self.assertFalse([row for row in rows[:-4] if row.startswith("[")], rows)
            self.assertEqual(self.tmux("display", "-p", "-t", f"w{columns}", "#{history_size}"), "0\n", rows)
        self.go()
        for columns in WIDTHS:
            rows = self.wait_for(columns, lambda rows: rows[-1] == "over 0")
            self.assertEqual(len([row for row in rows if re.match(r"\[\d\] 100%\|#+", row)]), 4, rows)
            self.assertFalse([row for row in rows if "60%" in row], rows)

    def test_pty_has_the_terminals_size_less_the_tag_also_later(self):
        self.type(110, "drun --pty -H localhost:1,host1:1 python3 -SE /tmp/sizes.py", rows=30)
        first = [f"[{rank}] size 106 30 None" for rank in range(2)]
        self.wait_for(110, lambda rows: sorted(row for row in rows if row.startswith("[")) == first)
        self.tmux("resize-window", "-t", "w110", "-x", "70", "-y", "20")
        rows = self.wait_for(110, lambda rows: rows[-1] == "over 0")
        self.assertEqual(sorted(rows[-3:-1]), [f"[{rank}] size 66 20 None" for rank in range(2)])

    def test_the_failure_box_is_as_wide_as_the_terminal_and_tells_a_traceback_once(self):
        for columns in WIDTHS:
            self.type(columns, "drun -np 4 -H localhost:4 python3 -SE /tmp/raises.py")
        for columns in WIDTHS:
            rows = self.wait_for(columns, lambda rows: rows[-1] == "over 1")
            top = next(i for i, row in enumerate(rows) if "first failure" in row)
            rule = min(columns, 78)
            self.assertEqual(rows[top], "  ╭─ first failure " + "─" * (rule - 19))
            self.assertEqual(rows[-2], "  ╰" + "─" * (rule - 3))
            box = rows[top + 1:-2]
            self.assertFalse([row for row in box if not row.startswith("  │ ")], rows)
            self.assertEqual(len([row for row in box if "Traceback" in row]), 1, rows)
            said = " ".join(row[4:].strip() for row in rows[top - 2:-2])
            self.assertRegex(said, "ranks 0-3 on localhost|failed in the same way", rows)
