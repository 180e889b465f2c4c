#include "runtime/src/backend/shm/shm_reduce.h"

#include <algorithm>
#include <cstring>

#include "runtime/src/copy.h"
#include "runtime/src/dtype.h"
#include "runtime/src/reduce.h"

namespace drun::runtime::shm {
namespace {

// Pieces of a large reduction are so small that the data in a rank's slots stays in the second-level cache beside the
// user's memory, but not so small that the steps between many ranks cost more. A smaller reduction has pieces as large
// as a slot.
constexpr std::size_t kLargeBytes = 1u << 20, kPieceOfLarge = 128u << 10, kMinPart = 16u << 10;
// A block stays in the first-level cache from one operand to the next, while the next one is fetched.
constexpr std::size_t kBlockBytes = 2u << 10;
constexpr std::size_t kLineBytes = 64;

// Fetches lines into this core's cache for writing: one transfer instead of one to read and one to own.
void fetch_to_write(const char* data, std::size_t n_bytes) {
  for (std::size_t at = 0; at < n_bytes; at += kLineBytes) {
#if defined(__x86_64__)  // for which the builtin does not emit this instruction
    asm volatile("prefetchw %0" : : "m"(data[at]));
#else
    __builtin_prefetch(data + at, 1);
#endif
  }
}

// The reduction of one call, piece by piece.
class PartsReduction {
 public:
  PartsReduction(StepBarrier& barrier, const Operation& operation)
      : barrier_(barrier),
        operation_(operation),
        segment_(barrier.segment()),
        rank_(barrier.rank()),
        size_(barrier.size()) {}

  // Reduces each piece in two phases: every rank reduces a part, and then copies the others' parts unless it does not
  // need them. The data of the next piece is written before that, so that no rank waits for a copy. `from` may be the
  // place of the result.
  Status run(const char* from, const Span& data, bool takes) {
    operation_.clock.began();
    const std::size_t element_bytes = size_of(data.dtype);
    const std::size_t of_large = std::max(kPieceOfLarge, kMinPart * static_cast<std::size_t>(size_));
    const std::size_t most = data.n_bytes() > kLargeBytes ? of_large : Segment::kSlotBytes;
    const std::size_t per_piece = std::min(most, Segment::kSlotBytes) / element_bytes;
    const auto piece_at = [&](std::size_t first) { return data.part(first, std::min(per_piece, data.count - first)); };
    const auto source_of = [&](const Span& piece) { return from + (piece.data - data.data); };
    barrier_.announce(operation_);
    // Calls without this phase do not move the counter: if it fell behind by half of its range, it would seem to be
    // ahead.
    barrier_.publish_reduced(barrier_.step());
    copy_contribution(source_of(piece_at(0)), piece_at(0));
    barrier_.arrive();
    for (std::size_t done = 0; done < data.count;) {
      const Span piece = piece_at(done);
      const std::uint32_t step = barrier_.step();
      if (auto all = barrier_.wait_for_arrivals(operation_, done == 0); !all) return all;
      reduce_own_part(source_of(piece), piece, step);
      barrier_.publish_reduced(step);
      done += piece.count;
      if (done < data.count) {
        copy_contribution(source_of(piece_at(done)), piece_at(done));
        barrier_.arrive();
      }
      if (!takes) continue;
      if (auto all = barrier_.wait_for_reduced(operation_, step); !all) return all;
      for (int rank = 0; rank < size_; ++rank) {
        if (rank == rank_) continue;
        const std::size_t begin = begin_of_part(piece, rank);
        take(piece.data + begin, result_of(rank, step) + begin, begin_of_part(piece, rank + 1) - begin);
      }
    }
    return {};
  }

 private:
  // Offset in bytes of a rank's part in a piece; for rank `size`: the end.
  std::size_t begin_of_part(const Span& piece, int rank) const {
    return part_begin(piece.count, static_cast<std::size_t>(size_), static_cast<std::size_t>(rank)) *
           size_of(piece.dtype);
  }

  // Writes all parts except our own to our slot.
  void copy_contribution(const char* from, const Span& piece) {
    char* slot = segment_.given(rank_, barrier_.step() + 1);
    const std::size_t begin = begin_of_part(piece, rank_), end = begin_of_part(piece, rank_ + 1);
    copy_bytes(slot, from, begin);
    copy_bytes(slot + end, from + end, piece.n_bytes() - end);
  }

  // Place of a rank's reduced part of a step. With two ranks it is where the other one has written it: each cache line
  // then moves there and back once, and the rank that writes the next piece owns it already.
  char* result_of(int rank, std::uint32_t step) {
    return size_ == 2 ? segment_.given(1 - rank, step) : segment_.result(rank, step);
  }

  void take(char* to, const char* from, std::size_t n_bytes) {
    if (size_ > 2) {
      copy_bytes(to, from, n_bytes);
      return;
    }
    fetch_to_write(from, std::min(kBlockBytes, n_bytes));
    for (std::size_t at = 0; at < n_bytes; at += kBlockBytes) {
      const std::size_t n = std::min(kBlockBytes, n_bytes - at);
      fetch_to_write(from + at + n, std::min(kBlockBytes, n_bytes - at - n));
      fetch_to_write(to + at + n, std::min(kBlockBytes, n_bytes - at - n));
      copy_bytes(to + at, from + at, n);
    }
  }

  // Reduces in the order of ranks, so that the result does not depend on which rank has the part.
  void reduce_own_part(const char* from, const Span& piece, std::uint32_t step) {
    const std::size_t end = begin_of_part(piece, rank_ + 1);
    char* result = result_of(rank_, step);
    for (std::size_t at = begin_of_part(piece, rank_); at < end;) {
      const std::size_t n_bytes = std::min(kBlockBytes, end - at), n = n_bytes / size_of(piece.dtype);
      const auto source = [&](int rank) { return (rank == rank_ ? from : segment_.given(rank, step)) + at; };
      fetch_to_write(result + at + n_bytes, std::min(kBlockBytes, end - at - n_bytes));
      fetch_to_write(piece.data + at + n_bytes, std::min(kBlockBytes, end - at - n_bytes));
      combine(result + at, source(0), source(1), n, piece.dtype, operation_.op);
      for (int rank = 2; rank < size_; ++rank) accumulate(result + at, source(rank), n, piece.dtype, operation_.op);
      runtime::finish(operation_, {result + at, n, piece.dtype}, size_);
      copy_bytes(piece.data + at, result + at, n_bytes);
      at += n_bytes;
    }
  }

  StepBarrier& barrier_;
  const Operation& operation_;
  Segment& segment_;
  int rank_, size_;  // in the group
};

// Reduces in the order of ranks. `place`: offset of the block in the others' slots.
void reduce_own_block(StepBarrier& barrier, const Operation& operation, const Span& data, const Block& ours,
                      std::size_t place) {
  Segment& segment = barrier.segment();
  const int own_rank = barrier.rank(), size = barrier.size();
  alignas(64) char sum[kBlockBytes];
  for (std::size_t at = 0; at < ours.n_bytes; at += kBlockBytes) {
    const std::size_t n_bytes = std::min(kBlockBytes, ours.n_bytes - at), n = n_bytes / size_of(data.dtype);
    char* own = data.data + ours.offset + at;
    const auto source = [&](int rank) {
      return rank == own_rank ? own : segment.given(rank, barrier.step()) + place + at;
    };
    copy_bytes(sum, source(0), n_bytes);
    for (int rank = 1; rank < size; ++rank) accumulate(sum, source(rank), n, data.dtype, operation.op);
    runtime::finish(operation, {sum, n, data.dtype}, size);
    copy_bytes(own, sum, n_bytes);
  }
}

}  // namespace

Status reduce_at_once(StepBarrier& barrier, const Operation& operation, const char* from, const Span& data) {
  Segment& segment = barrier.segment();
  const int rank = barrier.rank(), size = barrier.size();
  barrier.announce(operation);
  const bool fits = data.n_bytes() <= sizeof(Segment::Arrival::data);
  const auto given = [&](int member, std::uint32_t step) {
    return fits ? segment.control(member).arrival(step).data : segment.given(member, step);
  };
  if (data.count > 0) std::memcpy(given(rank, barrier.step() + 1), from, data.n_bytes());
  barrier.publish_arrival();
  Status all = barrier.wait_for_peers(operation, data.n_bytes());
  if (!all || data.count == 0) return all;
  // Read our own data at `from`: the cache line of its copy may still be with the others. `from` is the result's
  // place or does not overlap it, and is only one of the first two operands.
  const auto first = [&](int member) { return member == rank ? from : given(member, barrier.step()); };
  combine(data.data, first(0), first(1), data.count, data.dtype, operation.op);
  for (int member = 2; member < size; ++member) {
    accumulate(data.data, given(member, barrier.step()), data.count, data.dtype, operation.op);
  }
  runtime::finish(operation, data, size);
  // No rank needs our data of the step before any more: fetch its line while the caller works.
  if (barrier.spins()) {
    fetch_to_write(reinterpret_cast<const char*>(&segment.control(rank).arrival(barrier.step() + 1)), 1);
  }
  return all;
}

Status reduce_in_parts(StepBarrier& barrier, const Operation& operation, const char* from, const Span& data,
                       bool takes) {
  return PartsReduction(barrier, operation).run(from, data, takes);
}

// In each step a piece of every member's block: each rank writes its data for the others' blocks, and reduces its own
// block.
Status reduce_blocks(StepBarrier& barrier, const Operation& operation, const Span& data,
                     const std::vector<Block>& blocks) {
  const int rank = barrier.rank(), size = barrier.size();
  const std::size_t element_bytes = size_of(data.dtype);
  const std::size_t most = Segment::kSlotBytes / static_cast<std::size_t>(size) / element_bytes * element_bytes;
  std::size_t longest = 0;
  for (const auto& block : blocks) longest = std::max(longest, block.n_bytes);
  barrier.announce(operation);
  std::size_t done = 0;
  do {
    const auto piece = [&](int member) {
      const Block& block = blocks[static_cast<std::size_t>(member)];
      const std::size_t skipped = std::min(done, block.n_bytes);
      return Block{block.offset + skipped, std::min(most, block.n_bytes - skipped)};
    };
    char* slot = barrier.segment().given(rank, barrier.step() + 1);
    for (int member = 0; member < size; ++member) {
      const Block theirs = piece(member);
      if (member == rank || theirs.n_bytes == 0) continue;
      copy_bytes(slot + static_cast<std::size_t>(member) * most, data.data + theirs.offset, theirs.n_bytes);
    }
    barrier.arrive();
    if (auto all = barrier.wait_for_arrivals(operation, done == 0); !all) return all;
    reduce_own_block(barrier, operation, data, piece(rank), static_cast<std::size_t>(rank) * most);
    done += most;
  } while (done < longest);
  return {};
}

}  // namespace drun::runtime::shm
