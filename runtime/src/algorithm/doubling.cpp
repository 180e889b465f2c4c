#include "runtime/src/algorithm/doubling.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/src/reduce.h"

namespace drun::runtime {
namespace {

using Direction = Flow::Direction;

// Folds the ranks from power_below(size) on into the first ones. `among_power` performs the allreduce among the first
// power_below(size) ranks, which together hold all of the data.
template <typename F>
Status folded(PeerFlows& exchange, const Operation& operation, const Span& data, char* theirs, F among_power) {
  const int rank = exchange.rank(), power = power_below(exchange.size());
  if (rank >= power) {
    BufferFlow given(Direction::kSend, rank - power, data.data, data.n_bytes());
    if (auto gave = exchange.run(operation, {&given}); !gave) return gave;
    BufferFlow result(Direction::kReceive, rank - power, data.data, data.n_bytes());
    return exchange.run(operation, {&result});
  }
  const bool has_more = rank + power < exchange.size();
  if (has_more) {
    BufferFlow taken(Direction::kReceive, rank + power, theirs, data.n_bytes());
    if (auto took = exchange.run(operation, {&taken}); !took) return took;
    accumulate(data.data, theirs, data.count, data.dtype, operation.op);
  }
  if (auto done = among_power(power); !done) return done;
  if (!has_more) return {};
  BufferFlow result(Direction::kSend, rank + power, data.data, data.n_bytes());
  return exchange.run(operation, {&result});
}

Status swap_with(PeerFlows& exchange, const Operation& operation, int peer, const Span& out, const Span& in) {
  BufferFlow sent(Direction::kSend, peer, out.data, out.n_bytes());
  BufferFlow received(Direction::kReceive, peer, in.data, in.n_bytes());
  return exchange.run(operation, {&sent, &received});
}

}  // namespace

Status doubling_allreduce(PeerFlows& exchange, const Operation& operation, const Span& data) {
  const int rank = exchange.rank();
  const std::unique_ptr<char[]> theirs(new char[data.n_bytes()]);
  return folded(exchange, operation, data, theirs.get(), [&](int power) -> Status {
    for (int distance = 1; distance < power; distance *= 2) {
      const int peer = rank ^ distance;
      if (auto done = swap_with(exchange, operation, peer, data, {theirs.get(), data.count, data.dtype}); !done) {
        return done;
      }
      // Both sides put the lower rank's data first, so that they get the same bits, NaNs included.
      char* first = rank < peer ? data.data : theirs.get();
      accumulate(first, rank < peer ? theirs.get() : data.data, data.count, data.dtype, operation.op);
      if (first != data.data && data.count > 0) std::memcpy(data.data, first, data.n_bytes());
    }
    finish(operation, data, exchange.size());
    return {};
  });
}

Status halving_allreduce(PeerFlows& exchange, const Operation& operation, const Span& data) {
  const int rank = exchange.rank();
  // Each chunk of the data belongs to a rank; the first chunks may be longer by one element.
  const auto n = static_cast<std::size_t>(power_below(exchange.size()));
  const auto begin_of = [&](int chunk) { return part_begin(data.count, n, static_cast<std::size_t>(chunk)); };
  const auto chunks = [&](int first, int last) { return data.part(begin_of(first), begin_of(last) - begin_of(first)); };
  // Data received from a rank above the power is all of the data.
  const bool takes_all = static_cast<std::size_t>(rank) + n < static_cast<std::size_t>(exchange.size());
  const Span room = takes_all ? data : chunks(0, static_cast<int>((n + 1) / 2));
  const std::unique_ptr<char[]> theirs(new char[room.n_bytes()]);
  return folded(exchange, operation, data, theirs.get(), [&](int power) -> Status {
    // Before a step we hold a part of the data, after it half of that part.
    int first = 0;
    for (int distance = power / 2; distance > 0; distance /= 2) {
      const int peer = rank ^ distance, middle = first + distance;
      const Span lower = chunks(first, middle), upper = chunks(middle, middle + distance);
      const Span& kept = rank < peer ? lower : upper;
      const Span landing{theirs.get(), kept.count, kept.dtype};
      if (auto done = swap_with(exchange, operation, peer, rank < peer ? upper : lower, landing); !done) return done;
      accumulate(kept.data, landing.data, kept.count, kept.dtype, operation.op);
      if (rank > peer) first = middle;
    }
    finish(operation, chunks(rank, rank + 1), exchange.size());
    for (int distance = 1; distance < power; distance *= 2) {
      const int peer = rank ^ distance;
      const int ours = rank / distance * distance, others = peer / distance * distance;
      const Span have = chunks(ours, ours + distance), get = chunks(others, others + distance);
      if (auto done = swap_with(exchange, operation, peer, have, get); !done) return done;
    }
    return {};
  });
}

}  // namespace drun::runtime
