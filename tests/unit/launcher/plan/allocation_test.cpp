#include "launcher/plan/allocation.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "launcher/plan/allocation_slurm.h"
#include "launcher/plan/hostlist.h"

namespace drun::launcher {
namespace {

// Variables as slurmctld 22.05 and srun set them, without the variables that drun doesn't read.
const Environment kSalloc = {{"SLURM_JOBID", "1"},         {"SLURM_JOB_CPUS_PER_NODE", "3,1"},
                             {"SLURM_JOB_ID", "1"},        {"SLURM_JOB_NODELIST", "h[1-2]"},
                             {"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_NNODES", "2"},
                             {"SLURM_NODELIST", "h[1-2]"}, {"SLURM_NPROCS", "4"},
                             {"SLURM_NTASKS", "4"},        {"SLURM_TASKS_PER_NODE", "3,1"}};
const Environment kBatch = {{"SLURMD_NODENAME", "h1"},
                            {"SLURM_CPUS_ON_NODE", "4"},
                            {"SLURM_CPUS_PER_TASK", "2"},
                            {"SLURM_GTIDS", "0"},
                            {"SLURM_JOB_CPUS_PER_NODE", "4(x2)"},
                            {"SLURM_JOB_ID", "2"},
                            {"SLURM_JOB_NODELIST", "h[1-2]"},
                            {"SLURM_LOCALID", "0"},
                            {"SLURM_NODEID", "0"},
                            {"SLURM_NTASKS", "4"},
                            {"SLURM_PROCID", "0"},
                            {"SLURM_TASKS_PER_NODE", "2(x2)"}};
// salloc -N2 -n4 srun -N1 -n1
const Environment kStepOnOneHost = {{"SLURM_JOB_CPUS_PER_NODE", "3,1"},
                                    {"SLURM_JOB_ID", "4"},
                                    {"SLURM_JOB_NODELIST", "h[1-2]"},
                                    {"SLURM_JOB_NUM_NODES", "2"},
                                    {"SLURM_NNODES", "1"},
                                    {"SLURM_NTASKS", "1"},
                                    {"SLURM_PROCID", "0"},
                                    {"SLURM_STEP_ID", "0"},
                                    {"SLURM_STEP_NODELIST", "h1"},
                                    {"SLURM_STEP_NUM_TASKS", "1"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                    {"SLURM_TASKS_PER_NODE", "1"}};
// salloc -N2 -n4 srun -n2
const Environment kTwoTasks = {{"SLURM_JOB_ID", "3"},         {"SLURM_JOB_NODELIST", "h[1-2]"},
                               {"SLURM_NTASKS", "2"},         {"SLURM_PROCID", "0"},
                               {"SLURM_STEP_ID", "0"},        {"SLURM_STEP_NODELIST", "h[1-2]"},
                               {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_TASKS_PER_NODE", "1(x2)"}};
// salloc at sites that set LaunchParameters=use_interactive_step: srun --interactive --preserve-env --pty
const Environment kInteractiveStep = {
    {"SLURM_JOB_ID", "5"},          {"SLURM_JOB_NODELIST", "h[1-2]"}, {"SLURM_NTASKS", "4"},
    {"SLURM_PROCID", "0"},          {"SLURM_PTY_PORT", "40201"},      {"SLURM_STEP_ID", "4294967290"},
    {"SLURM_STEP_NODELIST", "h1"},  {"SLURM_STEP_NUM_TASKS", "1"},    {"SLURM_STEP_TASKS_PER_NODE", "1"},
    {"SLURM_TASKS_PER_NODE", "3,1"}};
// salloc -N1 -n1 : -N1 -n2
const Environment kHeterogeneous = {{"SLURM_HET_SIZE", "2"},
                                    {"SLURM_JOB_ID", "9"},
                                    {"SLURM_JOB_NODELIST_HET_GROUP_0", "h1"},
                                    {"SLURM_JOB_NODELIST_HET_GROUP_1", "h2"},
                                    {"SLURM_NTASKS", "3"},
                                    {"SLURM_TASKS_PER_NODE_HET_GROUP_0", "1"},
                                    {"SLURM_TASKS_PER_NODE_HET_GROUP_1", "2"}};

Environment with(Environment env, const Environment& more) {
  for (const auto& [name, value] : more) env[name] = value;
  return env;
}

Environment without(Environment env, const std::string& name) {
  env.erase(name);
  return env;
}

using Files = std::map<std::string, std::string>;

Result<std::optional<Allocation>> find(const Environment& env, const Files& files = {}) {
  return find_allocation(env, [&files](const std::string& path) -> Result<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return fail(Errc::kIo, path + ": no such file or directory");
    return found->second;
  });
}

// Returns "Slurm job 1: h1:3,h2:1", "none", or the error and its hint.
std::string text(const Environment& env, const Files& files = {}) {
  const auto found = find(env, files);
  if (!found) {
    EXPECT_EQ(found.error().code, Errc::kUsage);
    return found.error().message() + " | " + found.error().hint;
  }
  if (!*found) return "none";
  std::string out = (*found)->job + ": ";
  for (const auto& host : (*found)->hosts) {
    EXPECT_EQ(host.job, (*found)->job);
    EXPECT_FALSE(host.where.empty());
    EXPECT_FALSE(host.slots_given);  // --nproc-per-node may override them
    if (out.back() != ' ') out += ',';
    out += to_item(host, host.slots);
  }
  return out;
}

const std::string kNameThem = " | -H host1:2,host2:2, or -H localhost for this machine alone";

TEST(Allocation, IsNoneOutsideOfAJob) {
  EXPECT_EQ(text({}), "none");
  EXPECT_EQ(text({{"SLURM_CONF", "/etc/slurm.conf"}, {"SLURM_JOB_ID", ""}}), "none");
  EXPECT_EQ(text({{"JOB_ID", "7"}, {"SGE_ROOT", "/opt/sge"}, {"NSLOTS", "4"}}), "none");  // JOB_ID of another program
  EXPECT_EQ(text({{"PBS_NODEFILE", "/tmp/nodes"}, {"OAR_NODEFILE", "/tmp/nodes"}}), "none");
}

TEST(Allocation, BelongsToTheOuterDrun) {
  EXPECT_EQ(text(with(kSalloc, {{"DRUN_RANK", "0"}})), "none");
  EXPECT_EQ(text({{"DRUN_RANK", "1"}, {"PBS_JOBID", "7.head"}, {"PBS_NODEFILE", "/gone"}}), "none");
}

TEST(Allocation, OfSlurmHasTheTasksAsSlots) {
  EXPECT_EQ(text(kSalloc), "Slurm job 1: h1:3,h2:1");
  EXPECT_EQ(text(kBatch), "Slurm job 2: h1:2,h2:2");
  EXPECT_EQ(text(kInteractiveStep), "Slurm job 5: h1:3,h2:1");
  EXPECT_EQ(text({{"SLURM_JOBID", "8"}, {"SLURM_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "4"}}), "Slurm job 8: n1:4");
  const auto nodes =
      with(kSalloc, {{"SLURM_JOB_NODELIST", "n[1-2,5],gpu[01-02]-x"}, {"SLURM_TASKS_PER_NODE", "2(x3),8,1"}});
  EXPECT_EQ(text(nodes), "Slurm job 1: n1:2,n2:2,n5:2,gpu01-x:8,gpu02-x:1");
  EXPECT_EQ(text(with(kSalloc, {{"SLURM_TASKS_PER_NODE", "0,2"}})), "Slurm job 1: h2:2");
  // Some sites also set PBS's variables in Slurm jobs, for scripts that need them.
  EXPECT_EQ(text(with(kSalloc, {{"PBS_JOBID", "1"}, {"PBS_NODEFILE", "/gone"}})), "Slurm job 1: h1:3,h2:1");
}

TEST(Allocation, OfSlurmIsRefusedWhereItCantBeTold) {
  EXPECT_EQ(text(kStepOnOneHost),
            "Slurm job 4: this is a step on 1 of its 2 hosts, and srun does not say how many tasks the job has on each"
            " | -H h1:3,h2:1, or -H localhost for this machine alone");
  EXPECT_EQ(text(kHeterogeneous),
            "Slurm job 9: a heterogeneous job of 2 parts: name the hosts"
            " | -H h1:1,h2:2, or -H localhost for this machine alone");
  EXPECT_EQ(text(without(kHeterogeneous, "SLURM_TASKS_PER_NODE_HET_GROUP_1")),
            "Slurm job 9: a heterogeneous job of 2 parts: name the hosts" + kNameThem);
  EXPECT_EQ(text({{"SLURM_JOB_ID", "4"}}),
            "Slurm job 4: SLURM_JOB_NODELIST is not set: its hosts are not known" + kNameThem);
  // Each task takes two processors, so the hint has half of their number as slots.
  EXPECT_EQ(text(without(kBatch, "SLURM_TASKS_PER_NODE")),
            "Slurm job 2: SLURM_TASKS_PER_NODE is not set: its slots are not known"
            " | -H h1:2,h2:2, or -H localhost for this machine alone");
  EXPECT_EQ(text(with(without(kSalloc, "SLURM_JOB_CPUS_PER_NODE"), {{"SLURM_TASKS_PER_NODE", "3(x"}})),
            "Slurm job 1: SLURM_TASKS_PER_NODE=3(x can't be read" + kNameThem);
  EXPECT_EQ(text(with(without(kSalloc, "SLURM_JOB_CPUS_PER_NODE"), {{"SLURM_TASKS_PER_NODE", "3,1,1"}})),
            "Slurm job 1: SLURM_TASKS_PER_NODE=3,1,1 does not fit SLURM_JOB_NODELIST=h[1-2]" + kNameThem);
  EXPECT_EQ(text(with(kSalloc, {{"SLURM_JOB_NODELIST", "h[1-"}})),
            "Slurm job 1: SLURM_JOB_NODELIST=h[1- can't be read: item 1 'h[1-', column 2: the '[' is never closed" +
                kNameThem);
  EXPECT_EQ(text(with(kSalloc, {{"SLURM_JOB_NODELIST", "h1:2,h2"}})),
            "Slurm job 1: SLURM_JOB_NODELIST=h1:2,h2 can't be read: 'h1:2' is no node" + kNameThem);
}

TEST(Allocation, OfManyHostsHasAShortHintAndNote) {
  const auto many = with(kSalloc, {{"SLURM_JOB_NODELIST", "n[1-64]"}, {"SLURM_TASKS_PER_NODE", "8(x64)"}});
  const auto found = find(many);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(allocation_note((*found)->hosts),
            "in Slurm job 1: hosts n1:8,n2:8,n3:8,n4:8,n5:8,n6:8,n7:8,n8:8 and 56 others, 512 slots in all");
  EXPECT_EQ(text(with(many, {{"SLURM_TASKS_PER_NODE", "8(x63)"}, {"SLURM_JOB_CPUS_PER_NODE", "8(x64)"}})),
            "Slurm job 1: SLURM_TASKS_PER_NODE=8(x63) does not fit SLURM_JOB_NODELIST=n[1-64]" + kNameThem);
}

TEST(Allocation, NoteNamesTheJob) {
  EXPECT_EQ(allocation_note((*find(kSalloc))->hosts), "in Slurm job 1: hosts h1:3,h2:1");
  EXPECT_EQ(
      allocation_note((*find(with(kSalloc, {{"SLURM_JOB_NODELIST", "h1"}, {"SLURM_TASKS_PER_NODE", "4"}})))->hosts),
      "in Slurm job 1: host h1:4");
  EXPECT_EQ(allocation_note(parse_hostlist("h1:2").value()), "");
  EXPECT_EQ(allocation_note({}), "");
}

TEST(SlurmCounts, AreRunsOfNumbers) {
  EXPECT_EQ(parse_slurm_counts("2(x3),1"), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(parse_slurm_counts("16"), (std::vector<int>{16}));
  for (const char* bad : {"", ",", "2,", "x", "2(x)", "2(x0)", "2(x3", "2(3)", "2(x3)1", "-1", "2(x99999999)",
                          "9999999999", "1(x65536),1"}) {
    EXPECT_EQ(parse_slurm_counts(bad), std::nullopt) << bad;
  }
}

TEST(Allocation, OfPbsHasALinePerSlot) {
  const Environment env = {{"PBS_ENVIRONMENT", "PBS_INTERACTIVE"},
                           {"PBS_JOBID", "4242.head"},
                           {"PBS_NODEFILE", "/var/spool/pbs/aux/4242.head"}};
  const std::string file = "/var/spool/pbs/aux/4242.head";
  EXPECT_EQ(text(env, {{file, "n2.hpc.example\nn2.hpc.example\nn1.hpc.example\nn2.hpc.example\n"}}),
            "PBS job 4242.head: n2.hpc.example:3,n1.hpc.example:1");
  EXPECT_EQ(text(env, {{file, "n1\r\n\nn2"}}), "PBS job 4242.head: n1:1,n2:1");
  EXPECT_EQ(text(env),
            "PBS job 4242.head: PBS_NODEFILE=" + file + " can't be read: no such file or directory" + kNameThem);
  EXPECT_EQ(text(env, {{file, "\n"}}), "PBS job 4242.head: PBS_NODEFILE=" + file + " names no host" + kNameThem);
  EXPECT_EQ(text(env, {{file, "n1\nn[1\n"}}), "PBS job 4242.head: " + file + ":2: 'n[1' is not a host" + kNameThem);
  EXPECT_EQ(text(env, {{file, "n[1-2]\n"}}), "PBS job 4242.head: " + file + ":1: 'n[1-2]' is not a host" + kNameThem);
  EXPECT_EQ(text(without(env, "PBS_NODEFILE")),
            "PBS job 4242.head: PBS_NODEFILE is not set: its hosts are not known" + kNameThem);
}

TEST(Allocation, OfGridEngineHasHostAndSlotsInALine) {
  const Environment env = {{"SGE_ROOT", "/var/lib/gridengine"},
                           {"ARC", "lx-amd64"},
                           {"JOB_ID", "7"},
                           {"SGE_TASK_ID", "undefined"},
                           {"NSLOTS", "5"},
                           {"PE_HOSTFILE", "/spool/h1/active_jobs/7.1/pe_hostfile"}};
  const std::string file = "/spool/h1/active_jobs/7.1/pe_hostfile";
  // A host in two queues has a line for each.
  EXPECT_EQ(text(env, {{file, "h1 2 all.q@h1 UNDEFINED\nh2 2 all.q@h2 UNDEFINED\nh1 1 low.q@h1 <NULL>\n"}}),
            "Grid Engine job 7: h1:3,h2:2");
  EXPECT_EQ(text(without(env, "PE_HOSTFILE")), "Grid Engine job 7: localhost:5");
  EXPECT_EQ(text(without(without(env, "PE_HOSTFILE"), "NSLOTS")), "Grid Engine job 7: localhost:1");
  EXPECT_EQ(text(env, {{file, "h1 two all.q@h1 UNDEFINED\n"}}),
            "Grid Engine job 7: " + file + ":1: 'two' is not a number of slots" + kNameThem);
  EXPECT_EQ(text(env, {{file, "h1\n"}}), "Grid Engine job 7: " + file + ":1: '' is not a number of slots" + kNameThem);
}

TEST(Allocation, OfLsfIsInAFileOrInPairs) {
  const Environment env = {{"LSB_JOBID", "11"},
                           {"LSB_DJOB_HOSTFILE", "/home/ann/.lsbatch/1.11.hostfile"},
                           {"LSB_HOSTS", "h1 h1 h2"},
                           {"LSB_MCPU_HOSTS", "h1 2 h2 1 "}};
  const std::string file = "/home/ann/.lsbatch/1.11.hostfile";
  EXPECT_EQ(text(env, {{file, "h1\nh1\nh2\n"}}), "LSF job 11: h1:2,h2:1");
  EXPECT_EQ(text(env), "LSF job 11: h1:2,h2:1");  // the file is on another host
  EXPECT_EQ(text(without(env, "LSB_DJOB_HOSTFILE")), "LSF job 11: h1:2,h2:1");
  EXPECT_EQ(text(without(env, "LSB_MCPU_HOSTS")),
            "LSF job 11: LSB_DJOB_HOSTFILE=" + file + " can't be read: no such file or directory" + kNameThem);
  EXPECT_EQ(text({{"LSB_JOBID", "11"}}),
            "LSF job 11: neither LSB_DJOB_HOSTFILE nor LSB_MCPU_HOSTS is set: its hosts are not known" + kNameThem);
  EXPECT_EQ(text({{"LSB_JOBID", "11"}, {"LSB_MCPU_HOSTS", "h1 2 h2"}}),
            "LSF job 11: LSB_MCPU_HOSTS: '' is not a number of slots" + kNameThem);
}

TEST(Allocation, OfLsfWithCsmLeavesTheLaunchNodeOut) {
  const Environment env = {
      {"CSM_ALLOCATION_ID", "99"}, {"LSB_JOBID", "11"}, {"LSB_MCPU_HOSTS", "batch2 1 g1 42 g2 42"}};
  EXPECT_EQ(text(env), "LSF job 11: g1:42,g2:42");
  EXPECT_EQ(text(with(env, {{"LSB_MCPU_HOSTS", "g1 42"}})), "LSF job 11: g1:42");
}

TEST(Allocation, OfOarHasALinePerCore) {
  const std::string file = "/var/lib/oar/27";
  EXPECT_EQ(text({{"OAR_JOB_ID", "27"}, {"OAR_NODEFILE", file}}, {{file, "n1\nn1\nn2\n"}}), "OAR job 27: n1:2,n2:1");
  EXPECT_EQ(text({{"OAR_JOBID", "27"}, {"OAR_NODE_FILE", file}}, {{file, "n1\nn1\n"}}), "OAR job 27: n1:2");
  EXPECT_EQ(text({{"OAR_JOB_ID", "27"}}), "OAR job 27: OAR_NODEFILE is not set: its hosts are not known" + kNameThem);
}

// Returns the error and its hint; "" if this is the only task that runs drun.
std::string several(const Environment& env) {
  const auto error = one_of_several_tasks(env);
  if (!error) return "";
  EXPECT_EQ(error->code, Errc::kUsage);
  return error->message() + " | " + error->hint;
}

TEST(SeveralTasks, AreRefused) {
  const std::string of_srun =
      "srun: started drun 2 times, and each would start all workers: drun runs once"
      " | salloc -n 2 drun ..., or drun in the script of sbatch, without srun";
  EXPECT_EQ(several(kTwoTasks), of_srun);
  EXPECT_EQ(several(with(kTwoTasks, {{"SLURM_PROCID", "1"}})), of_srun);
  EXPECT_EQ(several({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
            "mpirun: started drun 4 times, and each would start all workers: drun runs once"
            " | drun -np 4 ..., without mpirun");
  EXPECT_NE(several({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), "");
  EXPECT_NE(several({{"MV2_COMM_WORLD_SIZE", "2"}}), "");
  EXPECT_EQ(
      several({{"JSM_NAMESPACE_SIZE", "2"}}),
      "jsrun: started drun 2 times, and each would start all workers: drun runs once | drun -np 2 ..., without jsrun");
}

TEST(SeveralTasks, AreNotWhatJobsAndSessionsOfSlurmAre) {
  for (const auto& env : {kSalloc, kBatch, kStepOnOneHost, kInteractiveStep, kHeterogeneous, Environment{}}) {
    EXPECT_EQ(several(env), "");
  }
  EXPECT_EQ(several({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMI_SIZE", "1"}}), "");
  // srun -n2 --pty: the shell at the terminal is task 0, the others end at once.
  const auto session = with(kTwoTasks, {{"SLURM_PTY_PORT", "40201"}});
  EXPECT_EQ(several(session), "");
  EXPECT_NE(several(with(session, {{"SLURM_PROCID", "1"}})), "");
  // sbatch -n1, called in a step of two tasks, inherits the step's variables.
  EXPECT_EQ(several(with(kTwoTasks, {{"SLURM_NTASKS", "1"}, {"SLURM_TASKS_PER_NODE", "1"}})), "");
}

}  // namespace
}  // namespace drun::launcher
