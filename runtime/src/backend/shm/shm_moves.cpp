#include "runtime/src/backend/shm/shm_moves.h"

#include <algorithm>

#include "runtime/src/copy.h"

namespace drun::runtime::shm {

Status broadcast(StepBarrier& barrier, const Operation& operation, char* data, std::size_t total) {
  Segment& segment = barrier.segment();
  const int rank = barrier.rank();
  const bool is_root = rank == operation.root_here();
  barrier.announce(operation);
  std::size_t done = 0;
  do {
    const std::size_t n_bytes = std::min(Segment::kSlotBytes, total - done);
    if (is_root && n_bytes > 0) copy_bytes(segment.given(rank, barrier.step() + 1), data + done, n_bytes);
    barrier.arrive();
    if (auto all = barrier.wait_for_arrivals(operation, done == 0); !all) return all;
    if (!is_root && n_bytes > 0) {
      copy_bytes(data + done, segment.given(operation.root_here(), barrier.step()), n_bytes);
    }
    done += n_bytes;
  } while (done < total);
  return {};
}

Status allgather(StepBarrier& barrier, const Operation& operation, char* data, const std::vector<Block>& blocks) {
  Segment& segment = barrier.segment();
  const int rank = barrier.rank(), size = barrier.size();
  std::size_t longest = 0;
  for (const auto& block : blocks) longest = std::max(longest, block.n_bytes);
  barrier.announce(operation);
  std::size_t done = 0;
  do {
    // The piece of the member's block in this step.
    const auto now = [&](int member) {
      const Block& block = blocks[static_cast<std::size_t>(member)];
      const std::size_t skipped = std::min(done, block.n_bytes);
      return Block{block.offset + skipped, std::min(Segment::kSlotBytes, block.n_bytes - skipped)};
    };
    const Block ours = now(rank);
    if (ours.n_bytes > 0) copy_bytes(segment.given(rank, barrier.step() + 1), data + ours.offset, ours.n_bytes);
    barrier.arrive();
    if (auto all = barrier.wait_for_arrivals(operation, done == 0); !all) return all;
    for (int peer = 0; peer < size; ++peer) {
      const Block theirs = now(peer);
      if (peer == rank || theirs.n_bytes == 0) continue;
      copy_bytes(data + theirs.offset, segment.given(peer, barrier.step()), theirs.n_bytes);
    }
    done += Segment::kSlotBytes;
  } while (done < longest);
  return {};
}

}  // namespace drun::runtime::shm
