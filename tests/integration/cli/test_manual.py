"""The man pages and the completions have the options of --help, no more and no fewer; mandoc accepts the pages; the
install rules put everything where the shells and man search."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

DRUN = os.environ["DRUN_BIN_DIR"] + "/drun"
PACKAGING = pathlib.Path(os.environ["DRUN_PACKAGING_DIR"])  # of the build
COMMANDS = {"drun.1": [], "drun-bench.1": ["bench"], "drun-check.1": ["check"], "drun-clean.1": ["clean"],
            "drun-init.1": ["init"]}
NAME = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
COLUMN = 30  # of the descriptions in --help


def output(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True, timeout=20).stdout


def help_options(command):
    """The names that `drun COMMAND --help` lists."""
    found = set()
    for line in output(DRUN, *command, "--help").splitlines():
        if line.startswith("  -"):
            found.update(NAME.findall(line[:COLUMN] if line[COLUMN - 1:COLUMN] == " " else line))
    return found


def page_options(page):
    """The names before the descriptions of a page."""
    found, is_tag = set(), False
    for line in page.read_text(encoding="utf-8").splitlines():
        if is_tag and line.startswith(r"\fB\-"):
            found.update(name.replace("\\-", "-") for name in re.findall(r"\\fB(\\-[^\\]*(?:\\-[^\\]*)*)\\fR", line))
        is_tag = line == ".TP"
    return found


class Manual(unittest.TestCase):
    def pages(self):
        found = sorted(PACKAGING.glob("man?/*.[15]"))
        self.assertEqual([page.name for page in found],
                         [*sorted(COMMANDS), "drun-hostfile.5", "drun.toml.5"])
        return found

    def test_pages_have_the_options_of_the_help(self):
        for page in self.pages()[:len(COMMANDS)]:
            with self.subTest(page=page.name):
                options = help_options(COMMANDS[page.name])
                self.assertLess({"-h", "--help", "-H", "--hosts"}, options)
                self.assertEqual(page_options(page), options)

    def test_completions_have_the_options_of_the_help(self):
        for command in COMMANDS.values():
            with self.subTest(command=command):
                lines = output(DRUN, "__complete", *command, "-").splitlines()
                self.assertEqual({line.split("\t")[0] for line in lines[3:]}, help_options(command))

    def test_pages_have_the_sections_that_people_expect(self):
        for page in self.pages()[:len(COMMANDS)]:
            text = page.read_text(encoding="utf-8")
            self.assertEqual(re.findall(r"^\.SH (.*)", text, re.MULTILINE),
                             ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES",
                              "EXAMPLES", "SEE ALSO"], page.name)
            self.assertNotRegex(text, r'@VERSION@|^\.\\"', page.name)

    def test_mandoc_has_no_warning(self):
        for page in self.pages():
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], text=True, capture_output=True,
                                  check=False, timeout=20)
            self.assertEqual((done.returncode, done.stdout), (0, ""), page.name)

    def test_install_rules(self):
        with tempfile.TemporaryDirectory(prefix="drun-man-") as prefix:
            output("cmake", f"-DCMAKE_INSTALL_PREFIX={prefix}", "-P", str(PACKAGING / "cmake_install.cmake"))
            found = sorted(str(path.relative_to(prefix)) for path in pathlib.Path(prefix).rglob("*") if path.is_file())
        self.assertEqual(found, sorted([
            "share/bash-completion/completions/drun", "share/fish/vendor_completions.d/drun.fish",
            "share/zsh/site-functions/_drun", *(f"share/man/man1/{page}.gz" for page in COMMANDS),
            "share/man/man5/drun-hostfile.5.gz", "share/man/man5/drun.toml.5.gz"]))

