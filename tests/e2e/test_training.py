"""`train` on two hosts with each method of compression: it learns, all ranks have the same model, and less is sent."""
import re

from support import BIN, ClusterTest


class TwoHosts(ClusterTest):
    options = ("--bare", "h1")

    def setUp(self):
        self.cluster.put("h1", f"{BIN}/train")

    def train(self, method, *options):
        """Trains. Returns the bytes that the second host sent."""
        before = self._sent()
        job = self.drun("-np", "4", "-H", "localhost:2,host1:2", "-p", "12345", "./train", "--compression", method,
                        *options, cwd=BIN)
        self.assert_trained(job, 4)
        return self._sent() - before

    def _sent(self):
        table = self.cluster.shell("h1", "cat /proc/net/dev")
        return sum(int(line.split(":")[1].split()[8]) for line in table.splitlines()
                   if ":" in line and not line.strip().startswith("lo:"))

    def test_halves_and_sparse_gradients_are_less_than_whole_ones(self):
        dense = self.train("none")
        self.assertLess(self.train("fp16"), 0.7 * dense)
        self.assertLess(self.train("bf16"), 0.7 * dense)
        self.assertLess(self.train("topk=0.01"), 0.3 * dense)
        self.assertLess(self.train("partial=8"), 0.4 * dense)

    def test_a_threshold_and_small_buckets(self):
        self.train("threshold=0.001", "--bucket-mib", "0.005")

    def test_a_method_that_is_none_is_named_once_per_rank(self):
        job = self.drun("-np", "2", "-H", "localhost:1,host1:1", "-p", "12345", "./train", "--compression", "topk=7",
                        cwd=BIN)
        self.assertEqual(job.status, 2, str(job))
        ranks = re.findall(r"(?m)^\[(\d)\] train: --compression: 'topk=7': a fraction above 0, at most 1", job.err)
        self.assertTrue(ranks, str(job))  # one may have been ended before it said so
        self.assertEqual(len(ranks), len(set(ranks)), str(job))
        self.cluster.assert_clean()
