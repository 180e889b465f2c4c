#include "launcher/output/output_writer.h"

#include <gtest/gtest.h>

#include <map>

#include "control/output_credit.h"

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
  ASSERT_TRUE(writer.open(std::vector<RankLabel>(2)).has_value());

  std::map<std::pair<int, Stream>, std::size_t> charged;
  const auto push = [&](std::uint32_t rank, Stream stream, std::size_t n_bytes) {
    control::Output output;
    output.rank = rank;
    output.stream = stream;
    output.bytes = std::string(n_bytes, 'x');
    charged[{static_cast<int>(rank), stream}] += control::output_charge(n_bytes);
    writer.push(std::move(output));
  };
  for (const std::size_t n_bytes : {std::size_t{0}, std::size_t{1}, kMinCharge, kMinCharge + 1}) {
    push(0, Stream::kStdout, n_bytes);
    push(1, Stream::kStderr, n_bytes);
  }
  // These are more than one batch.
  for (int i = 0; i < 10000; ++i) push(1, Stream::kStdout, 1);
  writer.end(0, Stream::kStdout);
  writer.push_own("");

  TaskGroup tasks(io.get_executor());
  writer.stop();
  tasks.spawn(writer.run());
  io.run_for(std::chrono::seconds(20));
  EXPECT_EQ(given, charged);
  EXPECT_EQ((given[{1, Stream::kStdout}]), 10000 * kMinCharge);
}

}  // namespace
}  // namespace drun::launcher
