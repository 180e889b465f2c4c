#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <thread>
#include <utility>

namespace drun {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Fd, ClosesWhenItGoes) {
  int raw = -1;
  {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    raw = pipe->read.get();
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(Fd, MovesItsOwnership) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const int read = pipe->read.get(), write = pipe->write.get();
  Fd a(std::move(pipe->read));
  EXPECT_FALSE(pipe->read);
  EXPECT_EQ(a.get(), read);
  a = std::move(pipe->write);
  EXPECT_FALSE(is_open(read)) << "the one it held before";
  EXPECT_EQ(a.get(), write);
  Fd& self = a;
  a = std::move(self);
  EXPECT_TRUE(is_open(write));
  const int released = a.release();
  EXPECT_FALSE(a);
  EXPECT_TRUE(is_open(released));
  ::close(released);
}

TEST(Fd, ThatIsEmptyClosesNothing) {
  Fd none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.get(), -1);
  none.reset();
  EXPECT_EQ(none.release(), -1);
}

TEST(MakePipe, IsClosedOnExec) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  EXPECT_TRUE(::fcntl(pipe->read.get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(::fcntl(pipe->write.get(), F_GETFD) & FD_CLOEXEC);
}

// A child that redirects its standard descriptors must not lose its pipe.
TEST(MakePipe, IsAboveTheStandardDescriptorsEvenIfTheyAreClosed) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    const auto pipe = make_pipe();
    ::_exit(pipe && pipe->read.get() > 2 && pipe->write.get() > 2 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SetNonblocking, GoesOnAndOff) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_TRUE(set_nonblocking(pipe->read.get(), true));
  char c;
  EXPECT_EQ(::read(pipe->read.get(), &c, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_TRUE(set_nonblocking(pipe->read.get(), false));
  EXPECT_FALSE(::fcntl(pipe->read.get(), F_GETFL) & O_NONBLOCK);
  EXPECT_FALSE(set_nonblocking(-1, true));
}

TEST(ReopenNonblocking, DoesNotBlockAndLeavesTheOtherAsItIs) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const Fd own = reopen_nonblocking(pipe->read.get(), O_RDONLY);
  ASSERT_TRUE(own);
  char c = 0;
  EXPECT_EQ(::read(own.get(), &c, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(::fcntl(pipe->read.get(), F_GETFL) & O_NONBLOCK);
  ASSERT_EQ(::write(pipe->write.get(), "x", 1), 1);
  EXPECT_EQ(::read(own.get(), &c, 1), 1);
}

TEST(ReopenNonblocking, IsForPipesAndTerminalsAlone) {
  const Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(reopen_nonblocking(file.get(), O_RDONLY)) << "it would begin anew";
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd one(ends[0]), other(ends[1]);
  EXPECT_FALSE(reopen_nonblocking(one.get(), O_RDONLY));
  EXPECT_FALSE(reopen_nonblocking(-1, O_RDONLY));
}

TEST(WriteAll, WaitsForASlowReaderOfANonblockingPipe) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_TRUE(set_nonblocking(pipe->write.get(), true));
  const std::string sent(1 << 20, 'x');  // far more than a pipe holds
  std::string got;
  std::thread reader([&] {
    char buffer[4096];
    ssize_t n;
    while ((n = ::read(pipe->read.get(), buffer, sizeof buffer)) > 0) got.append(buffer, static_cast<std::size_t>(n));
  });
  EXPECT_TRUE(write_all(pipe->write.get(), sent));
  pipe->write.reset();
  reader.join();
  EXPECT_EQ(got, sent);
}

TEST(WriteAll, SaysThatTheReaderIsGone) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  pipe->read.reset();
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const auto written = write_all(pipe->write.get(), "x");
  std::signal(SIGPIPE, before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().cause, "write: broken pipe");
}

TEST(ReadFile, ReadsProcAndSaysWhatIsMissing) {
  const auto status = read_file("/proc/self/status");
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("Pid:"), std::string::npos);
  const auto missing = read_file("/nowhere/at all");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().cause, "/nowhere/at all: no such file or directory");
}

TEST(ReadFile, KeepsToItsLimit) {
  EXPECT_TRUE(read_file("/proc/self/status", 1 << 20));
  const auto endless = read_file("/dev/zero", 100000);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().message(), "/dev/zero: larger than 100000 bytes");
}

TEST(RaiseOpenFileLimit, ReachesTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(raise_open_file_limit(), before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace drun
