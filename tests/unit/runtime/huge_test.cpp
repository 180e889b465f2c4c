// More bytes than 31 bits can count.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/runtime/grid.h"

namespace drun::runtime {
namespace {

using testing::FakeJob;
using testing::join;

std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::size_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib << 10;
  }
  return 0;
}

TEST(Huge, AllreduceAndBroadcastOfMoreThanTwoGigabytes) {
  const std::size_t count = (std::size_t{1} << 28) + 5;
  if (available_bytes() / 3 < count * sizeof(double)) GTEST_SKIP() << "not enough memory on this machine";
  FakeJob job(2, std::chrono::seconds(100));
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<double> data(count, rank + 1.0);
    data.back() = 10.0 * rank;
    data[count / 2] = rank;
    auto done = all->allreduce(data.data(), data.data(), count, DRUN_FLOAT64, DRUN_SUM);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_EQ(data.back(), 10);
    EXPECT_EQ(data[count / 2], 1);
    for (std::size_t i = 0; i < count - 1; i += 4099) ASSERT_EQ(data[i], i == count / 2 ? 1 : 3) << i;

    if (rank == 1) data[count - 2] = data[7] = 77;
    done = all->broadcast(data.data(), count, DRUN_FLOAT64, 1);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_EQ(data[count - 2], 77);
    EXPECT_EQ(data[7], 77);
  });
}

}  // namespace
}  // namespace drun::runtime
