#include "agent/leftovers.h"

#include <gtest/gtest.h>

namespace drun::agent {
namespace {

constexpr std::uint32_t kMe = 1000;

// A host with init, sshd and the processes that a test adds.
class Leftovers : public testing::Test {
 protected:
  Leftovers() {
    add(1, 0, "init", "", 0);
    add(10, 1, "sshd", "", 0);
  }
  void add(pid_t pid, pid_t parent, const std::string& name, const std::string& job = "", std::uint32_t uid = kMe,
           int rank = -1) {
    Process p;
    p.stat.parent = parent;
    p.stat.name = name;
    p.uid = uid;
    p.mark.job_id = job;
    p.mark.rank = rank;
    processes_[pid] = std::move(p);
  }
  void add_running_job() {
    add(20, 10, "drun-guard");
    add(21, 20, "drun-agent");
    add(22, 21, "python3", "aa", kMe, 0);
    add(23, 22, "sh", "aa", kMe, 0);
  }
  std::vector<Leftover> find() { return find_leftovers(processes_, scope_, family_); }
  std::vector<pid_t> left() {
    std::vector<pid_t> out;
    for (const auto& f : find()) {
      if (!f.running) out.push_back(f.pid);
    }
    return out;
  }

  ProcessList processes_;
  CleanScope scope_{kMe, ""};
  std::set<pid_t> family_;
};

using Pids = std::vector<pid_t>;

TEST_F(Leftovers, AMarkedProcessWithoutAnAgentIsOne) {
  add(30, 1, "python3", "bb", kMe, 4);
  const auto found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, 30);
  EXPECT_EQ(found[0].job_id, "bb");
  EXPECT_EQ(found[0].rank, 4);
  EXPECT_FALSE(found[0].running);
}

TEST_F(Leftovers, ARunningJobHasNone) {
  add_running_job();
  EXPECT_EQ(left(), Pids());
  EXPECT_EQ(find().size(), 2u);
}

TEST_F(Leftovers, AContainerOfARunningJobIsPartOfIt) {
  add_running_job();
  add(40, 1, "containerd-shim", "", 0);
  add(41, 40, "python3", "aa");
  EXPECT_EQ(left(), Pids());
}

TEST_F(Leftovers, AnotherJobBesideARunningOneIsFound) {
  add_running_job();
  add(30, 1, "python3", "bb");
  EXPECT_EQ(left(), Pids{30});
}

TEST_F(Leftovers, AChildThatThrewItsEnvironmentAwayIsFoundByItsParent) {
  add(30, 1, "sh", "bb", kMe, 2);
  add(31, 30, "sleep");
  ASSERT_EQ(left(), (Pids{30, 31}));
  EXPECT_EQ(find()[1].rank, 2);
}

TEST_F(Leftovers, ANameAloneIsNothing) {
  add(30, 1, "drun-worker");
  add(31, 1, "drun");
  add(32, 1, "drun-agent");
  add(33, 32, "train");
  EXPECT_TRUE(find().empty());
}

TEST_F(Leftovers, OtherUsersAreOnlyFoundWhenAskedFor) {
  add(30, 1, "python3", "bb", kMe + 1);
  EXPECT_TRUE(find().empty());
  scope_.uid.reset();
  EXPECT_EQ(left(), Pids{30});
}

TEST_F(Leftovers, OnlyTheNamedJob) {
  add(30, 1, "python3", "bb");
  add(31, 1, "python3", "bbb");
  scope_.job_id = "bb";
  EXPECT_EQ(left(), Pids{30});
}

TEST_F(Leftovers, ZombiesAreNone) {
  add(30, 1, "python3", "bb");
  processes_[30].stat.over = true;
  EXPECT_TRUE(find().empty());
}

// A worker whose own agent is gone called drun: the new agents carry the outer job's mark, their workers their own
// mark.
TEST_F(Leftovers, AJobStartedByALeftOverRunsButDoesNotSaveIt) {
  add(30, 1, "sh", "bb", kMe, 0);
  add(31, 30, "drun", "bb", kMe, 0);
  add(32, 31, "drun-guard", "bb", kMe, 0);
  add(33, 32, "drun-agent", "bb", kMe, 0);
  add(34, 33, "python3", "cc", kMe, 0);
  EXPECT_EQ(left(), (Pids{30, 31, 32, 33}));
}

TEST_F(Leftovers, ParentsThatGoInACircleEnd) {
  add(30, 31, "a");
  add(31, 30, "b");
  EXPECT_TRUE(find().empty());
}

TEST_F(Leftovers, TheOneWhoAsksIsNotFound) {
  // The user runs `drun clean` in a shell that a job left behind: drun, its local agent and a second agent by ssh.
  add(30, 1, "bash", "bb", kMe, 0);
  add(31, 30, "drun", "bb", kMe, 0);
  add(32, 31, "drun-guard", "bb", kMe, 0);
  add(33, 32, "drun-agent", "bb", kMe, 0);
  add(34, 33, "drun-agent", "bb", kMe, 0);
  add(35, 31, "ssh", "bb", kMe, 0);
  add(36, 30, "sleep", "bb", kMe, 0);
  family_ = own_family(processes_, 32, 34);
  EXPECT_EQ(left(), Pids{36});
}

TEST_F(Leftovers, TheFamilyOverSshEndsAtTheGuard) {
  add(30, 10, "drun-guard");
  add(31, 30, "drun-agent");
  add(32, 31, "drun-agent");
  add(40, 10, "sh", "bb");
  EXPECT_EQ(own_family(processes_, 30, 32), (std::set<pid_t>{1, 10, 30, 31, 32}));
}

TEST(SocketDirectory, TellsTheJobsFirstDigits) {
  EXPECT_EQ(job_of_socket_directory("drun-0123456789ab-aB3xYz"), "0123456789ab");
  for (const char* name : {"drun-0123456789ab", "drun-0123456789a-aB3xYz", "drun-0123456789ab-aB3xY", "drun-1000",
                           "xdrun-0123456789ab-aB3xYz", "drun-0123456789aX-aB3xYz", "drun-0123456789ab-aB3xYz-"}) {
    EXPECT_EQ(job_of_socket_directory(name), std::nullopt) << name;
  }
}

TEST(UserName, IsReadFromPasswd) {
  const char* passwd = "root:x:0:0::/root:/bin/sh\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
  EXPECT_EQ(user_name(passwd, 1000), "ann");
  EXPECT_EQ(user_name(passwd, 0), "root");
  EXPECT_EQ(user_name(passwd, 100), std::nullopt);
}

}  // namespace
}  // namespace drun::agent
