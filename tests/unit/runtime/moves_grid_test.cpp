// Collectives that move data without changing it, compared byte by byte. Types differ only in size there, so the grid
// has one type of each size. In place, misaligned and the root change from call to call.
#include "tests/unit/runtime/grid.h"

namespace drun::runtime {
namespace {

using namespace testing;

struct Cell {
  drun_dtype dtype = DRUN_INT8;
  std::size_t count = 0;
  bool in_place = false;
  std::size_t slack = 0;
  int root = 0;
  std::string label;
};

std::vector<Cell> grid(int size) {
  const auto p = static_cast<std::size_t>(size);
  std::set<std::size_t> counts{0, 1, 2, 3, p - 1, p, p + 1, 7, 63, 64, 65, 1023, 4097, 20'011};
  std::vector<Cell> cells;
  for (const auto dtype : {DRUN_UINT8, DRUN_BFLOAT16, DRUN_FLOAT32, DRUN_INT64}) {
    for (const std::size_t count : counts) {
      for (int turn = 0; turn < 2; ++turn) {
        const auto n = cells.size();
        const std::size_t slack = (n + n / 2) % 2;
        const int root = static_cast<int>(n % p);
        cells.push_back({dtype, count, n % 2 == 1, slack, root,
                         std::to_string(count) + " " + name_of(dtype) + (n % 2 == 1 ? " in place" : "") + " of " +
                             std::to_string(size) + " ranks, root " + std::to_string(root)});
      }
    }
  }
  return cells;
}

class Moves : public ::testing::TestWithParam<int> {
 protected:
  // Calls `check` for each cell on each rank.
  void run(const std::function<void(Communicator&, int rank, const Cell&)>& check) {
    FakeJob job(GetParam());
    job.run([&](int rank) {
      auto all = join(job, rank);
      ASSERT_TRUE(all);
      for (const Cell& cell : grid(GetParam())) {
        check(*all, rank, cell);
        if (::testing::Test::HasFatalFailure()) return;
      }
    });
  }
  int size() const { return GetParam(); }
};

TEST_P(Moves, BroadcastIsExact) {
  run([&](Communicator& all, int rank, const Cell& cell) {
    GuardedBuffer data(given(cell.dtype, rank, 0, cell.count), cell.slack);
    const auto done = all.broadcast(data.data(), cell.count, cell.dtype, cell.root);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_TRUE(data.bytes() == given(cell.dtype, cell.root, 0, cell.count)) << cell.label;
  });
}

TEST_P(Moves, AllgatherIsExact) {
  run([&](Communicator& all, int rank, const Cell& cell) {
    const std::string own = given(cell.dtype, rank, 0, cell.count);
    GuardedBuffer send(own, cell.slack), recv(own.size() * static_cast<std::size_t>(size()), cell.slack);
    char* place = recv.data() + static_cast<std::size_t>(rank) * own.size();
    if (cell.in_place) own.copy(place, own.size());
    const auto done = all.allgather(cell.in_place ? place : send.data(), recv.data(), cell.count, cell.dtype);
    ASSERT_TRUE(done) << done.error().text;
    std::string expected;
    for (int r = 0; r < size(); ++r) expected += given(cell.dtype, r, 0, cell.count);
    EXPECT_TRUE(recv.bytes() == expected) << cell.label;
  });
}

// Blocks of different sizes, some of them empty.
std::size_t uneven(const Cell& cell, int rank) {
  return rank % 3 == 2 ? 0 : cell.count / static_cast<std::size_t>(1 + rank % 4);
}

TEST_P(Moves, AllgathervIsExact) {
  run([&](Communicator& all, int rank, const Cell& cell) {
    const auto element = size_of(cell.dtype);
    // The last rank's block comes first, with gaps of one element between blocks; or, without offsets, blocks are
    // contiguous.
    const bool dense = cell.root % 2 == 0;
    std::vector<std::size_t> counts, offsets(static_cast<std::size_t>(size()));
    for (int r = 0; r < size(); ++r) counts.push_back(uneven(cell, r));
    std::size_t end = 0;
    for (int i = 0; i < size(); ++i) {
      const auto r = static_cast<std::size_t>(dense ? i : size() - 1 - i);
      offsets[r] = end;
      end += counts[r] + (dense ? 0 : 1);
    }
    std::string expected(end * element, GuardedBuffer::kUntouched);
    for (int r = 0; r < size(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      expected.replace(offsets[i] * element, counts[i] * element, given(cell.dtype, r, 0, counts[i]));
    }
    const std::string own = given(cell.dtype, rank, 0, uneven(cell, rank));
    GuardedBuffer send(own, cell.slack), recv(expected.size(), cell.slack);
    char* place = recv.data() + offsets[static_cast<std::size_t>(rank)] * element;
    if (cell.in_place) own.copy(place, own.size());
    const auto done = all.allgatherv(cell.in_place ? place : send.data(), uneven(cell, rank), recv.data(),
                                     counts.data(), dense ? nullptr : offsets.data(), cell.dtype);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_TRUE(recv.bytes() == expected) << cell.label;
  });
}

TEST_P(Moves, GatherIsExact) {
  run([&](Communicator& all, int rank, const Cell& cell) {
    const std::string own = given(cell.dtype, rank, 0, cell.count);
    std::string expected;
    for (int r = 0; r < size(); ++r) expected += given(cell.dtype, r, 0, cell.count);
    GuardedBuffer send(own, cell.slack), recv(expected.size(), cell.slack);
    const bool is_root = rank == cell.root, in_place = cell.in_place && is_root;
    char* place = recv.data() + static_cast<std::size_t>(rank) * own.size();
    if (in_place) own.copy(place, own.size());
    const auto done = all.gather(in_place ? place : send.data(), is_root || !cell.in_place ? recv.data() : nullptr,
                                 cell.count, cell.dtype, cell.root);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_TRUE(recv.bytes() == (is_root ? expected : std::string(expected.size(), GuardedBuffer::kUntouched)))
        << cell.label;
  });
}

TEST_P(Moves, ScatterIsExact) {
  run([&](Communicator& all, int rank, const Cell& cell) {
    const std::string input = given(cell.dtype, cell.root, 0, cell.count * static_cast<std::size_t>(size()));
    const std::size_t n_bytes = cell.count * size_of(cell.dtype), offset = static_cast<std::size_t>(rank) * n_bytes;
    const bool is_root = rank == cell.root, in_place = cell.in_place && is_root;
    GuardedBuffer send(is_root ? input : "", cell.slack), recv(n_bytes, cell.slack);
    char* into = in_place ? send.data() + offset : recv.data();
    const auto done = all.scatter(is_root ? send.data() : nullptr, into, cell.count, cell.dtype, cell.root);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_TRUE(std::string(into, n_bytes) == input.substr(offset, n_bytes)) << cell.label;
    EXPECT_TRUE(!is_root || send.bytes() == input) << cell.label;
  });
}

TEST_P(Moves, AlltoallIsExact) {
  run([&](Communicator& all, int rank, const Cell& cell) {
    if (cell.count > 5000 && size() > 4) return;  // the total is as long as in smaller jobs
    GuardedBuffer send(given(cell.dtype, rank, 0, cell.count * static_cast<std::size_t>(size())), cell.slack);
    std::string expected;
    for (int r = 0; r < size(); ++r) {
      expected += given(cell.dtype, r, static_cast<std::size_t>(rank) * cell.count, cell.count);
    }
    GuardedBuffer recv(expected.size(), cell.slack);
    const auto done = all.alltoall(send.data(), recv.data(), cell.count, cell.dtype);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_TRUE(recv.bytes() == expected) << cell.label;
  });
}

TEST_P(Moves, AlltoallvIsExact) {
  run([&](Communicator& all, int rank, const Cell& cell) {
    if (cell.count > 5000 && size() > 4) return;
    const auto element = size_of(cell.dtype);
    // The number of elements from a to b; some pairs exchange nothing.
    const auto count = [&](int a, int b) {
      return (a + 2 * b) % 4 == 1 ? 0 : cell.count / static_cast<std::size_t>(1 + (a + 3 * b) % 5);
    };
    const bool dense = cell.in_place;  // otherwise gaps of one element, and the last rank's block first
    std::vector<std::size_t> sent, received, send_offsets(static_cast<std::size_t>(size())), recv_offsets(send_offsets);
    for (int r = 0; r < size(); ++r) {
      sent.push_back(count(rank, r));
      received.push_back(count(r, rank));
    }
    std::size_t send_end = 0, recv_end = 0;
    for (int i = 0; i < size(); ++i) {
      const auto r = static_cast<std::size_t>(dense ? i : size() - 1 - i);
      send_offsets[r] = send_end;
      recv_offsets[r] = recv_end;
      send_end += sent[r] + (dense ? 0 : 1);
      recv_end += received[r] + (dense ? 0 : 1);
    }
    std::string input(send_end * element, 'i'), expected(recv_end * element, GuardedBuffer::kUntouched);
    for (int r = 0; r < size(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      input.replace(send_offsets[i] * element, sent[i] * element, given(cell.dtype, rank, 10 * i, sent[i]));
      expected.replace(recv_offsets[i] * element, received[i] * element,
                       given(cell.dtype, r, 10 * static_cast<std::size_t>(rank), received[i]));
    }
    GuardedBuffer send(input, cell.slack), recv(expected.size(), cell.slack);
    const auto done = all.alltoallv(send.data(), sent.data(), dense ? nullptr : send_offsets.data(), recv.data(),
                                    received.data(), dense ? nullptr : recv_offsets.data(), cell.dtype);
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_TRUE(recv.bytes() == expected) << cell.label;
  });
}

TEST_P(Moves, SendReachesTheReceiver) {
  run([&](Communicator& all, int rank, const Cell& cell) {
    if (size() == 1) return;
    // From the root to the rank farthest from it, and back.
    const int peer = (cell.root + size() / 2) % size();
    if (rank != cell.root && rank != peer) return;
    GuardedBuffer data(given(cell.dtype, rank, 0, cell.count), cell.slack), back(cell.count * size_of(cell.dtype));
    if (rank == cell.root) {
      ASSERT_TRUE(all.send(data.data(), cell.count, cell.dtype, peer));
      ASSERT_TRUE(all.recv(back.data(), cell.count, cell.dtype, peer));
    } else {
      ASSERT_TRUE(all.recv(back.data(), cell.count, cell.dtype, cell.root));
      ASSERT_TRUE(all.send(data.data(), cell.count, cell.dtype, cell.root));
    }
    EXPECT_TRUE(back.bytes() == given(cell.dtype, rank == peer ? cell.root : peer, 0, cell.count)) << cell.label;
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Moves, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 12),
                         [](const auto& param) { return "of" + std::to_string(param.param); });

}  // namespace
}  // namespace drun::runtime
