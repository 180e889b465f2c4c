"""The size of drun, most of which is line numbers: a header that brings a library's code into every source adds MBs."""
import os
import unittest

DRUN = os.path.join(os.environ["DRUN_BIN_DIR"], "drun")
LIMIT = 20_000_000  # bytes


class Size(unittest.TestCase):

    def test_drun_is_below_its_limit(self):
        self.assertLess(os.path.getsize(DRUN), LIMIT, "the largest parts: size -A " + DRUN + "; nm --size-sort -C " + DRUN)


if __name__ == "__main__":
    unittest.main()
