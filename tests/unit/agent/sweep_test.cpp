#include "agent/sweep.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "base/process_stat.h"

namespace drun::agent {
namespace {

class SignalProcess : public ::testing::Test {
 protected:
  SignalProcess() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) ::pause();
    }
    stat_ = stat_of(pid_);
  }
  ~SignalProcess() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool lives() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

  pid_t pid_;
  std::optional<ProcessStat> stat_;
};

TEST_F(SignalProcess, ReachesTheProcessThatIsMeant) {
  ASSERT_TRUE(stat_);
  EXPECT_TRUE(signal_process(pid_, stat_->start, SIGKILL));
  int status = 0;
  ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

// As if its pid had been reused since it was found.
TEST_F(SignalProcess, SparesAProcessThatStartedAtAnotherTime) {
  ASSERT_TRUE(stat_);
  EXPECT_FALSE(signal_process(pid_, stat_->start + 1, SIGKILL));
  EXPECT_TRUE(lives());
}

TEST_F(SignalProcess, AProcessThatIsOverGetsNone) {
  ASSERT_TRUE(stat_);
  ::kill(pid_, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(signal_process(pid_, stat_->start, SIGKILL)) << "it is a zombie";
}

// An agent that drun has left has closed its stdin and stdout.
class Strays : public ::testing::TestWithParam<bool> {};

TEST_P(Strays, AreFoundByTheirEnvironment) {
  const pid_t stray = ::fork();
  if (stray == 0) {
    const char* const environment[] = {"DRUN_JOB_ID=job-of-this-test", "DRUN_AGENT=/tmp/its/agent", nullptr};
    ::execle("/bin/sleep", "sleep", "60", nullptr, environment);
    ::_exit(1);
  }
  const pid_t agent = ::fork();
  if (agent == 0) {
    if (GetParam()) {
      ::close(STDIN_FILENO);
      ::close(STDOUT_FILENO);
    }
    const Deadline until = Clock::now() + std::chrono::seconds(30);
    std::vector<pid_t> found;  // not before it has executed its program
    while (found.empty() && Clock::now() < until) found = strays({"job-of-this-test", "/tmp/its/agent"}, until);
    const bool good = found == std::vector{stray} && strays({"job-of-this-test", "/tmp/another"}, until).empty() &&
                      strays({"another", "/tmp/its/agent"}, until).empty();
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(agent, &status, 0), agent);
  EXPECT_EQ(status, 0);
  ::kill(stray, SIGKILL);
  EXPECT_EQ(::waitpid(stray, nullptr, 0), stray);
}

INSTANTIATE_TEST_SUITE_P(WithClosedStdio, Strays, ::testing::Bool());

}  // namespace
}  // namespace drun::agent
