#include "runtime/src/algorithm/adasum.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/src/algorithm/doubling.h"

namespace drun::runtime {
namespace {

using Direction = Flow::Direction;

constexpr std::size_t kPieceBytes = 4u << 20;

template <typename T>
T load(const void* memory, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(memory) + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void add_dots_as(AdasumDots& dots, const void* a, const void* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double x = load<T>(a, i), y = load<T>(b, i);
    dots.ab += x * y;
    dots.aa += x * x;
    dots.bb += y * y;
  }
}

template <typename T>
void combine_as(const AdasumDots& dots, void* a, void* b, bool into_b, std::size_t count) {
  // A zero vector has nothing to add; weight 1 avoids 0/0.
  const double of_a = dots.aa > 0 ? 1 - dots.ab / (2 * dots.aa) : 1;
  const double of_b = dots.bb > 0 ? 1 - dots.ab / (2 * dots.bb) : 1;
  char* into = static_cast<char*>(into_b ? b : a);
  for (std::size_t i = 0; i < count; ++i) {
    const T sum = static_cast<T>(of_a * load<T>(a, i) + of_b * load<T>(b, i));
    std::memcpy(into + i * sizeof(T), &sum, sizeof(T));
  }
}

// One side of a pair.
class Pair {
 public:
  Pair(PeerFlows& exchange, const Operation& operation, const Span& data, char* theirs)
      : exchange_(exchange), operation_(operation), data_(data), theirs_(theirs) {}

  // Both sides get the result.
  Status combine_with(int peer) { return combine(peer, true); }
  // Only the lower rank gets the result. It calls take_in(), its peer give_to().
  Status take_in(int peer) { return combine(peer, false); }
  Status give_to(int peer) {
    for (int pass = 0; pass < n_passes(); ++pass) {
      BufferFlow out(Direction::kSend, peer, data_.data, data_.n_bytes());
      if (auto done = exchange_.run(operation_, {&out}); !done) return done;
    }
    return {};
  }

 private:
  int n_passes() const { return data_.n_bytes() <= kPieceBytes ? 1 : 2; }

  // Computes the dot products of the whole vectors first, then the sum.
  Status combine(int peer, bool mutual) {
    const bool lower = exchange_.rank() < peer;
    AdasumDots dots;
    const auto for_pieces = [&](auto deal_with) -> Status {
      if (!mutual) return receive_in_pieces(peer, deal_with);
      const std::size_t most = kPieceBytes / size_of(data_.dtype);
      std::size_t first = 0;
      do {
        const Span piece = data_.part(first, std::min(most, data_.count - first));
        BufferFlow out(Direction::kSend, peer, piece.data, piece.n_bytes());
        BufferFlow in(Direction::kReceive, peer, theirs_, piece.n_bytes());
        if (auto done = exchange_.run(operation_, {&out, &in}); !done) return done;
        deal_with(piece);
        first += piece.count;
      } while (first < data_.count);
      return {};
    };
    const auto poll = [&](const Span& ours) {
      add_dots(dots, lower ? ours.data : theirs_, lower ? theirs_ : ours.data, ours.count, ours.dtype);
    };
    const auto add = [&](const Span& ours) {
      adasum_combine(dots, lower ? ours.data : theirs_, lower ? theirs_ : ours.data, !lower, ours.count, ours.dtype);
    };
    if (auto looked = for_pieces(poll); !looked) return looked;
    if (n_passes() == 2) return for_pieces(add);
    add(data_);
    return {};
  }

  template <typename F>
  Status receive_in_pieces(int peer, F deal_with) {
    class Landing final : public Flow {
     public:
      Landing(int from, const Span& data, char* memory, F& deal)
          : Flow(Direction::kReceive, from, data.n_bytes()), data_(data), memory_(memory), deal_(deal) {}
      Window window() override { return {memory_ + landed_, piece() - landed_}; }
      void moved(std::size_t n_bytes) override {
        const std::size_t wanted = piece();
        Flow::moved(n_bytes);
        landed_ += n_bytes;
        if (landed_ < wanted) return;
        const std::size_t first = (done() - landed_) / size_of(data_.dtype);
        deal_(data_.part(first, landed_ / size_of(data_.dtype)));
        landed_ = 0;
      }

     private:
      std::size_t piece() const { return std::min(kPieceBytes, n_bytes() - (done() - landed_)); }
      Span data_;
      char* memory_;
      F& deal_;
      std::size_t landed_ = 0;
    };
    Landing in(peer, data_, theirs_, deal_with);
    if (auto done = exchange_.run(operation_, {&in}); !done) return done;
    return {};
  }

  PeerFlows& exchange_;
  const Operation& operation_;
  Span data_;
  char* theirs_;  // room for a piece
};

}  // namespace

void add_dots(AdasumDots& dots, const void* a, const void* b, std::size_t count, drun_dtype dtype) {
  if (dtype == DRUN_FLOAT32) return add_dots_as<float>(dots, a, b, count);
  add_dots_as<double>(dots, a, b, count);
}

void adasum_combine(const AdasumDots& dots, void* a, void* b, bool into_b, std::size_t count, drun_dtype dtype) {
  if (dtype == DRUN_FLOAT32) return combine_as<float>(dots, a, b, into_b, count);
  combine_as<double>(dots, a, b, into_b, count);
}

Status adasum_allreduce(PeerFlows& exchange, const Operation& operation, const Span& data) {
  const int rank = exchange.rank(), size = exchange.size(), power = power_below(size);
  std::unique_ptr<char[]> theirs(new char[std::max<std::size_t>(1, std::min(kPieceBytes, data.n_bytes()))]);
  Pair pair(exchange, operation, data, theirs.get());
  if (rank >= power) {
    if (auto gave = pair.give_to(rank - power); !gave) return gave;
    BufferFlow result(Direction::kReceive, rank - power, data.data, data.n_bytes());
    return exchange.run(operation, {&result});
  }
  const bool has_more = rank + power < size;
  if (has_more) {
    if (auto taken = pair.take_in(rank + power); !taken) return taken;
  }
  for (int distance = 1; distance < power; distance *= 2) {
    if (auto combined = pair.combine_with(rank ^ distance); !combined) return combined;
  }
  if (!has_more) return {};
  BufferFlow result(Direction::kSend, rank + power, data.data, data.n_bytes());
  return exchange.run(operation, {&result});
}

}  // namespace drun::runtime
