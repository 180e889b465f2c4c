#include "runtime/src/algorithm/ring.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/src/dtype.h"
#include "runtime/src/reduce.h"

namespace drun::runtime {
namespace {

// Received data is added up in segments, while the next segment is on its way. A chunk has several segments, so that
// forwarding need not wait for a whole chunk.
constexpr std::size_t kSegmentBytes = 128u << 10, kMinSegmentBytes = 8u << 10;
constexpr std::size_t kSegmentsPerChunk = 4;

using Chunks = std::vector<Block>;  // one for each rank

// The ring as one stream of bytes: in step s a rank sends chunk (rank - s) and receives chunk (rank - s - 1), which is
// the one that it sends in step s + 1. So a byte that it sends after its first chunk is ready once the same byte of the
// received chunk has been processed, and no byte waits for the end of a step. With several pieces, all steps of one
// piece come before those of the next.
class RingPath {
 public:
  struct Place {
    std::size_t piece = 0;
    int step = 0;
    std::size_t offset = 0;  // in the chunk of the step
  };

  // `pieces` must outlive the path.
  RingPath(const std::vector<Chunks>& pieces, int first_chunk, int n_steps)
      : pieces_(pieces), first_chunk_(first_chunk), n_steps_(n_steps) {}
  const Block& chunk(const Place& place) const {
    const Chunks& chunks = pieces_[place.piece];
    const int size = static_cast<int>(chunks.size());
    return chunks[static_cast<std::size_t>(((first_chunk_ - place.step) % size + size) % size)];
  }
  std::size_t left(const Place& place) const { return chunk(place).n_bytes - place.offset; }
  std::size_t total() const {
    std::size_t sum = 0;
    for (Place place; place.piece < pieces_.size(); next(place)) sum += chunk(place).n_bytes;
    return sum;
  }
  std::size_t longest() const {
    std::size_t most = 0;
    for (const Chunks& chunks : pieces_) {
      for (const Block& chunk : chunks) most = std::max(most, chunk.n_bytes);
    }
    return most;
  }
  // Advances `place` past finished chunks.
  void normalize(Place& place) const {
    while (place.piece < pieces_.size() && left(place) == 0) next(place);
  }

 private:
  void next(Place& place) const {
    place = place.step + 1 < n_steps_ ? Place{place.piece, place.step + 1, 0} : Place{place.piece + 1, 0, 0};
  }

  const std::vector<Chunks>& pieces_;
  int first_chunk_, n_steps_;
};

// Reduction of received data: in the first n_steps steps it is reduced into ours, in later ones it is final.
struct Reducing {
  int n_steps = 0;
  drun_dtype dtype = DRUN_INT8;
  drun_op op = DRUN_SUM;
  int divisor = 1;  // divides averages
};

// Receives into the data; data that is to be reduced goes to a landing buffer first.
class RingReceive final : public Flow {
 public:
  RingReceive(int peer, const RingPath& path, char* data, const Reducing& reducing)
      : Flow(Direction::kReceive, peer, path.total()),
        path_(path),
        data_(data),
        reducing_(reducing),
        landing_(reducing.n_steps > 0 ? segment_bytes(path) : 0) {
    path_.normalize(place_);
  }

  Window window() override {
    if (finished() || place_.piece >= n_given_) return {};
    if (!adds()) return {data_ + path_.chunk(place_).offset + place_.offset, path_.left(place_)};
    return {landing_.data() + landed_, std::min(landing_.size(), path_.left(place_)) - landed_};
  }

  void moved(std::size_t n_bytes) override {
    Flow::moved(n_bytes);
    if (!adds()) return advance(n_bytes);
    landed_ += n_bytes;
    if (landed_ < std::min(landing_.size(), path_.left(place_))) return;
    char* ours = data_ + path_.chunk(place_).offset + place_.offset;
    const std::size_t count = landed_ / size_of(reducing_.dtype);
    accumulate(ours, landing_.data(), count, reducing_.dtype, reducing_.op);
    if (place_.step == reducing_.n_steps - 1) finish(ours, count, reducing_.dtype, reducing_.op, reducing_.divisor);
    advance(std::exchange(landed_, 0));
  }

  void give(std::size_t n_pieces) { n_given_ = n_pieces; }
  std::size_t n_given() const { return n_given_; }
  // Everything before this place has been processed and may be forwarded.
  const RingPath::Place& place() const { return place_; }

 private:
  static std::size_t segment_bytes(const RingPath& path) {
    constexpr std::size_t kLine = 64;  // whole elements
    const std::size_t part = (path.longest() / kSegmentsPerChunk + kLine - 1) / kLine * kLine;
    return std::min(std::clamp(part, kMinSegmentBytes, kSegmentBytes), path.longest());
  }
  bool adds() const { return place_.step < reducing_.n_steps; }
  void advance(std::size_t n_bytes) {
    place_.offset += n_bytes;
    path_.normalize(place_);
  }

  const RingPath& path_;
  char* data_;
  Reducing reducing_;
  std::vector<char> landing_;
  std::size_t landed_ = 0, n_given_ = 1;
  RingPath::Place place_;
};

class RingSend final : public Flow {
 public:
  RingSend(int peer, const RingPath& path, char* data, const RingReceive& incoming)
      : Flow(Direction::kSend, peer, path.total()), path_(path), data_(data), incoming_(incoming) {
    path_.normalize(place_);
  }
  Window window() override {
    if (finished()) return {};
    return {data_ + path_.chunk(place_).offset + place_.offset, ready()};
  }
  void moved(std::size_t n_bytes) override {
    Flow::moved(n_bytes);
    place_.offset += n_bytes;
    path_.normalize(place_);
  }

 private:
  // Number of bytes of the current chunk that may be sent now.
  std::size_t ready() const {
    if (place_.step == 0) return place_.piece < incoming_.n_given() ? path_.left(place_) : 0;
    const RingPath::Place& come = incoming_.place();
    const auto theirs = std::make_pair(come.piece, come.step), source = std::make_pair(place_.piece, place_.step - 1);
    if (theirs == source) return come.offset - place_.offset;
    return theirs > source ? path_.left(place_) : 0;
  }

  const RingPath& path_;
  char* data_;
  const RingReceive& incoming_;
  RingPath::Place place_;
};

// Both directions of one rank.
struct Ring {
  Ring(int rank, int size, char* data, const std::vector<Chunks>& pieces, int first, int n_steps,
       const Reducing& reducing)
      : sent(pieces, first, n_steps),
        received(pieces, first - 1, n_steps),
        incoming((rank - 1 + size) % size, received, data, reducing),
        outgoing((rank + 1) % size, sent, data, incoming) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  RingPath sent, received;
  RingReceive incoming;
  RingSend outgoing;
};

Reducing reducing_of(const Operation& operation, const Span& data, int size) {
  return {size - 1, data.dtype, operation.op, operation.partial ? 1 : size};
}

// `first`: the chunk that this rank sends first.
Status run_ring(PeerFlows& exchange, const Operation& operation, char* data, const Chunks& chunks, int first,
                int n_steps, const Reducing& reducing) {
  const std::vector<Chunks> pieces{chunks};
  Ring ring(exchange.rank(), exchange.size(), data, pieces, first, n_steps, reducing);
  return exchange.run(operation, {&ring.outgoing, &ring.incoming});
}

}  // namespace

struct RingPieces::State {
  State(int rank, int size, const Span& data, std::vector<Chunks> all, const Reducing& reducing)
      : pieces(std::move(all)), ring(rank, size, data.data, pieces, rank, 2 * (size - 1), reducing) {}
  std::vector<Chunks> pieces;
  Ring ring;
};

RingPieces::RingPieces(int rank, int size, const Operation& operation, const Span& data,
                       const std::vector<Block>& pieces, int divisor) {
  std::vector<Chunks> all;
  for (const Block& piece : pieces) {
    const std::size_t bytes = size_of(data.dtype);
    Chunks chunks = even_blocks(data.part(piece.offset / bytes, piece.n_bytes / bytes), static_cast<std::size_t>(size));
    for (Block& chunk : chunks) chunk.offset += piece.offset;
    all.push_back(std::move(chunks));
  }
  state_ =
      std::make_unique<State>(rank, size, data, std::move(all), Reducing{size - 1, data.dtype, operation.op, divisor});
  give(0);
}

RingPieces::~RingPieces() = default;

std::vector<Flow*> RingPieces::flows() { return {&state_->ring.outgoing, &state_->ring.incoming}; }

void RingPieces::give(std::size_t n_pieces) { state_->ring.incoming.give(n_pieces); }

std::size_t RingPieces::n_results() const { return state_->ring.incoming.place().piece; }

Status ring_allreduce(PeerFlows& exchange, const Operation& operation, const Span& data) {
  const int size = exchange.size();
  return run_ring(exchange, operation, data.data, even_blocks(data, static_cast<std::size_t>(size)), exchange.rank(),
                  2 * (size - 1), reducing_of(operation, data, size));
}

Status ring_reduce_scatter(PeerFlows& exchange, const Operation& operation, const Span& data) {
  const int size = exchange.size();
  // The last chunk to arrive is then this rank's own.
  return run_ring(exchange, operation, data.data, even_blocks(data, static_cast<std::size_t>(size)),
                  exchange.rank() - 1, size - 1, reducing_of(operation, data, size));
}

Status ring_allgather(PeerFlows& exchange, const Operation& operation, char* data, const std::vector<Block>& blocks) {
  return run_ring(exchange, operation, data, blocks, exchange.rank(), exchange.size() - 1, {});
}

}  // namespace drun::runtime
