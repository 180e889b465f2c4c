"""drun in the jobs of a real Slurm: h0 is the controller and the login node, h1 and h2 compute.

Not part of the suite, because it needs Slurm's packages: `scripts/test --slurm`."""
import atexit
import json
import os
import shutil
import tempfile
import time

from support import ClusterTest, environments, untagged

CONFIG = """
ClusterName=drun
SlurmctldHost=h0(10.77.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/spool
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=/run/slurm/slurmctld.log
SlurmdLogFile=/run/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1,sched_interval=1
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName=h1 NodeAddr=10.77.0.2 CPUs=4
NodeName=h2 NodeAddr=10.77.0.3 CPUs=4
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# Starts an agent by srun, for clusters that don't allow ssh: docs/schedulers.md.
AGENT_BY_SRUN = """#!/bin/sh
host=$1; shift
exec srun --overlap --nodes=1 --ntasks=1 --nodelist="$host" --mpi=none --cpu-bind=none --unbuffered sh -c "$*"
"""


class Slurm(ClusterTest):
    hosts = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.mkdtemp(prefix="drun-slurm-", dir="/var/cache")  # visible on all hosts
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.chmod(folder, 0o755)
        for name, text in (("slurm.conf", CONFIG), ("cgroup.conf", "CgroupPlugin=cgroup/v1\n"), ("srun-agent", AGENT_BY_SRUN)):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(f"{folder}/srun-agent", 0o755)
        cls.folder = folder
        cls.slurm_env = {"SLURM_CONF": f"{folder}/slurm.conf"}
        daemons = [cls.cluster.start(host, "sh", "-c", f"mkdir -p /run/slurm/state /run/slurm/spool; exec {program} -D",
                                     env=cls.slurm_env)
                   for host, program in (("h0", "slurmctld"), ("h1", "slurmd"), ("h2", "slurmd"))]
        for daemon in daemons:
            cls.addClassCleanup(daemon.finish)
            cls.addClassCleanup(daemon.front.kill)
        end = time.monotonic() + 20
        while cls.cluster.run("h0", "sinfo", "-h", "-o", "%t %D", env=cls.slurm_env).out != "idle 2\n":
            if time.monotonic() > end:
                raise AssertionError("\n".join(str(daemon) for daemon in daemons))
            time.sleep(0.1)

    def typed(self, line, status=0, **options):
        """Runs a command line that a user types on the login node."""
        job = self.cluster.run("h0", "sh", "-c", line, env=self.slurm_env, limit=30, **options)
        self.assertEqual(job.status, status, str(job))
        return job

    def batch(self, line, options=""):
        """The (stdout, stderr) of an sbatch script with that command line."""
        self.typed(f"printf '#!/bin/sh\\n%s\\n' '{line}' > job.sh;"
                   f" sbatch --wait {options} -o {self.folder}/out -e {self.folder}/err job.sh")
        texts = []
        for name in ("out", "err"):
            with open(f"{self.folder}/{name}", encoding="utf-8") as file:
                texts.append(file.read())
        return texts

    def test_a_job_of_salloc_runs_on_its_hosts(self):
        job = self.typed("salloc -N2 -n4 drun -p 12345 hostname")
        self.assertEqual(sorted(untagged(job.out)), [(0, "h1"), (1, "h1"), (2, "h1"), (3, "h2")])
        self.assertRegex(job.err, r"drun: note: in Slurm job \d+: hosts h1:3,h2:1\n")
        job = self.typed("salloc -N2 -n4 drun -p 12345 --dry-run --json true")
        plan = json.loads(job.out)
        self.assertRegex(plan["allocation"], r"^Slurm job \d+$")
        self.assertEqual([(host["name"], host["workers"]) for host in plan["hosts"]], [("h1", 3), ("h2", 1)])

    def test_hosts_that_the_user_names_win(self):
        job = self.typed("salloc -N2 -n4 drun -np 2 -H localhost:2 hostname")
        self.assertEqual(sorted(untagged(job.out)), [(0, "h0"), (1, "h0")])
        self.assertNotIn("Slurm", job.err.replace("salloc", ""))

    def test_more_workers_than_tasks_are_asked_for_by_host(self):
        job = self.typed("salloc -N2 drun -p 12345 --nproc-per-node 2 hostname")
        self.assertEqual(sorted(untagged(job.out)), [(0, "h1"), (1, "h1"), (2, "h2"), (3, "h2")])
        job = self.typed("salloc -N2 drun -np 4 hostname", status=2)
        self.assertRegex(job.err, r"only 2 slots on 2 hosts of Slurm job \d+ \[slots\]\n  hint: -np 2, or -H h1:2,h2:2\n")

    def test_a_script_of_sbatch_needs_no_ssh_to_its_own_host(self):
        self.cluster.filter("h1", input=["tcp dport 12345 drop"])
        try:
            out, err = self.batch("drun -p 12345 hostname", "-N2 --ntasks-per-node=2")
        finally:
            self.cluster.unfilter("h1")
        self.assertEqual(sorted(untagged(out)), [(0, "h1"), (1, "h1"), (2, "h2"), (3, "h2")], err)

    def test_workers_are_not_taken_for_tasks_of_srun(self):
        out, err = self.batch("drun -p 12345 env", "-N2 --ntasks-per-node=1")
        found = environments(out)
        self.assertEqual(len(found), 2, err)
        for rank in (0, 1):
            self.assertIn("SLURM_JOB_ID", found[rank])
            for name in ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_STEP_ID", "SLURM_TASKS_PER_NODE"):
                self.assertNotIn(name, found[rank])

    def test_sessions_of_srun_are_the_job(self):
        for session in ("salloc -N2 -n4 srun --interactive --preserve-env --pty", "srun -N2 -n4 --pty"):
            # With srun -n4 all tasks run the command; a shell without a terminal would exit at once.
            job = self.typed(f"script -qc \"{session} sh -c 'test -t 0 && NO_COLOR=1 exec drun -p 12345 hostname'\" /dev/null")
            self.assertEqual(sorted(untagged(job.out.replace("\r", ""))), [(0, "h1"), (1, "h1"), (2, "h1"), (3, "h2")], str(job))

    def test_several_drun_are_refused(self):
        job = self.typed("srun -N2 -n2 drun hostname", status=2)
        self.assertIn("srun: started drun 2 times, and each would start all workers: drun runs once", job.err)
        self.assertEqual(job.out, "")
        self.typed("srun -N2 -n2 drun -H h1,h2 hostname", status=2)
        job = self.typed("srun -N2 -n2 drun -np 1 -H localhost hostname")  # a separate job in each task
        self.assertEqual(sorted(job.out.split()), ["h1", "h2"])

    def test_a_batch_job_that_a_step_submitted_is_no_task(self):
        self.typed("srun -N2 -n2 sh -c 'if [ $SLURM_PROCID = 1 ]; then sbatch --wait -n1 -o "
                   f"{self.folder}/out --wrap \"drun hostname\"; fi'")
        with open(f"{self.folder}/out", encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(text, r"in Slurm job \d+: host h[12]:1\n")
        self.assertRegex(text, r"(?m)^h[12]$")

    def test_a_step_on_a_part_of_the_hosts_is_refused(self):
        job = self.typed("salloc -N2 -n4 srun -N1 -n1 drun hostname", status=2)
        self.assertIn("this is a step on 1 of its 2 hosts, and srun does not say how many tasks the job has on each", job.err)
        self.assertIn("hint: -H h1:3,h2:1, or -H localhost for this machine alone", job.err)

    def test_a_heterogeneous_job_is_refused(self):
        job = self.typed("salloc -N1 -n1 : -N1 -n2 drun hostname", status=2)
        self.assertIn("a heterogeneous job of 2 parts", job.err)
        self.assertIn("hint: -H h1:1,h2:2, or -H localhost", job.err)

    def test_a_host_that_refuses_ssh_is_explained(self):
        job = self.typed("salloc -N2 -n2 drun hostname", status=68)  # port 22 has no listener
        self.assertRegex(job.err, r"drun reaches the hosts of Slurm job \d+ by ssh, which the cluster must allow within a job")

    def test_agents_can_be_started_by_srun(self):
        job = self.typed(f"salloc -N2 -n4 drun --launch-agent {self.folder}/srun-agent hostname")
        self.assertEqual(sorted(untagged(job.out)), [(0, "h1"), (1, "h1"), (2, "h1"), (3, "h2")])

    def test_the_end_of_the_job_ends_workers_on_all_hosts(self):
        for options in ("", f"--launch-agent {self.folder}/srun-agent"):
            self.typed("printf '#!/bin/sh\n%s\n' 'drun -p 12345 " + options + " sleep 1000' > job.sh; sbatch -N2 -n2 -o /dev/null job.sh")
            for host in ("h1", "h2"):
                self.cluster.find(host, "^sleep 1000")
            self.typed("scancel --state=RUNNING --user=root")
            end = time.monotonic() + 20
            while any(self.cluster.find_all(host, "^sleep 1000|drun") for host in ("h1", "h2")):
                self.assertLess(time.monotonic(), end, self.cluster.processes())
                time.sleep(0.1)

    def test_task_0_alone_may_be_told_so(self):
        job = self.typed("srun -N2 -n2 sh -c 'test $SLURM_PROCID = 1 || exec env -u SLURM_STEP_NUM_TASKS drun -p 12345 hostname'")
        self.assertEqual(sorted(untagged(job.out)), [(0, "h1"), (1, "h2")])

    def test_check_and_clean_take_the_same_hosts(self):
        job = self.typed("salloc -N2 -n2 drun clean -p 12345")
        self.assertRegex(job.err, r"in Slurm job \d+: hosts h1:1,h2:1")
        self.assertIn("h2", job.out)

    def test_lists_of_nodes_are_read_as_slurm_reads_them(self):
        for nodes in ("n[1-3,5],gpu[01-04]", "r[1-2]n[01-02]", "n[9-11]", "n[009-011],login"):
            expected = self.typed(f"scontrol show hostnames '{nodes}'").out.split()
            job = self.cluster.run("h0", "drun", "--dry-run", "--json", "true", env={
                "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": nodes, "SLURM_TASKS_PER_NODE": f"1(x{len(expected)})"})
            self.assertEqual(job.status, 0, str(job))
            self.assertEqual([host["name"] for host in json.loads(job.out)["hosts"]], expected)
