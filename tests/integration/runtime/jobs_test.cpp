// libdrun in separate processes, with the real rendezvous server.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/contains.h"
#include "tests/integration/runtime/job_server.h"
#include "tests/temp_folder.h"

namespace drun {
namespace {

using namespace std::chrono_literals;
using testing::JobOptions;
using testing::run_job;
using testing::WorkerEnd;

const std::string kWorker = WORKER_PATH;

using drun::testing::contains;

#ifndef SLOWDOWN
#define SLOWDOWN 1
#endif
// Maximum time from the end of a rank to the end of all others: to notice it, to unwind and to exit.
constexpr auto kNoticed = 1s * SLOWDOWN;

enum class Ways { kMemory, kNetwork };

std::string name_of(Ways ways) { return ways == Ways::kMemory ? "InMemory" : "OverTheNetwork"; }

// Each rank is a process; the parameter selects what carries the data between them.
class Job : public ::testing::TestWithParam<Ways> {
 protected:
  std::vector<WorkerEnd> run(int size, const std::string& scenario, int who, JobOptions options = {}) {
    options.size = size;
    options.shares_memory = GetParam() == Ways::kMemory;
    return run_job({kWorker, scenario, std::to_string(who)}, options);
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Job, ::testing::Values(Ways::kMemory, Ways::kNetwork),
                         [](const auto& param) { return name_of(param.param); });

TEST_P(Job, WorksTogether) {
  for (const int size : {1, 2, 3, 5, 8, 16}) {
    for (const auto& end : run(size, "work", -1)) EXPECT_EQ(end.status, 0) << end.rank << ": " << end.output;
  }
}

TEST_P(Job, OfTwoHostsTellsEachRankItsPlace) {
  JobOptions options;
  options.ranks_per_host = 2;
  const auto ends = run(4, "work", -1, options);
  for (const auto& end : ends) EXPECT_EQ(end.status, 0) << end.output;
  EXPECT_TRUE(contains(ends[3].output, "rank 3 of 4, local 1 of 2, cross 1 of 2")) << ends[3].output;
}

TEST_P(Job, WorksWith64OpenFiles) {
  JobOptions options;
  options.size = 16;
  options.shares_memory = GetParam() == Ways::kMemory;
  for (const auto& end : run_job({"/usr/bin/prlimit", "--nofile=64", kWorker, "work", "-1"}, options)) {
    EXPECT_EQ(end.status, 0) << end.rank << ": " << end.output;
  }
}

TEST_P(Job, CallsInTheBackgroundInGroupsAndOnParts) {
  for (const int size : {1, 2, 3, 4}) {
    for (const auto& end : run(size, "background", -1)) EXPECT_EQ(end.status, 0) << end.rank << ": " << end.output;
  }
  JobOptions options;
  options.ranks_per_host = 2;
  for (const int size : {4, 5}) {
    for (const auto& end : run(size, "background", -1, options)) {
      EXPECT_EQ(end.status, 0) << end.rank << ": " << end.output;
    }
  }
}

TEST_P(Job, NamesTheRankThatDiedWhileOthersWaitForRequests) {
  const auto ends = run(4, "die-in-background", 3);
  for (const auto& end : ends) {
    if (end.rank == 3) continue;
    EXPECT_EQ(end.status, 3) << end.output;
    EXPECT_TRUE(contains(end.output, "rank 3 on node0 (pid ") && contains(end.output, "'grad.17'")) << end.output;
    EXPECT_LT(end.after - ends[3].after, kNoticed) << "took too long to notice";
  }
}

TEST_P(Job, NamesTheRankThatDiedInAPartOfTheJob) {
  JobOptions options;
  options.ranks_per_host = 3;
  const auto ends = run(6, "die-in-part", 2, options);
  for (const auto& end : ends) {
    if (end.rank == 2) continue;
    EXPECT_EQ(end.status, 3) << end.output;
    EXPECT_TRUE(contains(end.output, "rank 2 on node0 (pid ") && contains(end.output, "killed by signal 9"))
        << end.output;
    EXPECT_LT(end.after - ends[2].after, kNoticed) << "took too long to notice";
  }
}

TEST_P(Job, OnSeveralHostsNamesTheRankThatDied) {
  JobOptions options;
  options.ranks_per_host = 3;
  const auto ends = run(8, "die", 4, options);
  for (const auto& end : ends) {
    if (end.rank == 4) continue;
    EXPECT_EQ(end.status, 3) << end.output;
    EXPECT_TRUE(contains(end.output, "rank 4 on node1 (pid ") && contains(end.output, "killed by signal 9"))
        << end.output;
    EXPECT_LT(end.after - ends[4].after, kNoticed) << "took too long to notice";
  }
}

TEST_P(Job, WorksByKeyWithAWarning) {
  JobOptions options;
  options.by_agent = false;
  for (const auto& end : run(2, "work", -1, options)) {
    EXPECT_EQ(end.status, 0) << end.output;
    EXPECT_TRUE(contains(end.output, "drun: warning: ")) << end.output;
  }
}

TEST_P(Job, FallsBackToTheKeyWhenTheAgentIsOutOfReach) {
  JobOptions options;
  options.by_agent = false;
  options.env = {"DRUN_AGENT=/nonexistent/agent"};
  for (const auto& end : run(2, "work", -1, options)) {
    EXPECT_EQ(end.status, 0) << end.output;
    EXPECT_TRUE(contains(end.output, "/nonexistent/agent can't be reached")) << end.output;
  }
}

TEST_P(Job, NamesTheRankThatDied) {
  const int who = 2;
  const auto ends = run(5, "die", who);
  EXPECT_EQ(ends[who].status, 128 + 9);
  for (const auto& end : ends) {
    if (end.rank == who) continue;
    EXPECT_EQ(end.status, 3) << end.output;
    EXPECT_TRUE(contains(end.output, "rank 2 host 'node0'") && contains(end.output, "rank 2 on node0 (pid ") &&
                contains(end.output, "killed by signal 9"))
        << end.output;
    EXPECT_LT(end.after - ends[who].after, kNoticed) << "took too long to notice";
  }
}

TEST_P(Job, NamesTheRankThatDiedInAnAlltoall) {
  const int who = 2;
  const auto ends = run(6, "die-in-alltoall", who);
  EXPECT_EQ(ends[who].status, 128 + 9);
  for (const auto& end : ends) {
    if (end.rank == who) continue;
    EXPECT_EQ(end.status, 3) << end.output;
    EXPECT_TRUE(contains(end.output, "rank 2 host 'node0'") && contains(end.output, "alltoall #") &&
                contains(end.output, "killed by signal 9"))
        << end.output;
    EXPECT_LT(end.after - ends[who].after, kNoticed) << "took too long to notice";
  }
}

TEST_P(Job, NamesTheRankThatWentAwayEvenIfTheLauncherSaysNothing) {
  const auto ends = run(4, "leave", 1);
  EXPECT_EQ(ends[1].status, 0);
  for (const auto& end : ends) {
    if (end.rank == 1) continue;
    EXPECT_EQ(end.status, 3) << end.output;
    EXPECT_TRUE(contains(end.output, "rank 1 on node0 closed its connection")) << end.output;
    EXPECT_TRUE(contains(end.output, "error -5 rank 1 host 'node0'")) << end.output;
    EXPECT_LT(end.after - ends[1].after, 5s);
  }
}

// Ranks 0 and 3 of 7 have no connection that could close.
TEST_P(Job, NamesTheProcessThatWasKilledEvenIfTheLauncherSaysNothing) {
  JobOptions options;
  options.abort_on_death = false;
  const auto ends = run(7, "die", 3, options);
  const std::string process = ": its process (pid " + std::to_string(ends[3].pid) + ") has ended";
  for (const auto& end : ends) {
    if (end.rank == 3) continue;
    EXPECT_EQ(end.status, 3) << end.output;
    EXPECT_TRUE(contains(end.output, "error -5 rank 3 host 'node0'")) << end.output;
    EXPECT_TRUE(contains(end.output, "rank 3 on node0 closed its connection during allreduce #")) << end.output;
    EXPECT_EQ(contains(end.output, process), GetParam() == Ways::kMemory) << end.output;
    EXPECT_LT(end.after - ends[3].after, 10s);
  }
}

TEST_P(Job, NamesTheRankThatNeverCalled) {
  JobOptions options;
  options.env = {"DRUN_OP_TIMEOUT=1"};
  const auto ends = run(3, "absent", 1, options);
  for (const auto& end : ends) {
    EXPECT_EQ(end.status, 3) << end.output;
    if (end.rank == 1) continue;
    EXPECT_TRUE(contains(end.output, "timed out after 1 s waiting for rank 1 on node0")) << end.output;
  }
}

TEST_P(Job, SaysWhyALinkCannotBeMade) {
  JobOptions options;
  options.env = {"DRUN_OP_TIMEOUT=1"};
  const auto ends = run(6, "few-files", 0, options);  // ranks 0 and 3 are not neighbors
  for (const auto& end : ends) EXPECT_EQ(end.status, 3) << end.output;
  EXPECT_TRUE(contains(ends[0].output,
                       "gather #2 timed out after 1 s waiting for rank 3 on node0 (no connection: accept: "
                       "too many open files)"))
      << ends[0].output;
}

TEST_P(Job, EndsEverywhereWhenOneAborts) {
  const auto ends = run(4, "abort", 3);
  EXPECT_EQ(ends[3].status, 4) << ends[3].output;
  for (const auto& end : ends) {
    if (end.rank == 3) continue;
    EXPECT_EQ(end.status, 3) << end.output;
    EXPECT_TRUE(contains(end.output, "rank 3 on node0") && contains(end.output, "the loss is NaN")) << end.output;
    EXPECT_LT(end.after, 10s);
  }
}

TEST_P(Job, AbortFromAnotherThreadWakesTheCall) {
  for (const char* const scenario : {"abort-in-barrier", "abort-in-get"}) {
    SCOPED_TRACE(scenario);
    for (const auto& end : run(2, scenario, 1)) {
      EXPECT_EQ(end.status, 3) << end.rank << ": " << end.output;
      EXPECT_LT(end.after, 10s);
    }
  }
}

TEST_P(Job, InitTimesOutOnARankThatNeverComes) {
  JobOptions options;
  options.env = {"DRUN_INIT_TIMEOUT=1"};
  options.size = 3;
  options.shares_memory = GetParam() == Ways::kMemory;
  // Rank 2 runs another program.
  const auto ends = run_job({"/bin/sh", "-c", "[ $DRUN_RANK = 2 ] || exec " + kWorker + " work"}, options);
  for (const auto& end : ends) {
    if (end.rank == 2) continue;
    EXPECT_EQ(end.status, 3) << end.output;
    EXPECT_TRUE(contains(end.output, "drun_init") && contains(end.output, "missing: rank 2 on node0")) << end.output;
    EXPECT_LT(end.after, 10s);
  }
}

// Each worker runs programs of libdrun one after another, some of which only join.
TEST_P(Job, ProgramsFollowOneAnother) {
  JobOptions options;
  options.size = 3;
  options.ranks_per_host = 2;
  options.shares_memory = GetParam() == Ways::kMemory;
  const std::string n_times = GetParam() == Ways::kMemory ? "17" : "3";
  const std::string script = "for i in $(seq " + n_times + "); do $0 join && $0 work && $0 join || exit; done";
  for (const auto& end : run_job({"/bin/sh", "-c", script, kWorker}, options)) {
    EXPECT_EQ(end.status, 0) << end.rank << ": " << end.output;
  }
}

TEST_P(Job, ProgramMayJoinAndLeaveOften) {
  for (const auto& end : run(2, "starts-often", GetParam() == Ways::kMemory ? 200 : 10)) {
    EXPECT_EQ(end.status, 0) << end.rank << ": " << end.output;
  }
}

TEST_P(Job, ProgramThatReplacesItselfInTheMiddleStartsAnew) {
  for (const auto& end : run(4, "again", -1)) EXPECT_EQ(end.status, 0) << end.rank << ": " << end.output;
}

// Tests `until ./train; do :; done`. Either the first program of rank 1 is killed, and its next one may join while the
// others are still in their first. Or it ends before it has joined, and its next one joins the others, which wait for
// it.
TEST_P(Job, ProgramIsStartedUntilItSucceeds) {
  for (const std::string first :
       {"$0 die 1", "$0 die-and-leave-a-child 1", "if [ $DRUN_RANK = 1 ]; then false; else $0 work; fi"}) {
    const testing::TempFolder folder;
    JobOptions options;
    options.size = 4;
    options.shares_memory = GetParam() == Ways::kMemory;
    options.abort_on_death = false;
    const std::string mark = folder.path("$DRUN_RANK");
    const std::string script = "once() { if [ -e " + mark + " ]; then $0 work; else touch " + mark + "; " + first +
                               "; fi; }; until once; do :; done";
    for (const auto& end : run_job({"/bin/sh", "-c", script, kWorker}, options)) {
      EXPECT_EQ(end.status, 0) << first << ", rank " << end.rank << ": " << end.output;
    }
  }
}

// Each rank has a /dev/shm of its own without any room, which must be empty even after a death.
TEST(DevShm, IsNeitherNeededNorUsed) {
  const std::string mount = "mount -t tmpfs -o size=4k none /dev/shm";
  if (std::system(("unshare -m sh -c '" + mount + "' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "nothing may be mounted here";
  }
  const std::string script = mount + "; \"$0\" \"$@\"; status=$?; test -z \"$(ls -A /dev/shm)\" && exit $status";
  JobOptions options;
  options.size = 3;
  options.shares_memory = true;
  const auto ends = run_job({"/usr/bin/unshare", "-m", "/bin/sh", "-c", script, kWorker, "die", "1"}, options);
  for (const auto& end : ends) EXPECT_EQ(end.status, end.rank == 1 ? 128 + 9 : 3) << end.output;
  EXPECT_TRUE(contains(ends[0].output, "its process (pid ")) << "not over memory: " << ends[0].output;
}

}  // namespace
}  // namespace drun
