// Several connections between two ranks: which data uses which connection, and the order at the receiver.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "runtime/src/backend/tcp/connections.h"
#include "runtime/src/backend/tcp/stripes.h"
#include "tests/unit/runtime/fake_job.h"

namespace drun::runtime {
namespace {

using testing::FakeJob;
using namespace std::chrono_literals;

// A message through connections that take and give arbitrary amounts. Both sides see the message through windows that
// end anywhere.
TEST(Stripes, ComeOutAsTheyWentIn) {
  std::mt19937 random(7);
  const auto up_to = [&](std::size_t most) { return static_cast<std::size_t>(random()) % (most + 1); };
  for (const std::size_t n_connections : {1, 2, 3, 5}) {
    for (const std::size_t n_bytes : {Stripes::kBytes + 1, 2 * Stripes::kBytes, 7 * Stripes::kBytes + 4321}) {
      std::string sent(n_bytes, '\0'), received(n_bytes, '\0');
      for (char& c : sent) c = static_cast<char>(random());
      std::vector<std::string> wire(n_connections);
      Stripes out(n_connections), in(n_connections);
      std::size_t n_sent = 0, n_received = 0, n_ready = 0, end_of_landing = 0;
      while (n_received < n_bytes) {
        n_ready = std::min(n_bytes, n_ready + up_to(100'000));
        const Window from{sent.data() + n_sent, n_ready - n_sent};
        for (std::size_t i = 0; i < n_connections; ++i) {
          const Window part = out.window_of(i, from, n_sent);
          const std::size_t n = up_to(part.n_bytes);
          wire[i].append(part.data != nullptr ? part.data : "", n);
          out.moved(i, n);
        }
        n_sent += out.n_moved(from, n_sent);

        if (n_received == end_of_landing) end_of_landing = std::min(n_bytes, n_received + 1 + up_to(150'000));
        const Window into{received.data() + n_received, end_of_landing - n_received};
        for (std::size_t i = 0; i < n_connections; ++i) {
          const Window part = in.window_of(i, into, n_received);
          const std::size_t n = std::min(up_to(part.n_bytes), wire[i].size());
          if (n > 0) std::memcpy(part.data, wire[i].data(), n);
          wire[i].erase(0, n);
          in.moved(i, n);
        }
        n_received += in.n_moved(into, n_received);
      }
      EXPECT_EQ(n_sent, n_bytes);
      EXPECT_TRUE(received == sent) << n_connections << " connections, " << n_bytes << " bytes";
      for (const auto& rest : wire) EXPECT_TRUE(rest.empty());
    }
  }
}

std::unique_ptr<Communicator> join(FakeJob& job, int rank) {
  auto all = Communicator::create(job.job_context(rank));
  EXPECT_TRUE(all) << all.error().text;
  return all ? std::move(*all) : nullptr;
}

class Streams : public ::testing::TestWithParam<std::pair<int, int>> {  // ranks, connections between two
 protected:
  static void set_streams(FakeJob& job) {
    for (int rank = 0; rank < job.size(); ++rank) job.set_streams(rank, GetParam().second);
  }
};

TEST_P(Streams, CarryWhatOneWouldCarry) {
  const int size = GetParam().first;
  FakeJob job(size, 60s);
  set_streams(job);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    const auto values = [](std::size_t count, std::int64_t times, std::int64_t first) {
      std::vector<std::int64_t> result(count);
      for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::int64_t>(i * 31) * times + first;
      return result;
    };
    const auto values_of = [&](int of, std::size_t count) { return values(count, 1, of * 1000); };
    for (const std::size_t count : {1u, 8192u, 8193u, 100'000u, 1'000'003u}) {
      const auto n = static_cast<std::size_t>(size);
      const std::vector<std::int64_t> own = values_of(rank, count);
      std::vector<std::int64_t> data = own, gathered(count * n), moved(count * n);
      ASSERT_TRUE(all->allgather(data.data(), gathered.data(), count, DRUN_INT64));
      ASSERT_TRUE(all->alltoall(gathered.data(), moved.data(), count, DRUN_INT64));
      ASSERT_TRUE(all->allreduce(data.data(), data.data(), count, DRUN_INT64, DRUN_SUM));
      ASSERT_TRUE(all->barrier());
      for (int from = 0; from < size; ++from) {
        const auto begin = static_cast<std::ptrdiff_t>(count) * from;
        const auto theirs = values_of(from, count);
        EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(), gathered.begin() + begin)) << count << " from " << from;
        EXPECT_TRUE(std::equal(own.begin(), own.end(), moved.begin() + begin)) << count << " from " << from;
      }
      EXPECT_TRUE(data == values(count, size, 1000 * (size * (size - 1) / 2))) << "sum of " << count;
      const int root = static_cast<int>(count) % size;
      const auto of_root = values_of(root, count);
      if (rank == root) {
        data = own;
      } else {
        std::fill(data.begin(), data.end(), -1);
      }
      ASSERT_TRUE(all->broadcast(data.data(), count, DRUN_INT64, root));
      EXPECT_TRUE(data == of_root) << "broadcast of " << count;
    }
  });
}

// Each message begins in the first connection, wherever the previous one has ended.
TEST_P(Streams, KeepMessagesApart) {
  const int size = GetParam().first;
  FakeJob job(size, 60s);
  set_streams(job);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    const std::vector<std::size_t> sizes{200'000, 3, 70'000, 65'536, 65'537, 1, 400'000};
    std::vector<std::vector<char>> sent, received;
    std::vector<Communicator::TransferCall> calls;
    const int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
    for (const std::size_t n_bytes : sizes) {
      sent.emplace_back(n_bytes, static_cast<char>('a' + rank + static_cast<int>(sent.size())));
      received.emplace_back(n_bytes, '\0');
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      calls.push_back({OpKind::kSend, sent[i].data(), sizes[i], DRUN_INT8, next, {}});
      calls.push_back({OpKind::kRecv, received[i].data(), sizes[i], DRUN_INT8, previous, {}});
    }
    auto done = all->transfer(calls);
    ASSERT_TRUE(done) << done.error().text;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const char expected = static_cast<char>('a' + previous + static_cast<int>(i));
      EXPECT_TRUE(std::all_of(received[i].begin(), received[i].end(), [&](char c) { return c == expected; })) << i;
    }
  });
}

TEST_P(Streams, ARankThatLeavesIsNamed) {
  const int size = GetParam().first;
  FakeJob job(size, 60s);
  set_streams(job);
  const int leaver = size - 1;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<float> data(500'000, 1.0f);
    ASSERT_TRUE(all->allreduce(data.data(), data.data(), data.size(), DRUN_FLOAT32, DRUN_SUM));
    if (rank == leaver) return all->leave();
    auto done = all->allreduce(data.data(), data.data(), data.size(), DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().rank, leaver) << done.error().text;
  });
}

// A different call is detected by its header, before bytes of the other connections are taken for data.
TEST_P(Streams, AnotherCallIsFound) {
  const int size = GetParam().first;
  FakeJob job(size, 60s);
  set_streams(job);
  std::atomic<int> n_found{0};
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    std::vector<float> data(rank == 0 ? 500'000 : 600'000, 1.0f);
    auto done = all->allreduce(data.data(), data.data(), data.size(), DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().status, DRUN_ERROR_TIMEOUT) << done.error().text;
    if (done.error().status == DRUN_ERROR_MISMATCH) ++n_found;
  });
  EXPECT_GE(n_found, 1);
}

INSTANTIATE_TEST_SUITE_P(Of, Streams,
                         ::testing::Values(std::pair(2, 2), std::pair(2, 4), std::pair(3, 3), std::pair(6, 3)),
                         [](const auto& param) {
                           return std::to_string(param.param.second) + "Between" + std::to_string(param.param.first);
                         });

TEST(StreamsSetUp, RanksWithDifferentNumbersAreTold) {
  FakeJob job(2, 20s);
  job.set_streams(0, 2);
  job.set_streams(1, 3);
  job.run([&](int rank) {
    auto all = Communicator::create(job.job_context(rank));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().status, DRUN_ERROR_MISMATCH);
    EXPECT_NE(all.error().text.find(rank == 0 ? "DRUN_STREAMS is 3 on " : "DRUN_STREAMS is 2 on "), std::string::npos)
        << all.error().text;
  });
}

}  // namespace
}  // namespace drun::runtime
