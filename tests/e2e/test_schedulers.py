"""drun in the jobs of batch schedulers, simulated by their environment. With a real Slurm: slurm_test.py."""
import json

from support import ClusterTest, environments, untagged

# As slurmctld 22.05 set them for `sbatch -N2 -n3`, without paths and ids.
BATCH = {
    "SLURMD_NODENAME": "h1", "SLURM_CPUS_ON_NODE": "2", "SLURM_GTIDS": "0", "SLURM_JOBID": "4", "SLURM_JOB_CPUS_PER_NODE": "2,1",
    "SLURM_JOB_ID": "4", "SLURM_JOB_NAME": "job.sh", "SLURM_JOB_NODELIST": "h[1-2]", "SLURM_JOB_NUM_NODES": "2",
    "SLURM_LOCALID": "0", "SLURM_NNODES": "2", "SLURM_NODEID": "0", "SLURM_NODELIST": "h[1-2]", "SLURM_NPROCS": "3",
    "SLURM_NTASKS": "3", "SLURM_PROCID": "0", "SLURM_TASKS_PER_NODE": "2,1", "SLURM_TASK_PID": "150"}
OF_STEPS = ("SLURM_GTIDS", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NPROCS", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_TASKS_PER_NODE",
            "SLURM_TASK_PID")


class BatchJobs(ClusterTest):
    hosts = 3

    def test_the_script_of_a_slurm_job(self):
        """Runs on the job's first host, which accepts no login: it is local."""
        self.cluster.filter("h1", input=["tcp dport 12345 drop"])
        try:
            job = self.good("-p", "12345", "env", host="h1", env=BATCH)
        finally:
            self.cluster.unfilter("h1")
        self.assertIn("drun: note: in Slurm job 4: hosts h1:2,h2:1\n", job.err)
        found = environments(job.out)
        self.assertEqual([found[rank]["NODE_RANK"] for rank in range(3)], ["0", "0", "1"])
        for env in found.values():
            self.assertEqual(env["SLURM_JOB_NODELIST"], "h[1-2]")
            self.assertEqual([name for name in OF_STEPS if name in env], [])
        self.cluster.assert_clean()

    def test_the_shell_of_salloc(self):
        """Runs on the host on which the user is logged in."""
        job = self.good("-np", "2", "--dry-run", "--json", "hostname", env=BATCH)
        plan = json.loads(job.out)
        self.assertEqual(plan["allocation"], "Slurm job 4")
        self.assertEqual([(host["name"], host["slots"], host["workers"]) for host in plan["hosts"]], [("h1", 2, 2)])
        self.assertIn("hosts h1:2,h2:1", job.err)
        job = self.good("-np", "1", "-H", "localhost", "hostname", env=BATCH)
        self.assertEqual((job.out, job.err), ("h0\n", ""))

    def test_a_file_of_hosts_with_their_domain(self):
        self.cluster.write("h1", "/root/nodes", "h1.cluster.example\nh1.cluster.example\nh2\n")
        self.cluster.filter("h1", input=["tcp dport 12345 drop"])
        try:
            job = self.good("-p", "12345", "hostname", host="h1", env={"PBS_JOBID": "7.head", "PBS_NODEFILE": "/root/nodes"})
        finally:
            self.cluster.unfilter("h1")
        self.assertEqual(sorted(untagged(job.out)), [(0, "h1"), (1, "h1"), (2, "h2")])
        self.assertIn("in PBS job 7.head: hosts h1.cluster.example:2,h2:1\n", job.err)

    def test_what_is_refused(self):
        for subcommand in ([], ["check"], ["clean"], ["bench"]):
            command = [] if subcommand else ["hostname"]
            job = self.drun(*subcommand, *command, env={"PBS_JOBID": "7.head", "PBS_NODEFILE": "/nosuch"})
            self.assertEqual(job.status, 2, str(job))
            self.assertIn("PBS job 7.head: PBS_NODEFILE=/nosuch can't be read: no such file or directory [batch-job]\n  hint: -H ", job.err)
        for command in (["hostname"], ["horovodrun", "--compat", "real-horovod", "-np", "3", "hostname"]):
            job = self.drun(*command, env={**BATCH, "SLURM_STEP_NUM_TASKS": "3"})
            self.assertEqual(job.status, 2, str(job))
            self.assertIn("srun: started drun 3 times", job.err)
        job = self.drun("hostname", env=BATCH)  # port 22 has no listener
        self.assertEqual(job.status, 68, str(job))
        self.assertIn("drun reaches the hosts of Slurm job 4 by ssh, which the cluster must allow within a job", job.err)
