"""Instructions of parts of drun, under callgrind: none may need a tenth more than counts.json says. If that is meant, or
if a part needs a tenth less, the new counts are committed with the change:

    DRUN_COUNTED=build/release/tests/drun_counted python3 tests/instructions/test_instructions.py --update

The counts are those of GCC 12 on x86-64. Code of other compilers and processors differs, so three tenths more are allowed
there."""
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

COUNTED = os.environ["DRUN_COUNTED"]
COUNTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "counts.json")
PARTS = ("start", "frames", "output")
IS_SAME_CODE = os.environ.get("DRUN_COMPILER", "").startswith("GNU-12.") and platform.machine() == "x86_64"
ALLOWED = 0.1 if IS_SAME_CODE else 0.3


def count(part):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--toggle-collect=drun_count",
                               COUNTED, part], capture_output=True, text=True, timeout=100, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found or int(found[1]) == 0:
        raise AssertionError(f"{part}: status {done.returncode}\n{done.stderr}")
    return int(found[1])


def setUpModule():
    if shutil.which("valgrind") is None:
        raise unittest.SkipTest("no valgrind: `scripts/packages install test`")


class Instructions(unittest.TestCase):
    def test_no_part_needs_a_tenth_more_than_before(self):
        with open(COUNTS, encoding="utf-8") as file:
            before = json.load(file)
        self.assertEqual(sorted(before), sorted(PARTS))
        for part in PARTS:
            with self.subTest(part):
                now = count(part)
                print(f"{part}: {now} instructions, {now / before[part] - 1:+.1%}")
                self.assertLess(now, before[part] * (1 + ALLOWED), f"{part} has become slower: {__doc__}")
                self.assertGreater(now, before[part] * (1 - 3 * ALLOWED), f"{part} has become faster: {__doc__}")


def main():
    if sys.argv[1:] == ["--update"]:
        with open(COUNTS, "w", encoding="utf-8") as file:
            json.dump({part: count(part) for part in PARTS}, file, indent=1)
            file.write("\n")
        return
    unittest.main()


if __name__ == "__main__":
    main()
