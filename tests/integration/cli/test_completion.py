"""Completion in real shells: bash and zsh on a terminal, with a Tab; fish by `complete -C`."""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BIN = os.environ["DRUN_BIN_DIR"]
COMPLETIONS = pathlib.Path(os.environ["DRUN_COMPLETIONS"])
LIMIT = 20  # seconds
MARK = re.compile(rb"<<(.*?)>>")


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, argv, env, folder):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(argv[0], argv, env)
        self.seen = b""

    def until(self, pattern):
        """Reads until `pattern` matches. Returns the match and drops what was read."""
        deadline = time.monotonic() + LIMIT
        while not (match := re.search(pattern, self.seen)):
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {pattern} within {LIMIT} s in {self.seen!r}")
            self.seen += os.read(self.fd, 65536)
        self.seen = self.seen[match.end():]
        return match

    def completed(self, line):
        """The command line after a Tab behind `line`. Ctrl-X s shows it, Ctrl-U empties it."""
        os.write(self.fd, line.encode() + b"\t\x18s")
        match = self.until(MARK)
        os.write(self.fd, b"\x15")
        return match[1].decode()

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class InRealShells(unittest.TestCase):
    # Line, and what one Tab makes of it, in any shell.
    CASES = {
        "drun --transp": "drun --transport ",
        "drun --transport open": "drun --transport openssh ",
        "drun --transport=open": "drun --transport=openssh ",
        "drun --oversubscribe che": "drun --oversubscribe checker ",  # a program
        "drun benc": "drun bench ",
        "drun check --str": "drun check --strict ",
        "drun -F config -H fi": "drun -F config -H first",
        "drun -F config -H first:2,sec": "drun -F config -H first:2,second",
        "drun -F config --hosts=first:2,root@inc": "drun -F config --hosts=first:2,root@included",
        "drun -H @wor": "drun -H @workers",
        "drun -F config -H first:2,@wor": "drun -F config -H first:2,@workers",
        "drun --hostfile ho": "drun --hostfile hosts.txt ",
        "drun --hostfile=ho": "drun --hostfile=hosts.txt ",
        "drun --wdir fol": "drun --wdir folder/",
        "drun -np 2 ls ho": "drun -np 2 ls hosts.txt ",  # the command's own arguments
    }

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="drun-shells-"))
        folder = pathlib.Path(cls.folder)
        (folder / "config").write_text(f"Include {folder}/more.conf\nHost first second fir*\n", encoding="utf-8")
        (folder / "more.conf").write_text("Host included\n", encoding="utf-8")
        (folder / "hosts.txt").write_text("localhost\n", encoding="utf-8")
        (folder / "drun.toml").write_text('[hosts.workers]\nhosts = ["a", "b"]\n', encoding="utf-8")
        (folder / "folder").mkdir()
        (folder / "programs").mkdir()
        program = folder / "programs/checker"
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)
        cls.env = {"PATH": f"{BIN}:{folder}/programs:/usr/bin:/bin", "HOME": cls.folder, "TERM": "xterm",
                   "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": cls.folder, "XDG_DATA_HOME": cls.folder,
                   "XDG_CACHE_HOME": cls.folder}

    def shell(self, *argv):
        shell = Shell(argv, self.env, self.folder)
        self.addCleanup(shell.close)
        return shell

    def check_all(self, shell):
        for line, expected in self.CASES.items():
            with self.subTest(line=line):
                self.assertEqual(shell.completed(line), expected)

    def test_bash(self):
        shell = self.shell("bash", "--norc", "--noprofile", "-i")
        os.write(shell.fd, f"bind -x '\"\\C-xs\": printf \"<<%s>>\" \"$READLINE_LINE\"'; . {COMPLETIONS}/drun.bash; "
                           "bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; echo rea''dy\n".encode())
        shell.until(rb"\nready|\rready")
        self.check_all(shell)

    def test_bash_function_with_words(self):
        """Without a terminal, as tests of bash-completion do it."""
        script = (f". {COMPLETIONS}/drun.bash; COMP_LINE='drun --transp'; COMP_POINT=13; COMP_WORDS=(drun --transp); "
                  "COMP_CWORD=1; _drun; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "--norc", "-c", script], env=self.env, text=True, capture_output=True, check=True,
                              timeout=LIMIT)
        self.assertEqual((done.stdout, done.stderr), ("--transport\n", ""))

    def test_zsh(self):
        shell = self.shell("zsh", "-f", "-i")
        os.write(shell.fd, f"fpath=({COMPLETIONS} $fpath); autoload -Uz compinit; compinit -u -D; unsetopt beep; "
                           "show() { print -rn -- \"<<$BUFFER>>\" }; zle -N show; bindkey '^Xs' show; "
                           "bindkey '^U' kill-whole-line; print -r rea''dy\n".encode())
        shell.until(rb"\nready|\rready")
        self.check_all(shell)

    def test_fish(self):
        for line, expected in self.CASES.items():
            with self.subTest(line=line):
                script = f"source {COMPLETIONS}/drun.fish; complete -C'{line}'"
                done = subprocess.run(["fish", "-N", "-c", script], env=self.env, cwd=self.folder, text=True,
                                      capture_output=True, check=True, timeout=LIMIT)
                words = {found.split("\t")[0] for found in done.stdout.splitlines()}
                self.assertEqual((words, done.stderr), ({expected.strip().split(" ")[-1]}, ""))

    def test_the_scripts_have_no_syntax_errors(self):
        for argv in (["bash", "-n", "drun.bash"], ["zsh", "-n", "_drun"], ["fish", "-n", "drun.fish"]):
            subprocess.run(argv, cwd=COMPLETIONS, check=True, timeout=LIMIT)


def setUpModule():
    for shell in ("bash", "zsh", "fish"):
        if not shutil.which(shell):
            raise unittest.SkipTest(f"there is no {shell}")
