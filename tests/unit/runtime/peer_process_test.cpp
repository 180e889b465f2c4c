// The end of another process on this host, detected without a message from it. Uses real processes.
#include "runtime/src/backend/shm/peer_process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

namespace drun::runtime {
namespace {

// A child that has recorded its mark and waits for its end.
class Life : public ::testing::Test {
 protected:
  Life() {
    void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) mark_ = new (memory) ProcessMark;
  }
  ~Life() override {
    if (child_ > 0) kill_and_reap();
    ::munmap(mark_, 4096);
  }
  void start(bool in_namespace_of_its_own = false) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    child_ = ::fork();
    if (child_ == 0) {
      // Only the children of a process that calls unshare() are in the new namespace.
      if (in_namespace_of_its_own && (::unshare(CLONE_NEWPID) != 0 || (child_ = ::fork()) != 0)) {
        if (child_ > 0) ::waitpid(child_, nullptr, 0);
        ::_exit(0);
      }
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      mark_->tell();
      (void)!::write(told[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(told[1]);
    char x = 0;
    has_told_ = ::read(told[0], &x, 1) == 1;
    ::close(told[0]);
  }
  void wait_for_end() {  // it stays a zombie
    siginfo_t info;
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT), 0);
  }
  void kill_and_reap() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

  ProcessMark* mark_ = nullptr;
  pid_t child_ = -1;
  bool has_told_ = false;
};

TEST_F(Life, IsNotKnownOfAProcessThatHasToldNothing) { EXPECT_FALSE(mark_->has_ended()); }

TEST_F(Life, EndsWithSigkillAlsoBeforeTheParentLooks) {
  start();
  ASSERT_TRUE(has_told_);
  EXPECT_EQ(mark_->pid(), child_);
  EXPECT_FALSE(mark_->has_ended());
  ::kill(child_, SIGSTOP);
  EXPECT_FALSE(mark_->has_ended()) << "a stopped process lives";
  ::kill(child_, SIGKILL);
  wait_for_end();
  EXPECT_TRUE(mark_->has_ended()) << "nobody has asked for its status yet";
  kill_and_reap();
  EXPECT_TRUE(mark_->has_ended()) << "its pid is free";
}

TEST_F(Life, IsOverWhenAnotherProcessHasThePid) {
  start();
  ASSERT_TRUE(has_told_);
  const std::int32_t older = ::getppid() > 1 ? ::getppid() : 1;  // alive, but started at another time
  std::memcpy(static_cast<void*>(mark_), &older, sizeof older);
  EXPECT_TRUE(mark_->has_ended());
}

TEST_F(Life, IsNotKnownWithoutADescriptorToSpare) {
  start();
  ASSERT_TRUE(has_told_);
  ::kill(child_, SIGKILL);
  wait_for_end();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool ended = mark_->has_ended();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(ended);
  EXPECT_TRUE(mark_->has_ended());
}

TEST_F(Life, IsNotKnownInAnotherNamespaceOfPids) {
  start(true);
  if (!has_told_) GTEST_SKIP() << "no namespace of pids may be made here";
  // Its /proc is still the parent's, in which it can't find itself, so it records nothing.
  EXPECT_EQ(mark_->pid(), 0);
  EXPECT_FALSE(mark_->has_ended());
}

}  // namespace
}  // namespace drun::runtime
