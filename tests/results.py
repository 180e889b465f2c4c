"""A unittest runner that also writes one JSON line per case to the file $DRUN_TEST_RESULT: {"name", "seconds",
"status"}.

  results.py FILE [Class[.test] ...]    runs the tests of a module

scripts/test reads from these files which cases ran, in which build, which were skipped, and which were slowest.
"""
import json
import os
import sys
import time
import unittest


def record(name, seconds, status):
    """`status`: passed, failed or skipped. Does nothing without $DRUN_TEST_RESULT."""
    path = os.environ.get("DRUN_TEST_RESULT")
    if path:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps({"name": name, "seconds": round(seconds, 3), "status": status}) + "\n")


class Result(unittest.TextTestResult):
    """Prints the seconds of each test, and records them."""

    def startTest(self, test):
        self.began, self.status = time.monotonic(), "passed"
        super().startTest(test)

    def stopTest(self, test):
        seconds = time.monotonic() - self.began
        self.stream.writeln(f"    {seconds:.1f} s")
        record(test.id(), seconds, self.status)
        super().stopTest(test)

    def addError(self, test, err):
        self.status = "failed"
        super().addError(test, err)

    def addFailure(self, test, err):
        self.status = "failed"
        super().addFailure(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.status = "failed"
        super().addSubTest(test, subtest, err)

    def addSkip(self, test, reason):
        self.status = "skipped"
        super().addSkip(test, reason)


def run(suite):
    """Runs a suite. Returns its result."""
    path = os.environ.get("DRUN_TEST_RESULT")
    if path and os.path.exists(path):
        os.unlink(path)  # from an earlier run
    return unittest.TextTestRunner(verbosity=2, stream=sys.stdout, resultclass=Result).run(suite)


def main():
    path, names = sys.argv[1], sys.argv[2:]
    folder, file = os.path.split(os.path.realpath(path))
    sys.path.insert(0, folder)
    name = os.path.splitext(file)[0]
    result = run(unittest.defaultTestLoader.loadTestsFromNames([f"{name}.{one}" for one in names] or [name]))
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
