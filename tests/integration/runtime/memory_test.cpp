// The memory that a rank needs besides its caller's buffers does not grow with their size.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/integration/runtime/job_server.h"

namespace drun {
namespace {

// Large enough that one more copy is detected. Larger messages take long: $DRUN_TEST_MESSAGE_MIB replaces 64.
std::size_t message_bytes() {
  const char* const told = std::getenv("DRUN_TEST_MESSAGE_MIB");
  return static_cast<std::size_t>(told != nullptr ? std::atol(told) : 64) << 20;
}
constexpr long kMaxBesideKib = 40 << 10;  // in total, including code and the shared segment

void expect_little_memory(bool shares_memory, int size, int ranks_per_host) {
  testing::JobOptions options;
  options.size = size;
  options.shares_memory = shares_memory;
  options.ranks_per_host = ranks_per_host;
  for (const auto& end : testing::run_job({MEMORY_WORKER, std::to_string(message_bytes())}, options)) {
    ASSERT_EQ(end.status, 0) << end.rank << ": " << end.output;
    const auto at = end.output.find("beside: ");
    ASSERT_NE(at, std::string::npos) << end.output;
    const long beside = std::atol(end.output.c_str() + at + 8);
    EXPECT_GT(beside, 0);
    ::testing::Test::RecordProperty("kib_of_rank_" + std::to_string(end.rank), std::to_string(beside));
    EXPECT_LT(beside, kMaxBesideKib) << "rank " << end.rank;
  }
}

TEST(MemoryOfARank, IsSmallInMemory) { expect_little_memory(true, 2, 0); }
TEST(MemoryOfARank, IsSmallOverTheNetwork) { expect_little_memory(false, 2, 0); }
TEST(MemoryOfARank, IsSmallBetweenHosts) { expect_little_memory(true, 3, 2); }

}  // namespace
}  // namespace drun
