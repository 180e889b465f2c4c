#include "agent/forked_call.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "base/fd.h"
#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ForkedAnswer, IsReadInPieces) {
  for (const std::string value : {"", "abc"}) {
    const std::string bytes = ForkedAnswer::encode(value);
    ForkedAnswer answer;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_FALSE(answer.value()) << i;
      answer.push(std::string_view(bytes).substr(i, 1));
    }
    EXPECT_EQ(answer.value(), value);
  }
}

TEST(SharedStep, HasTheLastOfAnyLength) {
  const SharedStep step;
  EXPECT_EQ(step.get(), "");
  step.set("stat /nfs/train");
  EXPECT_EQ(step.get(), "stat /nfs/train");
  step.set(std::string(5000, 'x'));
  EXPECT_EQ(step.get(), std::string(4095, 'x'));
  step.set("/a");
  EXPECT_EQ(step.get(), "/a");
}

class ForkedCallsTest : public ::testing::Test {
 protected:
  ~ForkedCallsTest() override {
    calls_.stop();
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
  }
  Task<void> keep(ForkedFunction function, Deadline deadline) {
    result_ = co_await calls_.call(std::move(function), deadline);
    is_over_ = true;
  }
  void begin(ForkedFunction function, milliseconds limit = seconds(30)) {
    tasks_.spawn(keep(std::move(function), Clock::now() + limit));
    io_.poll();
  }
  ForkedResult call(ForkedFunction function, milliseconds limit = seconds(30)) {
    begin(std::move(function), limit);
    io_.restart();
    io_.run_for(seconds(30));
    EXPECT_TRUE(is_over_);
    return result_;
  }

  asio::io_context io_{1};
  ForkedCalls calls_{io_};
  TaskGroup tasks_{io_.get_executor()};
  ForkedResult result_;
  bool is_over_ = false;
};

TEST_F(ForkedCallsTest, ReturnsWhatTheFunctionReturned) {
  const std::string large(1 << 20, 'x');
  const ForkedResult result = call([&large](const ReportStep&) { return large; });
  EXPECT_EQ(result.value, large);
  EXPECT_FALSE(result.late);
}

TEST_F(ForkedCallsTest, AFunctionThatNeverReturnsIsGivenUp) {
  const ForkedResult result = call(
      [](const ReportStep&) {
        ::pause();
        return std::string();
      },
      milliseconds(50));
  EXPECT_FALSE(result.value);
  EXPECT_TRUE(result.late);
}

TEST_F(ForkedCallsTest, ACallThatIsGivenUpHasItsLastStep) {
  const testing::TempFolder folder;
  begin([&folder](const ReportStep& report) {
    report("open /nfs/train");
    folder.write("reported", "");
    ::pause();
    return std::string();
  });
  while (!std::filesystem::exists(folder.path("reported"))) ::usleep(1000);
  calls_.stop();
  io_.restart();
  io_.run_for(seconds(30));
  EXPECT_TRUE(result_.late);
  EXPECT_EQ(result_.step, "open /nfs/train");
}

TEST_F(ForkedCallsTest, AChildThatDiesIsNotLate) {
  const ForkedResult result = call([](const ReportStep&) -> std::string { ::_exit(3); });
  EXPECT_FALSE(result.value);
  EXPECT_FALSE(result.late);
  EXPECT_EQ(result.problem, "a child process ended early");
}

// A login node where the user is at a limit.
TEST_F(ForkedCallsTest, AChildThatCannotBeMadeHasItsReason) {
  io_.poll();  // opens what asio itself needs
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none{3, files.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const ForkedResult result = call([](const ReportStep&) { return std::string(); });
  ::setrlimit(RLIMIT_NOFILE, &files);
  EXPECT_FALSE(result.value);
  EXPECT_FALSE(result.late);
  EXPECT_NE(result.problem.find("too many open files"), std::string::npos) << result.problem;
}

TEST_F(ForkedCallsTest, StopEndsACallAtOnce) {
  begin([](const ReportStep&) {
    ::pause();
    return std::string();
  });
  calls_.stop();
  io_.restart();
  io_.run_for(seconds(30));
  EXPECT_TRUE(is_over_);
  EXPECT_TRUE(result_.late);
  EXPECT_TRUE(call([](const ReportStep&) { return std::string(); }).late) << "nor may a call begin after it";
}

// A child that hangs must not keep the channel to drun open.
TEST_F(ForkedCallsTest, TheChildHasNoDescriptorOfTheCallers) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd in(ends[0]), out(ends[1]);
  const ForkedResult result =
      call([&out](const ReportStep&) { return std::string(::fcntl(out.get(), F_GETFD) < 0 ? "closed" : "open"); });
  EXPECT_EQ(result.value, "closed");
}

}  // namespace
}  // namespace drun::agent
