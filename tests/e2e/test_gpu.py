"""Collectives on GPU memory between hosts, with stand-ins for NVIDIA's driver and NCCL. ctest sets DRUN_GPU_RANKS,
DRUN_FAKE_CUDA_LIB and DRUN_FAKE_NCCL_LIB."""
import glob
import os
import shutil
import tempfile

from support import ClusterTest


class Hosts(ClusterTest):
    hosts = 3

    def setUp(self):
        # Visible on all hosts, which are on this machine.
        self.folder = tempfile.mkdtemp(prefix="drun-e2e-gpu-", dir="/var/cache")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        for name in ("meetings", "lib"):
            os.mkdir(f"{self.folder}/{name}")
        shutil.copy2(os.environ["DRUN_GPU_RANKS"], f"{self.folder}/ranks")
        shutil.copy2(os.environ["DRUN_FAKE_CUDA_LIB"], f"{self.folder}/lib/libcuda.so.1")
        shutil.copy2(os.environ["DRUN_FAKE_NCCL_LIB"], f"{self.folder}/lib/libnccl.so.2")

    def collectives(self, ranks, hosts):
        # This driver shows one GPU, which the ranks of a host share as if each were a host to NCCL.
        job = self.drun("-np", str(ranks), "-H", hosts, "-p", "12345", "-x", f"LD_LIBRARY_PATH={self.folder}/lib", "-x",
                        f"DRUN_FAKE_NCCL_FOLDER={self.folder}/meetings", "-x", "DRUN_GPU=1", "sh", "-c",
                        'NCCL_HOSTID=$DRUN_RANK exec "$@"', "sh", f"{self.folder}/ranks", "collectives", "--most", "3000")
        self.assertEqual(job.status, 0, str(job))
        self.assertNotIn("warning", job.err)
        self.assertIn("collectives: good", job.out)
        self.assertIn(f"NCCL 22809 ({self.folder}/lib/libnccl.so.2), {ranks} ranks", job.out)
        self.cluster.assert_clean()
        folders = glob.glob(f"{self.folder}/meetings/*")
        for folder in folders:  # every rank that joined a communicator ended it
            self.assertEqual(len(glob.glob(f"{folder}/come.*")), len(glob.glob(f"{folder}/end.*")), folder)
        # Communicators, by the bytes of their ids, and those that were split off.
        return [os.path.basename(folder) for folder in folders]

    def test_local_and_cross_communicators_come_from_that_of_all(self):
        meetings = self.collectives(5, "localhost:2,host1:2,host2:1")
        splits = [name.split("-split-", 1)[1] for name in meetings if "-color-" in name]
        # One split of each of the three hosts; one of the first and one of the second ranks of all hosts.
        self.assertEqual(sorted(splits), ["1-color-0", "1-color-2", "1-color-4", "2-color-0", "2-color-1"], str(meetings))

    def test_with_a_rank_on_each_host_nothing_is_split(self):
        meetings = self.collectives(3, "localhost:1,host1:1,host2:1")
        self.assertEqual([name for name in meetings if "split" in name], [])
