#include "launcher/output/output_writer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "control/output_credit.h"
#include "tests/temp_folder.h"

namespace drun::launcher {
namespace {

using control::kMinCharge;
using control::Stream;

TEST(OutputWriter, GivesBackWhatTheAgentWasCharged) {
  asio::io_context io;
  OutputOptions options;
  options.shown = {false, false};
  std::map<std::pair<int, Stream>, std::size_t> given;
  OutputWriter writer(
      io, options,
      [&](int rank, Stream stream, std::size_t credit) {
        given[{rank, stream}] += credit;
      },
      [](Error error) { ADD_FAILURE() << error.message(); });
  writer.open(std::vector<RankLabel>(2));

  std::map<std::pair<int, Stream>, std::size_t> charged;
  const auto push = [&](std::uint32_t rank, Stream stream, std::size_t n_bytes) {
    control::Output output;
    output.rank = rank;
    output.stream = stream;
    output.bytes = std::string(n_bytes, 'x');
    charged[{static_cast<int>(rank), stream}] += control::output_charge(n_bytes);
    EXPECT_TRUE(writer.push(std::move(output)));
  };
  for (const std::size_t n_bytes : {std::size_t{0}, std::size_t{1}, kMinCharge, kMinCharge + 1}) {
    push(0, Stream::kStdout, n_bytes);
    push(1, Stream::kStderr, n_bytes);
  }
  // These are more than one batch.
  for (int i = 0; i < 10000; ++i) push(1, Stream::kStdout, 1);
  EXPECT_TRUE(writer.end(0, Stream::kStdout));
  writer.push_own("");

  TaskGroup tasks(io.get_executor());
  writer.stop();
  tasks.spawn(writer.run());
  io.run_for(std::chrono::seconds(20));
  EXPECT_EQ(given, charged);
  EXPECT_EQ((given[{1, Stream::kStdout}]), 10000 * kMinCharge);
}

TEST(OutputWriter, WritesAfterWhatWasSaidBefore) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const Fd before(::dup(STDOUT_FILENO));
  ::dup2(pipe->write.get(), STDOUT_FILENO);
  asio::io_context io;
  OutputWriter writer(
      io, OutputOptions(), [](int, Stream, std::size_t) {}, [](const Error&) {});
  ::dup2(before.get(), STDOUT_FILENO);
  writer.open(std::vector<RankLabel>(1));
  std::vector<int> readable;  // the pipe, at each question
  writer.write_after([&](std::chrono::milliseconds) {
    pollfd p{pipe->read.get(), POLLIN, 0};
    readable.push_back(::poll(&p, 1, 0));
    return readable.size() == 3;
  });
  control::Output output;
  output.bytes = "x\n";
  EXPECT_TRUE(writer.push(std::move(output)));
  writer.stop();
  TaskGroup tasks(io.get_executor());
  tasks.spawn(writer.run());
  io.run_for(std::chrono::seconds(20));
  EXPECT_EQ(readable, (std::vector<int>{0, 0, 0}));
  pollfd p{pipe->read.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&p, 1, 0), 1);
}

Task<void> create_files(OutputWriter& writer) {
  const auto created = co_await writer.create_files(Deadline::max());
  EXPECT_TRUE(created) << created.error().message();
}

TEST(OutputWriter, MergedStderrIsInTheFileOfStdout) {
  const testing::TempFolder folder;
  asio::io_context io;
  OutputOptions options;
  options.directory = folder.path("output");
  options.shown = {false, false};
  options.merges_stderr = true;
  OutputWriter writer(
      io, options, [](int, Stream, std::size_t) {}, [](Error error) { ADD_FAILURE() << error.message(); });
  writer.open(std::vector<RankLabel>(2));
  TaskGroup tasks(io.get_executor());
  tasks.spawn(create_files(writer));
  io.run_for(std::chrono::seconds(20));
  io.restart();
  for (const std::uint32_t rank : {0u, 1u}) {
    for (const Stream stream : {Stream::kStdout, Stream::kStderr}) {
      control::Output output;
      output.rank = rank;
      output.stream = stream;
      output.bytes = std::to_string(rank) + (stream == Stream::kStdout ? " out\n" : " err\n");
      EXPECT_TRUE(writer.push(std::move(output)));
    }
  }
  writer.stop();
  tasks.spawn(writer.run());
  io.run_for(std::chrono::seconds(20));
  EXPECT_EQ(folder.read("output/rank.0/stdout"), "0 out\n0 err\n");
  EXPECT_EQ(folder.read("output/rank.1/stdout"), "1 out\n1 err\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path("output/rank.0/stderr")));
}

TEST(OutputWriter, TakesNoMoreThanTheCreditThatIsOut) {
  asio::io_context io;
  OutputOptions options;
  options.shown = {false};
  std::size_t given = 0;
  OutputWriter writer(
      io, options, [&](int, Stream, std::size_t credit) { given += credit; },
      [](Error error) { ADD_FAILURE() << error.message(); });
  constexpr std::size_t kCredit = 4 * kMinCharge;
  writer.open(std::vector<RankLabel>(1), kCredit);
  const auto push = [&](Stream stream, std::size_t n_bytes) {
    control::Output output;
    output.stream = stream;
    output.bytes = std::string(n_bytes, 'x');
    return writer.push(std::move(output)).has_value();
  };
  EXPECT_TRUE(push(Stream::kStdout, 3 * kMinCharge));
  EXPECT_FALSE(push(Stream::kStdout, kMinCharge + 1));
  EXPECT_TRUE(push(Stream::kStdout, 0)) << "costs the rest";
  EXPECT_FALSE(push(Stream::kStdout, 0));
  EXPECT_TRUE(push(Stream::kStderr, kCredit)) << "has its own";
  EXPECT_FALSE(push(Stream::kStdin, 0)) << "is no output";
  EXPECT_FALSE(push(static_cast<Stream>(7), 0));

  TaskGroup tasks(io.get_executor());
  tasks.spawn(writer.run());
  while (given < 2 * kCredit) ASSERT_EQ(io.run_one_for(std::chrono::seconds(20)), 1u);
  EXPECT_TRUE(push(Stream::kStdout, kCredit)) << "credit came back";
  EXPECT_TRUE(writer.end(0, Stream::kStderr));
  EXPECT_FALSE(writer.end(0, Stream::kStderr));
  EXPECT_FALSE(push(Stream::kStderr, 0)) << "it is over";
  writer.stop();
  io.run_for(std::chrono::seconds(20));
}

}  // namespace
}  // namespace drun::launcher
