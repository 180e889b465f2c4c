#include "cli/printer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/asio.h"
#include "base/error_id.h"
#include "base/fd.h"
#include "tests/hostile_text.h"
#include "tests/pipe_text.h"
#include "tests/redirected_fd.h"

namespace drun::cli {
namespace {

using drun::testing::fill_pipe;
using drun::testing::read_to;
using drun::testing::RedirectedFd;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Printer, ErrorHasSubjectCauseContextAndHint) {
  const Error error = Error(Errc::kUnreachable, "node3", "connect: 10.0.0.13 port 22: connection refused")
                          .with_id(error_id::kConnect)
                          .with_context("named in hosts.txt:4:1")
                          .with_context("a second line")
                          .with_hint("ssh node3 true");
  EXPECT_EQ(format_error(error, false),
            "drun: error: node3: connect: 10.0.0.13 port 22: connection refused [connect]\n"
            "  named in hosts.txt:4:1\n"
            "  a second line\n"
            "  hint: ssh node3 true\n");
}

TEST(Printer, LeavesOutWhatIsNotThere) {
  EXPECT_EQ(format_error(Error(Errc::kUsage, "no hosts"), false), "drun: error: no hosts [usage]\n");
}

TEST(Printer, ErrorsHaveTheCodeOfTheirKindOrTheirOwn) {
  const auto code = [](const Error& error) {
    const std::string line = format_error(error, false);
    return line.substr(line.rfind(' ') + 1);
  };
  EXPECT_EQ(code(Error(Errc::kTimeout, "a")), "[deadline]\n");
  EXPECT_EQ(code(Error(Errc::kNotFound, "a")), "[not-found]\n");
  EXPECT_EQ(code(Error(Errc::kCanceled, "a")), "[io]\n");
  EXPECT_EQ(code(Error(Errc::kAuth, "a")), "[wrong-key]\n");
  EXPECT_EQ(code(Error(Errc::kInternal, "a")), "[internal]\n");
  // The first one is the nearest to the cause.
  EXPECT_EQ(code(Error(Errc::kUnreachable, "a").with_id(error_id::kLogin).with_id(error_id::kSsh)), "[login]\n");
}

TEST(Printer, ColoursOnlyWhenAsked) {
  const Error error = Error(Errc::kUsage, "a").with_hint("b");
  EXPECT_EQ(format_error(error, false).find('\033'), std::string::npos);
  EXPECT_NE(format_error(error, true).find("\033[1;31merror"), std::string::npos);
}

// Each field is on its line; only the context has several.
TEST(Printer, NoTextCommandsTheTerminalOrForgesALine) {
  const std::string& evil = testing::kHostile;
  const std::string& shown = testing::kHostileInOneLine;
  const Error error = Error(Errc::kUnreachable, evil, evil).with_context(evil).with_hint(evil);
  const std::string text = format_error(error, false);
  EXPECT_EQ(text, "drun: error: " + shown + ": " + shown +
                      " [unreachable]\n  why ?]0;EVIL??[2J ?31m ?32m ? ?\n    | forged\n  hint: " + shown + "\n");
  EXPECT_EQ(format_note(evil), "drun: note: why ?]0;EVIL??[2J ?31m ?32m ? ?\n  | forged\n");
  EXPECT_EQ(format_warning(evil, false), "drun: warning: why ?]0;EVIL??[2J ?31m ?32m ? ?\n  | forged\n");
}

TEST(Error, AddingToItselfKeepsTheRest) {
  Error error(Errc::kUsage, "subject", "cause");
  error = std::move(error).with_context("context");
  EXPECT_EQ(error.message(), "subject: cause");
}

Task<void> tick(int& n_ticks) {
  for (; n_ticks < 5; ++n_ticks) co_await sleep_until(Clock::now() + milliseconds(1));
}

TEST(Printer, AReaderThatSleepsDoesNotStopTheLoop) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const std::size_t n_before = fill_pipe(pipe->write.get());
  const RedirectedFd own(STDERR_FILENO, pipe->write.get());
  Printer printer;
  std::string expected;
  for (int i = 0; i < 3; ++i) {
    printer.warning(std::to_string(i));
    expected += format_warning(std::to_string(i), false);
  }
  ASSERT_TRUE(printer.start_log(log::Level::kInfo, ""));
  log::info("a line of the log");
  const Error error(Errc::kUsage, "the last");
  printer.error(error);
  asio::io_context io(1);
  TaskGroup tasks(io.get_executor());
  int n_ticks = 0;
  tasks.spawn(tick(n_ticks));
  io.run_for(seconds(20));
  EXPECT_EQ(n_ticks, 5) << "the loop goes on";
  EXPECT_FALSE(printer.wait_written(milliseconds(1)));
  const std::string text = read_to(pipe->read.get(), "the last [usage]\n").substr(n_before);
  EXPECT_THAT(text,
              ::testing::MatchesRegex(expected + "[0-9:.]+ drun I a line of the log\ndrun: error: the last .usage.\n"))
      << "in order";
  printer.flush();
  EXPECT_TRUE(printer.wait_written(milliseconds(0)));
}

TEST(Printer, TheLogInAFileIsCompleteAtTheEnd) {
  char path[] = "/tmp/drun-log-XXXXXX";
  const Fd file(::mkstemp(path));
  ASSERT_TRUE(file);
  {
    Printer printer;
    ASSERT_TRUE(printer.start_log(log::Level::kInfo, path));
    log::write_through([](const std::string&) { ADD_FAILURE() << "that is for lines on stderr"; });
    log::info("one");
    log::debug("not this one");
    log::info("two");
    log::write_through(nullptr);
  }
  log::info("after the end");
  auto text = read_file(path);
  ::unlink(path);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, ::testing::MatchesRegex("[0-9:.]+ drun I one\n[0-9:.]+ drun I two\n"));
}

TEST(Printer, ALogThatCanNotBeOpenedIsAUsageError) {
  Printer printer;
  const auto started = printer.start_log(log::Level::kInfo, "/nonexistent/log");
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::kUsage);
  EXPECT_EQ(started.error().subject, "--log-file");
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
