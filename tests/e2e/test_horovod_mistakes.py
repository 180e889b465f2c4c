"""Mistakes of horovodrun: too many workers, one ssh per rank, the shell's quoting, arguments on command lines."""
from support import ClusterTest, environments, untagged


class Mistakes(ClusterTest):
    hosts = 3

    def test_exactly_np_workers_where_there_are_more_slots(self):
        job = self.good("-np", "2", "-H", "localhost:4,host1:4", "sh", "-c", "echo $WORLD_SIZE")
        self.assertEqual(sorted(untagged(job.out)), [(0, "2"), (1, "2")])

    def test_sixty_four_ranks_on_one_host_behind_a_default_sshd(self):
        job = self.good("-np", "64", "-H", "host1:64", "sh", "-c", "echo $LOCAL_RANK/$LOCAL_SIZE", limit=120)
        self.assertEqual(sorted(untagged(job.out)), [(r, f"{r}/64") for r in range(64)])
        self.cluster.assert_clean()

    def test_a_working_directory_with_a_space(self):
        for host in ("h0", "h1"):
            self.cluster.shell(host, "mkdir -p '/root/my job'")
        job = self.good("-H", "localhost:1,host1:1", "pwd", cwd="/root/my job")
        self.assertEqual(sorted(untagged(job.out)), [(0, "/root/my job"), (1, "/root/my job")])

    def test_arguments_arrive_as_they_were_typed(self):
        words = ["a b", "'", '"', "$HOME", "`id`", "", "*", "new\nline", "ünï", "-x", "--"]
        job = self.good("-H", "host1:1", "python3", "-c", "import sys; print(ascii(sys.argv[1:]))", *words)
        self.assertIn(ascii(words), job.out)

    def test_an_environment_of_300_kb(self):
        big = {f"BIG_{i}": str(i) * 100_000 for i in range(3)}
        job = self.good("-H", "localhost:1,host1:1", "sh", "-c", "echo ${#BIG_0} ${#BIG_1} ${#BIG_2}", env=big)
        self.assertEqual(sorted(untagged(job.out)), [(r, "100000 100000 100000") for r in range(2)])

    def test_an_inherited_rank_does_not_win(self):
        outer = {"RANK": "7", "LOCAL_RANK": "7", "WORLD_SIZE": "9", "HOROVOD_RANK": "7", "OMPI_COMM_WORLD_RANK": "7",
                 "PMI_RANK": "7", "SLURM_PROCID": "7", "DRUN_RANK": "7"}
        found = environments(self.good("-H", "localhost:1,host1:1", "env", env=outer).out)
        for rank in range(2):
            self.assertEqual(found[rank]["RANK"], str(rank))
            self.assertEqual(found[rank]["DRUN_RANK"], str(rank))
            self.assertEqual(found[rank]["WORLD_SIZE"], "2")
            for name in ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
                self.assertIn(found[rank].get(name), (None, str(rank)), name)

    def test_one_worker_with_output_files(self):
        self.good("-np", "1", "-H", "localhost:1", "--output-filename", "/root/out", "sh", "-c", "echo o; echo e >&2")
        text = self.cluster.shell("h0", "grep -r . /root/out")
        self.assertRegex(text, r"(?m):o$")
        self.assertRegex(text, r"(?m):e$")

    def test_output_files_of_each_rank(self):
        self.good("-H", "localhost:2,host1:2", "--output-filename", "/root/out4", "sh", "-c", "echo mine:$RANK")
        text = self.cluster.shell("h0", "grep -r mine: /root/out4")
        for rank in range(4):
            self.assertRegex(text, rf"(?m){rank}\D.*:mine:{rank}$")

    def test_stdin_goes_to_rank_0_alone(self):
        job = self.good("-H", "localhost:1,host1:1", "sh", "-c", "echo $RANK:$(cat)", stdin_text="hello\n")
        self.assertEqual(sorted(untagged(job.out)), [(0, "0:hello"), (1, "1:")])

    def test_a_large_input_and_output_lose_nothing(self):
        text = "".join(f"line {i}\n" for i in range(100_000))
        job = self.good("-H", "host1:1", "cat", stdin_text=text)
        self.assertEqual(job.out, text)

    def test_a_host_named_twice_adds_its_slots(self):
        job = self.good("-H", "host1:1,host2:1,host1:1", "hostname")
        self.assertEqual(sorted(line for _, line in untagged(job.out)), ["h1", "h1", "h2"])

    def test_two_names_of_one_host_are_noticed(self):
        job = self.good("-H", "host1:1,root@10.77.0.2:1", "-p", "12345", "sh", "-c", "echo $LOCAL_RANK/$LOCAL_SIZE")
        self.assertEqual(sorted(untagged(job.out)), [(0, "0/2"), (1, "1/2")])
