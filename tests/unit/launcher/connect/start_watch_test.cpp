#include "launcher/connect/start_watch.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

class Terminal final : public Reporter {
 public:
  explicit Terminal(std::size_t width = 80) : width_(width) {}
  void note(const std::string&) override {}
  void warning(const std::string&) override {}
  void error(const Error&) override {}
  void job_over(const JobReport&) override {}
  std::size_t status_width() const override { return width_; }
  void status(const std::string& line) override { lines.push_back(line); }

  std::vector<std::string> lines;

 private:
  std::size_t width_;
};

Task<void> stop_after(StartWatch& watch, milliseconds time) {
  co_await sleep_until(Clock::now() + time);
  watch.stop();
}

// Returns the status lines of a one-host start that takes `time`. Both timers belong to one event loop, which runs
// expired timers in order: a timer of 100 ms fires before one of 300 ms on a busy machine, too.
std::vector<std::string> drawn(milliseconds time, std::size_t width = 80) {
  asio::io_context io;
  Terminal terminal(width);
  Events events(terminal);
  StartWatch watch(io, terminal, events);
  watch.begin(Stage::kConnect, {"node1"});
  TaskGroup group(io.get_executor());
  group.spawn(watch.draw());
  group.spawn(stop_after(watch, time));
  io.run();
  return terminal.lines;
}

TEST(StartWatch, DrawsNothingOfAStartThatIsQuick) {
  EXPECT_EQ(drawn(milliseconds(100)), std::vector<std::string>{""});  // the "" clears a line that may be there
}

TEST(StartWatch, DrawsALineOfOneThatIsSlowAndTakesItAway) {
  const auto lines = drawn(milliseconds(600));
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines.front(), "connecting 0/1");
  EXPECT_EQ(lines.back(), "");
}

TEST(StartWatch, DrawsNothingWithoutATerminal) { EXPECT_EQ(drawn(milliseconds(600), 0), std::vector<std::string>{""}); }

}  // namespace
}  // namespace drun::launcher
