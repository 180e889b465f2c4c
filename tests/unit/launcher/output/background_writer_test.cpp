#include "cli/message_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "base/fd.h"
#include "cli/printer.h"
#include "tests/hostile_text.h"
#include "tests/redirected_fd.h"

namespace drun::cli {
namespace {

using drun::testing::RedirectedFd;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Fills a pipe. Returns the number of bytes.
std::size_t fill(int fd) {
  set_nonblocking(fd, true);
  const std::string chunk(4096, '.');
  std::size_t n_bytes = 0;
  for (ssize_t n = 0; (n = ::write(fd, chunk.data(), chunk.size())) > 0;) n_bytes += static_cast<std::size_t>(n);
  set_nonblocking(fd, false);
  return n_bytes;
}

// Reads until the text ends with `end`.
std::string read_to(int fd, const std::string& end) {
  std::string text;
  char bytes[4096];
  while (text.size() < end.size() || text.compare(text.size() - end.size(), end.size(), end) != 0) {
    pollfd p{fd, POLLIN, 0};
    if (::poll(&p, 1, 20'000) != 1) break;
    const ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n <= 0) break;
    text.append(bytes, static_cast<std::size_t>(n));
  }
  return text;
}

Task<void> tick(int& n_ticks) {
  for (; n_ticks < 5; ++n_ticks) co_await sleep_until(Clock::now() + milliseconds(1));
}

TEST(MessageWriter, AReaderThatSleepsDoesNotStopTheLoop) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const std::size_t n_before = fill(pipe->write.get());
  const RedirectedFd own(STDERR_FILENO, pipe->write.get());
  Printer printer;
  std::string expected;
  for (int i = 0; i < 3; ++i) {
    printer.warning(std::to_string(i));
    expected += format_warning(std::to_string(i), false);
  }
  printer.log_writer()("a line of the log\n");
  const Error error(Errc::kUsage, "the last");
  printer.error(error);
  expected += "a line of the log\n" + format_error(error, false);
  asio::io_context io(1);
  TaskGroup tasks(io.get_executor());
  int n_ticks = 0;
  tasks.spawn(tick(n_ticks));
  io.run_for(seconds(20));
  EXPECT_EQ(n_ticks, 5) << "the loop goes on";
  EXPECT_FALSE(printer.wait_written(milliseconds(1)));
  EXPECT_EQ(read_to(pipe->read.get(), "the last [usage]\n").substr(n_before), expected) << "in order";
  printer.flush();
  EXPECT_TRUE(printer.wait_written(milliseconds(0)));
}

TEST(MessageWriter, ItsEndWritesEverything) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  for (int i = 0; i < 50; ++i) {
    {
      MessageWriter writer(pipe->write.get());
      writer.push("one\n");
      writer.push("two\n");
    }
    EXPECT_EQ(read_to(pipe->read.get(), "two\n"), "one\ntwo\n");
  }
}

TEST(MessageWriter, AReaderThatIsGoneIsNotWaitedFor) {
  ::signal(SIGPIPE, SIG_IGN);
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  MessageWriter writer(pipe->write.get());
  pipe->read.reset();
  writer.push("lost\n");
  EXPECT_TRUE(writer.wait(seconds(20)));
}

// Only terminals have one.
TEST(Printer, ItsProgressLineIsOneCleanLine) {
  const Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master);
  ASSERT_EQ(::grantpt(master.get()), 0);
  ASSERT_EQ(::unlockpt(master.get()), 0);
  const Fd terminal(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  ::setenv("TERM", "xterm", 1);
  const RedirectedFd own(STDERR_FILENO, terminal.get());
  Printer printer;
  printer.status(testing::kHostile);
  printer.flush();
  EXPECT_EQ(read_to(master.get(), "\033[K"), "\rdrun: " + testing::kHostileInOneLine + "\033[K");
  printer.status("");
  printer.flush();
  EXPECT_EQ(read_to(master.get(), "\r\033[K"), "\r\033[K");
}

}  // namespace
}  // namespace drun::cli
