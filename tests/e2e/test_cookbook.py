"""The scripts of docs/cookbook.md, as they stand."""
import os
import re

from support import ClusterTest

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/cookbook.md")
# For each script, by its heading: lines that its output must have.
EXPECTED = {
    "A command once on every host": [rf"^\[localhost:0\].*{re.escape(os.uname().release)}", rf"^\[host1:1\].*{re.escape(os.uname().release)}"],
    "The same folder on every host": [r"^\[0\].*rate = 1$", r"^\[1\].*rate = 1$"],
    "Wait for machines that boot": [r"^\[0\].*ready$", r"^\[1\].*ready$"],
    "Train only if the network is good": [r"^\[0\].*trained$", r"^\[1\].*trained$"],
    "Start again from the last checkpoint": [r"^\[1\].*continues$"],
    "One program on rank 0, another on the others": ["rank 0 serves$", "rank 1 computes$"],
    "At most an hour, and say what went wrong": [r"^status 3 .*rank 1"],
    "One job after the other on the same hosts": [r"^\[1\].*rate 0\.1$", r"^\[1\].*rate 0\.01$"],
    "How collectives scale": [r"Rank  0 .* on +h0", r"Rank  1 .* on +h1"],
    "What a crashed machine left": [r"(?i)nothing"],
}
# Fails at its first start on host1 only.
TRAIN = """#!/bin/sh
mark=/root/job/checkpoint
[ "$RANK" = 1 ] || exit 0
[ -e $mark ] && { echo continues; exit 0; }
mkdir -p /root/job; touch $mark
exit 9
"""


def scripts():
    with open(PAGE, encoding="utf-8") as page:
        return dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```bash\n(.*?)^```$", page.read(), re.M | re.S))


class Cookbook(ClusterTest):
    def test_every_script(self):
        found = scripts()
        self.assertEqual(list(found), list(EXPECTED))
        self.cluster.write("h0", "/root/cook/job/settings", "rate = 1\n")
        for host in ("h0", "h1"):
            self.cluster.write(host, "/root/cook/train-with-checkpoints", TRAIN, mode=0o755)
        for heading, script in found.items():
            with self.subTest(heading):
                job = self.cluster.run("h0", "bash", "-c", script, cwd="/root/cook")
                self.assertEqual(job.status, 0, str(job))
                for line in EXPECTED[heading]:
                    self.assertRegex(job.out, re.compile(line, re.M), str(job))
        self.cluster.assert_clean()
