#include "agent/processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "agent/sweep.h"
#include "base/fd.h"

namespace drun::agent {
namespace {

// Runs `body` in a child that is an agent as far as processes are concerned, and ends what it started.
bool holds_in_an_agent(const std::function<bool()>& body) {
  const pid_t agent = ::fork();
  if (agent == 0) {
    become_subreaper();
    const bool holds = body();
    SweepLimits limits;
    limits.deadline = Clock::now() + std::chrono::seconds(10);
    sweep(limits, [](pid_t, int) {});
    ::_exit(holds ? 0 : 1);
  }
  int status = -1;
  ::waitpid(agent, &status, 0);
  return status == 0;
}

// A worker's process, leader of its group, that leaves a child behind when it ends.
pid_t start_leader(const Fd& go_on) {
  const pid_t leader = ::fork();
  if (leader == 0) {
    ::setpgid(0, 0);
    char byte = 0;
    if (::read(go_on.get(), &byte, 1) != 1) ::_exit(1);
    if (::fork() == 0) {
      for (;;) ::pause();
    }
    ::_exit(0);
  }
  ::setpgid(leader, leader);
  return leader;
}

// Its leader is over when this returns.
void leave_member(pid_t leader, const Fd& go_on) {
  if (::write(go_on.get(), "", 1) != 1) return;
  ::waitpid(leader, nullptr, 0);
}

TEST(OwnProcesses, AGroupHasTheMemberThatWasStartedAMomentAgo) {
  EXPECT_TRUE(holds_in_an_agent([] {
    OwnProcesses processes;
    auto first_goes = make_pipe(), second_goes = make_pipe();
    const pid_t first = start_leader(first_goes->read), second = start_leader(second_goes->read);
    leave_member(first, first_goes->write);
    const bool had_first = processes.has_members(first);  // and knows all processes of that moment
    leave_member(second, second_goes->write);
    return had_first && processes.has_members(second);
  }));
}

TEST(OwnProcesses, AGroupThatIsOverHasNoMembers) {
  EXPECT_TRUE(holds_in_an_agent([] {
    OwnProcesses processes;
    auto goes = make_pipe();
    const pid_t leader = start_leader(goes->read);
    leave_member(leader, goes->write);
    const bool had = processes.has_members(leader);
    processes.signal_group(leader, SIGKILL);
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    return had && !processes.has_members(leader);
  }));
}

// Its number may have been reused.
TEST(OwnProcesses, AGroupOfOtherProcessesIsNoWorkers) {
  EXPECT_TRUE(holds_in_an_agent([] {
    OwnProcesses processes;
    const pid_t others = ::getpgrp();
    return ::kill(-others, 0) == 0 && !processes.has_members(others);
  }));
}

}  // namespace
}  // namespace drun::agent
