#include "agent/sweep.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace
}  // namespace drun::agent
