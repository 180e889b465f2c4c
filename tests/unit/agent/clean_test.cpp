#include "agent/clean.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "agent/leftovers.h"
#include "agent/life_lock.h"
#include "agent/worker_socket.h"

namespace drun::agent {
namespace {

// A private folder for socket directories, and a job id that no other test has.
class SocketDirectories : public testing::Test {
 protected:
  void SetUp() override {
    std::string place = "/tmp/drun-clean-test-XXXXXX";
    ASSERT_NE(::mkdtemp(place.data()), nullptr);
    place_ = place;
    if (const char* before = std::getenv("XDG_RUNTIME_DIR")) before_ = before;
    ::setenv("XDG_RUNTIME_DIR", place_.c_str(), 1);
    char id[32];
    std::snprintf(id, sizeof id, "%08xc1ea", static_cast<unsigned>(::getpid()));
    digits_ = id;
    job_id_ = digits_ + "cafe";
    scope_.uid = ::getuid();
    scope_.job_id = job_id_;
  }
  void TearDown() override {
    if (before_.empty()) {
      ::unsetenv("XDG_RUNTIME_DIR");
    } else {
      ::setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
    }
    std::filesystem::remove_all(place_);
  }
  // Makes a directory as an agent does, with a socket on which no process listens, as after bind or after the agent's
  // end.
  std::string make_silent() {
    std::string path = place_ + "/drun-" + digits_ + "-abcdef";
    EXPECT_EQ(::mkdir(path.c_str(), 0700), 0);
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::strncpy(where.sun_path, WorkerSocket::path_in(path).c_str(), sizeof where.sun_path - 1);
    silent_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(silent_.get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
    return path;
  }

  std::string place_, before_, digits_, job_id_;
  CleanScope scope_;
  Fd silent_;
};

TEST_F(SocketDirectories, OneWhoseMakerHoldsItsLockIsNotLeftOver) {
  const std::string path = make_silent();
  {
    const auto lock = lock_as_maker(path);
    ASSERT_TRUE(lock.has_value());
    EXPECT_TRUE(find_directories(scope_).empty());
  }
  const auto found = find_directories(scope_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, path);
  EXPECT_EQ(found[0].job_id, digits_);
}

TEST_F(SocketDirectories, OfALivingAgentIsNotLeftOverEvenWhenItHasStoppedListening) {
  asio::io_context io;
  auto socket = WorkerSocket::create(io, job_id_);
  ASSERT_TRUE(socket.has_value());
  EXPECT_TRUE(find_directories(scope_).empty());
  (*socket)->stop();
  EXPECT_TRUE(find_directories(scope_).empty());
}

TEST_F(SocketDirectories, AreNeverFoundOrRemovedWhileAgentsBeginAndEnd) {
  std::atomic<bool> over = false;
  std::size_t n_found = 0;
  std::thread looker([&] {
    while (!over) {
      for (const auto& directory : find_directories(scope_)) {
        ++n_found;
        remove_directory(directory);
      }
    }
  });
  asio::io_context io;
  for (int i = 0; i < 1000; ++i) {
    auto socket = WorkerSocket::create(io, job_id_);
    EXPECT_TRUE(socket.has_value()) << socket.error().message();
  }
  over = true;
  looker.join();
  EXPECT_EQ(n_found, 0u);
}

TEST_F(SocketDirectories, WhoeverLooksKeepsMakersAwayUntilHeIsDone) {
  const std::string path = make_silent();
  auto found = find_directories(scope_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(lock_as_maker(path).has_value());
  EXPECT_TRUE(remove_directory(found[0]));
  found.clear();
  EXPECT_FALSE(lock_as_maker(path).has_value());  // it is gone
}

// One worker whose parent is named drun-agent.
class RunningJob {
 public:
  explicit RunningJob(const std::string& job_id) {
    auto ready = make_pipe();
    EXPECT_TRUE(ready.has_value());
    const std::string mark = "DRUN_JOB_ID=" + job_id;
    agent_ = ::fork();
    if (agent_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_NAME, "drun-agent");
      if (::fork() == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const char* environment[] = {mark.c_str(), nullptr};
        ::execle("/bin/sleep", "sleep", "1000", nullptr, environment);
        ::_exit(1);
      }
      ready->write.reset();  // the worker's copy is closed by its exec
      char byte = 0;
      (void)!::read(ready->read.get(), &byte, 1);
      for (;;) ::pause();
    }
    ready->write.reset();
    char byte = 0;
    EXPECT_EQ(::read(ready->read.get(), &byte, 1), 0);
  }
  ~RunningJob() {
    ::kill(agent_, SIGKILL);
    ::waitpid(agent_, nullptr, 0);
  }

 private:
  pid_t agent_ = 0;
};

TEST_F(SocketDirectories, OfARunningJobIsSparedByItsFirstDigits) {
  const std::string path = make_silent();
  const auto is_listed = [&] {
    const control::Cleaned found = clean(control::Clean{}, 0);
    return std::any_of(found.directories.begin(), found.directories.end(),
                       [&](const control::LeftDirectory& d) { return d.path == path; });
  };
  EXPECT_TRUE(is_listed());
  {
    const RunningJob job(job_id_);
    const auto found = clean(control::Clean{}, 0).processes;
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), [&](const control::LeftProcess& p) {
      return p.job_id == job_id_ && p.state == control::LeftState::kRunning;
    }));
    EXPECT_FALSE(is_listed());
  }
  EXPECT_TRUE(is_listed());
}

TEST(LeftDirectory, OfASocketIsKnownByItsJobsFirstDigitsOfACgroupByAll) {
  const LeftDirectoryFound socket{"0123456789ab", "/tmp/x", false, false, Fd()};
  EXPECT_TRUE(may_be_of(socket, "0123456789abcdef"));
  EXPECT_FALSE(may_be_of(socket, "0123456789aacdef"));
  EXPECT_FALSE(may_be_of(socket, "0123456789"));
  const LeftDirectoryFound cgroup{"0123456789abcdef", "/sys/fs/cgroup/x", true, false, Fd()};
  EXPECT_TRUE(may_be_of(cgroup, "0123456789abcdef"));
  EXPECT_FALSE(may_be_of(cgroup, "0123456789abcdeff"));
}

}  // namespace
}  // namespace drun::agent
