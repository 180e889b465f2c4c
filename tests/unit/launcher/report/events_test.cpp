#include "launcher/report/events.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clean_text.h"
#include "base/fd.h"
#include "base/text.h"
#include "tests/hostile_text.h"
#include "tests/pipe_text.h"
#include "tests/redirected_fd.h"

namespace drun::launcher {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Recorder : public Reporter {
 public:
  void note(const std::string& text) override { said.push_back(text); }
  void warning(const std::string& text) override { said.push_back(text); }
  void error(const Error& error) override { said.push_back(error.message()); }
  void job_over(const JobReport& /*report*/) override {}
  std::vector<std::string> said;
};

class EventsFile : public ::testing::Test {
 protected:
  EventsFile() {
    char name[] = "/tmp/drun-events-XXXXXX";
    const int fd = ::mkstemp(name);
    ::close(fd);
    path_ = name;
  }
  ~EventsFile() override { ::unlink(path_.c_str()); }

  // All events until now.
  std::vector<Json> lines() {
    events_.close(seconds(20));
    std::vector<Json> out;
    std::ifstream in(path_);
    for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
    return out;
  }

  std::string path_;
  Recorder recorder_;
  Events events_{recorder_, 512u << 10};
};

TEST_F(EventsFile, OnlyTheFirstLineHasTheSchema) {
  ASSERT_TRUE(events_.open(path_));
  events_.job_begun("id", {"./train", "a b"}, 3, {{"node1", 2}, {"node2", 1}});
  events_.job_ended(0);
  const auto all = lines();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["schema"], 1);
  EXPECT_EQ(all[0]["event"], "job_begun");
  EXPECT_EQ(all[0]["command"][1], "a b");
  EXPECT_EQ(all[0]["hosts"][1]["name"], "node2");
  EXPECT_EQ(all[0]["hosts"][0]["workers"], 2);
  EXPECT_FALSE(all[1].contains("schema"));
  EXPECT_EQ(all[1]["status"], 0);
  EXPECT_GE(all[1]["elapsed"].get<double>(), all[0]["elapsed"].get<double>());
}

TEST_F(EventsFile, EscapesControlCharacters) {
  ASSERT_TRUE(events_.open(path_));
  events_.stop_ordered(testing::kHostile, 1);
  const Json event = lines().at(0);
  std::ifstream file(path_);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(clean_line(line), line);
  EXPECT_NE(line.find("\\u001b[2J \\u009b31m"), std::string::npos) << line;
  EXPECT_NE(event["why"].get<std::string>().find("\033[2J \xc2\x9b"), std::string::npos);
}

TEST_F(EventsFile, AnExitHasAStatusOrASignal) {
  ASSERT_TRUE(events_.open(path_));
  control::Exited exited;
  exited.pid = 7;
  exited.wait_status = 3 << 8;
  events_.worker_exited(1, "a", exited);
  exited.wait_status = SIGKILL;
  exited.ended_by_drun = true;
  events_.worker_exited(2, "b", exited);
  const auto all = lines();
  EXPECT_EQ(all[0]["status"], 3);
  EXPECT_TRUE(all[0]["signal"].is_null());
  EXPECT_EQ(all[1]["signal"], SIGKILL);
  EXPECT_TRUE(all[1]["status"].is_null());
  EXPECT_EQ(all[1]["ended_by_drun"], true);
}

TEST_F(EventsFile, AFailureThatIsNoWorkersDoingHasNoRank) {
  ASSERT_TRUE(events_.open(path_));
  events_.first_failure(-1, "node3", 0, "silent", 68);
  EXPECT_TRUE(lines()[0]["rank"].is_null());
  EXPECT_EQ(lines()[0]["host"], "node3");
}

TEST_F(EventsFile, BytesThatAreNoUtf8StillGiveJson) {
  ASSERT_TRUE(events_.open(path_));
  events_.stop_ordered("because \xff\xfe", 1);
  EXPECT_EQ(lines().size(), 1u);
}

TEST_F(EventsFile, DrunsOwnStderrKeepsWhatIsInIt) {
  const Fd shell(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  {
    const testing::RedirectedFd own(STDERR_FILENO, shell.get());
    ASSERT_TRUE(write_all(STDERR_FILENO, "{\"event\": \"before\"}\n"));
    ASSERT_TRUE(events_.open("/dev/stderr"));
    events_.job_ended(0);
    events_.close(seconds(20));
    ASSERT_TRUE(write_all(STDERR_FILENO, "{\"event\": \"after\"}\n"));
  }
  const auto all = lines();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["event"], "before");
  EXPECT_EQ(all[1]["event"], "job_ended");
  EXPECT_EQ(all[2]["event"], "after");
}

TEST_F(EventsFile, APipeThatIsStderrTooDoesNotBlock) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const testing::RedirectedFd own(STDERR_FILENO, pipe->write.get());
  ASSERT_TRUE(events_.open("/dev/stderr"));
  for (int i = 0; i < 2000; ++i) events_.stop_ordered(std::string(100, 'x'), 1);  // more than a pipe holds
  EXPECT_TRUE(recorder_.said.empty());
  events_.close(milliseconds(1));
  EXPECT_EQ(recorder_.said.size(), 1u);
}

TEST_F(EventsFile, AFileIsEmptiedFirst) {
  std::ofstream(path_) << "earlier\n";
  ASSERT_TRUE(events_.open(path_));
  events_.job_ended(0);
  EXPECT_EQ(lines().size(), 1u);
}

TEST_F(EventsFile, APathThatCanNotBeWrittenIsAUsageError) {
  const auto open = events_.open("/nonexistent/events");
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, Errc::kUsage);
}

TEST_F(EventsFile, AFailedWriteIsOneWarning) {
  ASSERT_TRUE(events_.open("/dev/full"));
  events_.stop_ordered("one", 1);
  events_.close(seconds(20));
  events_.job_ended(0);
  ASSERT_EQ(recorder_.said.size(), 1u);
  EXPECT_NE(recorder_.said[0].find("/dev/full"), std::string::npos);
}

TEST_F(EventsFile, EachLineIsThereAsSoonAsItHappened) {
  ::unlink(path_.c_str());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const Fd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(events_.open(path_));
  for (int rank = 0; rank < 3; ++rank) {
    events_.worker_started(rank, "a", 12);
    EXPECT_EQ(Json::parse(testing::read_to(reader.get(), "\n"))["rank"], rank);
  }
}

// As 2,400 workers do that start at once: more than a pipe holds.
TEST_F(EventsFile, AReaderThatIsLateGetsEveryEvent) {
  ::unlink(path_.c_str());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const Fd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(events_.open(path_));
  for (int rank = 0; rank < 2400; ++rank) events_.worker_started(rank, "a", 12);
  events_.job_ended(0);
  EXPECT_TRUE(recorder_.said.empty());
  const std::string text = testing::read_to(reader.get(), "\"status\":0}\n");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2401);
}

TEST_F(EventsFile, AReaderThatSleepsIsOneWarningAndNobodyWaits) {
  ::unlink(path_.c_str());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto unread = events_.open(path_);
  ASSERT_FALSE(unread);
  EXPECT_NE(unread.error().hint.find("reader"), std::string::npos);
  const Fd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(events_.open(path_));
  for (int i = 0; i < 100; ++i) events_.stop_ordered(std::string(10'000, 'x'), 1);
  ASSERT_EQ(recorder_.said.size(), 1u);
  EXPECT_NE(recorder_.said[0].find("its reader is too slow"), std::string::npos) << recorder_.said[0];
}

TEST_F(EventsFile, WithoutAFileNothingHappens) {
  events_.job_ended(0);
  EXPECT_TRUE(recorder_.said.empty());
}

TEST(Rfc3339, IsUtcWithMilliseconds) {
  const std::chrono::system_clock::time_point time{std::chrono::milliseconds(1700000000042)};
  EXPECT_EQ(rfc3339(time), "2023-11-14T22:13:20.042Z");
}

}  // namespace
}  // namespace drun::launcher
