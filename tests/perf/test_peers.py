"""README.md and docs/benchmarks.md have the figures of docs/benchmarks/peers.json, and the pure parts of perf/peers."""
import contextlib
import copy
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "perf"))
from lib import compare, conditions, launchers, measure, page, tables  # noqa: E402
from lib.cluster import Short  # noqa: E402


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Pages(unittest.TestCase):
    def setUp(self):
        self.data = page.load()
        self.folder = tempfile.mkdtemp(prefix="drun-pages-")
        self.addCleanup(shutil.rmtree, self.folder)
        for name in page.PAGES:
            os.makedirs(os.path.dirname(os.path.join(self.folder, name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(self.folder, name))

    def change(self, name, old, new):
        path = os.path.join(self.folder, name)
        text = read(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))
        self.assertNotEqual(text, read(path))

    def test_have_the_figures_of_the_last_run(self):
        self.assertEqual(page.differing(self.data), [], "perf/peers --render writes these pages anew")

    def test_a_figure_changed_by_hand_is_found(self):
        for name in page.PAGES:
            for part in page.PART.finditer(read(os.path.join(ROOT, name))):
                with self.subTest(page=name, part=part[2]):
                    at = re.search(r"\d\.\d|\d\d", part[0])
                    self.change(name, part[0], f"{part[0][:at.start()]}9999{part[0][at.end():]}")
                    self.assertEqual(page.differing(self.data, self.folder), [name])
                    page.write(self.data, self.folder)
                    self.assertEqual(page.differing(self.data, self.folder), [])

    def test_a_page_that_other_figures_wrote_is_found(self):
        row = next(row for row in self.data["benchmarks"]["start"]["rows"] if row["what"] == launchers.DRUN)
        row["seconds"] = [10 * value for value in row["seconds"]]
        self.assertIn("docs/benchmarks.md", page.differing(self.data))

    def test_text_by_hand_stays(self):
        self.change("README.md", "# drun\n", "# drun\n\nBy hand.\n")
        self.assertEqual(page.differing(self.data, self.folder), [])

    def test_a_page_without_a_part_is_an_error(self):
        self.change("README.md", "<!-- begin figures", "<!-- figures")
        with self.assertRaisesRegex(page.PageError, "the parts none, not figures"):
            page.differing(self.data, self.folder)

    def test_say_that_the_limit_of_the_load_was_raised(self):
        self.data["load"]["limit"] = page.DEFAULT_MAX_LOAD * self.data["machine"]["processors"]
        self.assertNotIn("Other programs", page.conditions(self.data))
        self.data["load"]["limit"] *= 4
        self.assertIn("Other programs", page.conditions(self.data))

    def test_pictures_are_there(self):
        shown = set(re.findall(r"\]\((benchmarks/\w+\.svg)\)", read(os.path.join(ROOT, "docs/benchmarks.md"))))
        self.assertEqual(shown, {f"benchmarks/{name}.svg" for name in ("start", "ending", "output", "stdin")})
        for name in shown:
            text = read(os.path.join(ROOT, "docs", name))
            self.assertIn("</svg>", text)
            self.assertNotIn("<dc:date>", text)


class Tables(unittest.TestCase):
    DATA = {"hosts": [4, 16], "rounds": 3, "rows": [
        {"what": "floor", "hosts": 4, "seconds": [0.2, 0.1, 0.9], "processor": [0.01, 0.02, 0.03], "mib": 10},
        {"what": "pdsh", "hosts": 4, "seconds": [0.4, 0.5, 0.3], "processor": [0.01, 0.02, 0.03], "mib": 11},
        {"what": "floor", "hosts": 16, "seconds": [0.5, 0.5, 0.5], "processor": [0.04, 0.04, 0.04], "mib": 12},
        {"what": "pdsh", "hosts": 16, "failed": "status 1: pdsh: `no`"}]}

    def test_name_who_came_up_short_and_why(self):
        table, shortfalls = tables.start(self.DATA)
        self.assertEqual(table.splitlines()[2:], [
            "| floor | 0.20 (0.10-0.90), 1.00 | 0.50 (0.50-0.50), 1.00 | 0.04 | 12 |",
            "| pdsh | 0.40 (0.30-0.50), 2.00 | short |  |  |"])
        self.assertIn("\n- pdsh on 16 hosts: `status 1: pdsh: 'no'`", shortfalls)

    def test_compare_with_the_base_of_the_same_size(self):
        self.assertEqual(tables.ratios("start", self.DATA), {(4, "floor"): 1, (4, "pdsh"): 2, (16, "floor"): 1})


class Rounds(unittest.TestCase):
    def rounds(self, once, required=("a",)):
        with contextlib.redirect_stderr(io.StringIO()):
            return measure.rounds(["a", "b"], 2, once, required)

    def test_take_turns_and_do_not_count_the_first(self):
        calls = []

        def once(name):
            calls.append(name)
            return {"seconds": len(calls)}

        self.assertEqual(self.rounds(once), [{"what": "a", "seconds": [3, 5]}, {"what": "b", "seconds": [4, 6]}])
        self.assertEqual(calls, ["a", "b"] * 3)

    def test_keep_no_figure_of_a_peer_that_came_up_short(self):
        calls = []

        def once(name):
            calls.append(name)
            if name == "b" and calls.count("b") == 2:
                raise Short("3 lines")
            return {"seconds": 1}

        self.assertEqual(self.rounds(once), [{"what": "a", "seconds": [1, 1]}, {"what": "b", "failed": "3 lines"}])
        self.assertEqual("".join(calls), "ab" + "aba" + "a", "a warms up again, on hosts that may be new")

    def test_have_a_size_that_was_measured_with_one_of_that_order(self):
        """A launcher that shows its speed only from 100 on, one that is slow, and one whose speed is known from the first."""
        for wanted, tried, size in (({10: 100, 100: 900, 900: 1000}, [10, 100, 900], 1000), ({10: 2}, [10], 10), ({10: 14}, [10], 14)):
            sizes = []
            self.assertEqual(measure.settled(10, lambda n: sizes.append(n) or wanted[n]), size)
            self.assertEqual(sizes, tried)

    def test_are_refused_if_a_required_one_came_up_short(self):
        calls = []

        def once(name):
            calls.append(name)
            if name == "a" and calls.count("a") == 3:
                raise Short(f"no {name}")
            return {"seconds": 1}

        with self.assertRaisesRegex(SystemExit, "a: no a"):
            self.rounds(once)
        self.assertEqual("".join(calls), "ababa")


class Refusals(unittest.TestCase):
    GOOD = {"CMAKE_BUILD_TYPE": "RelWithDebInfo"}
    DONE = "ninja: no work to do."

    def test_of_builds(self):
        self.assertIsNone(conditions.refusal_of_build(self.GOOD, [], self.DONE))
        for variables, changed, pending, reason in [
                ({}, [], self.DONE, "there is no build"),
                ({"CMAKE_BUILD_TYPE": "Debug"}, [], self.DONE, "of type Debug, not an optimized one"),
                ({**self.GOOD, "DRUN_SANITIZE": "thread"}, [], self.DONE, "with sanitizers thread"),
                (self.GOOD, ["cli/main.cpp"], self.DONE, "not committed.*cli/main.cpp"),
                (self.GOOD, [], "[1/2] Building CXX object", "not a build of this commit: cmake"),
                (self.GOOD, [], "", "not a build of this commit")]:
            with self.subTest(reason):
                self.assertRegex(conditions.refusal_of_build(variables, changed, pending), reason)

    def test_of_a_loaded_machine(self):
        self.assertIsNone(conditions.refusal_of_load(1.0, 1.0))
        self.assertIn("above 1.0", conditions.refusal_of_load(1.01, 1.0))

    def test_name_the_peers_that_are_not_installed(self):
        with mock.patch.object(launchers.shutil, "which", lambda program: program != "pdsh"):
            self.assertEqual(launchers.missing(), [launchers.PDSH])
            self.assertIn("not installed: pdsh;", conditions.refusal("build", 99))
            self.assertNotIn(launchers.PDSH, launchers.contenders("bin", ["host1"]))

    def test_know_the_folders_of_the_product(self):
        for name in conditions.SOURCES:
            self.assertTrue(os.path.exists(os.path.join(ROOT, name)), name)


class CommandLines(unittest.TestCase):
    WORDS = ("seq", "-f", "a 'line' %08.0f", "9")

    def test_reach_the_worker_as_they_were_given(self):
        with mock.patch.object(launchers, "missing", lambda: []):
            found = launchers.contenders("bin", ["host1", "host2"], tagged=True)
        self.assertEqual(len(found), 2 + len(launchers.PEERS))
        for name, launcher in found.items():
            with self.subTest(name):
                words = shlex.split(launcher.line(*self.WORDS))
                if launcher.is_remote_shell:  # it joins its words by spaces
                    words[-1:] = shlex.split(words[-1])
                    self.assertEqual(shlex.split(launcher.line(*self.WORDS))[-1], shlex.join(self.WORDS))
                self.assertEqual(tuple(words[-len(self.WORDS):]), self.WORDS)
                self.assertIn("host1,host2", words)


class Comparison(unittest.TestCase):
    def setUp(self):
        self.data = page.load()

    def slow(self, factor):
        """The data with another time of drun's start at the first size."""
        other = copy.deepcopy(self.data)
        row = next(row for row in other["benchmarks"]["start"]["rows"] if row["what"] == launchers.DRUN)
        row["seconds"] = [factor * value for value in row["seconds"]]
        return other

    def test_of_equal_runs_differs_nowhere(self):
        text, n_different = compare.report(self.data, copy.deepcopy(self.data))
        self.assertEqual(n_different, 0)
        self.assertIn(f"0 of {len(compare.compared(self.data, self.data))} ratios", text)

    def test_finds_more_than_a_fifth_in_both_directions(self):
        for factor, expected in [(1.15, 0), (0.87, 0), (1.25, 1), (0.8, 1)]:
            with self.subTest(factor):
                self.assertEqual(compare.report(self.data, self.slow(factor))[1], expected)

    def test_finds_a_figure_that_only_one_run_has(self):
        other = self.slow(1)
        other["benchmarks"]["start"]["rows"] = [row for row in other["benchmarks"]["start"]["rows"] if row["what"] != launchers.CLUSH]
        n_figures = len([key for key in tables.medians("start", self.data["benchmarks"]["start"]) if key[1] == launchers.CLUSH])
        self.assertGreater(n_figures, 0)
        self.assertEqual(compare.report(self.data, other)[1], n_figures)
        self.assertEqual(compare.report(other, self.data)[1], n_figures)


if __name__ == "__main__":
    unittest.main()
