#include "agent/guard_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "tests/fakes/virtual_time.h"

namespace drun::agent {
namespace {

using std::chrono::seconds;

// The test is the guard. A process that sleeps stands for it where one is killed.
class GuardWatchTest : public ::testing::Test {
 protected:
  GuardWatchTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as the agent does
    guard_pid_ = ::fork();
    if (guard_pid_ == 0) {
      for (;;) ::pause();
    }
    begin(true);
  }
  void begin(bool has_pidfd) {
    auto in = make_pipe();
    auto out = make_pipe();
    to_ = std::move(in->write);
    from_ = std::move(out->read);
    set_nonblocking(from_.get(), true);
    GuardLink link;
    link.from_guard = std::move(in->read);
    link.to_guard = std::move(out->write);
    link.guard_pid = guard_pid_;
    if (has_pidfd) link.guard_process.reset(static_cast<int>(::syscall(SYS_pidfd_open, guard_pid_, 0)));
    watch_ = std::make_unique<GuardWatch>(io_, std::move(link), [this] { ++n_lost_; });
    watch_->start();
  }
  ~GuardWatchTest() override {
    watch_->stop();
    time_.run_for(seconds(0));
    if (!is_reaped_) {
      ::kill(guard_pid_, SIGKILL);
      ::waitpid(guard_pid_, nullptr, 0);
    }
  }

  std::string received() {
    char bytes[256];
    const ssize_t n = ::read(from_.get(), bytes, sizeof bytes);
    return n > 0 ? std::string(bytes, static_cast<std::size_t>(n)) : "";
  }

  asio::io_context io_{1};
  testing::VirtualTime time_{io_};
  Fd to_, from_;
  pid_t guard_pid_ = 0;
  bool is_reaped_ = false;
  std::unique_ptr<GuardWatch> watch_;
  int n_lost_ = 0;
};

TEST_F(GuardWatchTest, SendsAHeartbeatEachSecond) {
  for (int second = 0; second < 3; ++second) {
    time_.run_for(std::chrono::milliseconds(1100));
    write_all(to_.get(), ".");
  }
  EXPECT_EQ(received(), "....");
  EXPECT_EQ(n_lost_, 0);
}

TEST_F(GuardWatchTest, AnnouncesBetweenHeartbeats) {
  time_.settle();
  EXPECT_TRUE(watch_->announce('C', "/sys/fs/cgroup/x"));
  EXPECT_TRUE(watch_->beat());
  EXPECT_EQ(received(), ".C/sys/fs/cgroup/x\n.");
}

TEST_F(GuardWatchTest, NoticesTheEndOfTheGuardAtOnce) {
  to_.reset();
  time_.settle();
  EXPECT_EQ(n_lost_, 1);
}

TEST_F(GuardWatchTest, KillsASilentGuard) {
  time_.run_for(seconds(kGuardSilenceLimit - 1));
  EXPECT_EQ(n_lost_, 0);
  time_.run_for(seconds(2));
  EXPECT_EQ(n_lost_, 1);
  int status = 0;
  ASSERT_EQ(::waitpid(guard_pid_, &status, 0), guard_pid_);
  is_reaped_ = true;
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_F(GuardWatchTest, KillsNoProcessThatOnlyHasTheGuardsNumber) {
  watch_->stop();
  time_.run_for(seconds(0));
  begin(false);  // and the guard is not our parent
  time_.run_for(seconds(kGuardSilenceLimit + 1));
  EXPECT_EQ(n_lost_, 1);
  EXPECT_EQ(::waitpid(guard_pid_, nullptr, WNOHANG), 0) << "it lives";
}

TEST_F(GuardWatchTest, ContinuesAStoppedGuardAtTheEnd) {
  int status = 0;
  ::kill(guard_pid_, SIGSTOP);
  ASSERT_EQ(::waitpid(guard_pid_, &status, WUNTRACED), guard_pid_);
  watch_->stop();
  ASSERT_EQ(::waitpid(guard_pid_, &status, WCONTINUED | WNOHANG), guard_pid_) << "it is still stopped";
  EXPECT_TRUE(WIFCONTINUED(status));
}

TEST_F(GuardWatchTest, SilenceCountsFromTheLastByte) {
  for (int i = 0; i < 3; ++i) {
    time_.run_for(seconds(kGuardSilenceLimit - 2));
    write_all(to_.get(), ".");
    time_.settle();
  }
  EXPECT_EQ(n_lost_, 0);
}

}  // namespace
}  // namespace drun::agent
