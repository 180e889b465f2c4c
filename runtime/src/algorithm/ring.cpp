#include "runtime/src/algorithm/ring.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/src/dtype.h"
#include "runtime/src/reduce.h"

namespace drun::runtime {
namespace {

// What has arrived is added up in pieces of this size, while the next is on its way.
constexpr std::size_t kSegmentBytes = 128u << 10;

// The ring as one stream of bytes: in step s a rank sends chunk (rank - s) and receives chunk (rank - s - 1), which is
// the one it sends in step s + 1. So byte x of what it sends after its first chunk is ready once byte x of what it
// receives has been dealt with. Nothing waits for a step to be over.
class RingPath {
 public:
  // Step, place in the step's chunk.
  struct Place {
    int step = 0;
    std::size_t offset = 0;
  };

  // `chunks`: one for each rank. Outlived by them.
  RingPath(const std::vector<Block>& chunks, int first_chunk, int n_steps)
      : chunks_(chunks), first_chunk_(first_chunk), n_steps_(n_steps) {}
  std::size_t begin(int step) const { return chunk(step).offset; }
  std::size_t n_bytes(int step) const { return chunk(step).n_bytes; }
  int n_steps() const { return n_steps_; }
  std::size_t total() const {
    std::size_t sum = 0;
    for (int step = 0; step < n_steps_; ++step) sum += n_bytes(step);
    return sum;
  }
  // To the next step that has bytes.
  void normalise(Place& place) const {
    while (place.step < n_steps_ && place.offset == n_bytes(place.step)) place = {place.step + 1, 0};
  }

 private:
  const Block& chunk(int step) const {
    const int size = static_cast<int>(chunks_.size());
    return chunks_[static_cast<std::size_t>(((first_chunk_ - step) % size + size) % size)];
  }

  const std::vector<Block>& chunks_;
  int first_chunk_, n_steps_;
};

// What a ring does with what comes in: in its first steps it is added to ours, in later ones it is final.
struct Reducing {
  int n_steps = 0;
  drun_dtype dtype = DRUN_INT8;
  drun_op op = DRUN_SUM;
  int size = 1;  // what averages are divided by
};

// What is to be added lands in a buffer.
class RingReceive final : public Flow {
 public:
  RingReceive(int peer, const RingPath& path, char* data, const Reducing& reducing)
      : Flow(Direction::kReceive, peer, path.total()),
        path_(path),
        data_(data),
        reducing_(reducing),
        landing_(reducing.n_steps > 0 ? std::min(kSegmentBytes, path.total()) : 0) {
    path_.normalise(place_);
  }

  Window window() override {
    if (finished()) return {};
    const std::size_t left = path_.n_bytes(place_.step) - place_.offset;
    if (place_.step >= reducing_.n_steps) return {data_ + path_.begin(place_.step) + place_.offset, left};
    return {landing_.data() + landed_, std::min(kSegmentBytes, left) - landed_};
  }

  void moved(std::size_t n_bytes) override {
    Flow::moved(n_bytes);
    if (place_.step >= reducing_.n_steps) return advance(n_bytes);
    landed_ += n_bytes;
    const std::size_t left = path_.n_bytes(place_.step) - place_.offset;
    if (landed_ < std::min(kSegmentBytes, left)) return;
    char* ours = data_ + path_.begin(place_.step) + place_.offset;
    const std::size_t count = landed_ / size_of(reducing_.dtype);
    accumulate(ours, landing_.data(), count, reducing_.dtype, reducing_.op);
    if (place_.step == reducing_.n_steps - 1) finish(ours, count, reducing_.dtype, reducing_.op, reducing_.size);
    advance(std::exchange(landed_, 0));
  }

  // Bytes that have been dealt with, which may be sent on.
  std::size_t ready() const { return ready_; }

 private:
  void advance(std::size_t n_bytes) {
    ready_ += n_bytes;
    place_.offset += n_bytes;
    path_.normalise(place_);
  }

  const RingPath& path_;
  char* data_;
  Reducing reducing_;
  std::vector<char> landing_;
  std::size_t landed_ = 0, ready_ = 0;
  RingPath::Place place_;
};

class RingSend final : public Flow {
 public:
  RingSend(int peer, const RingPath& path, char* data, const RingReceive& incoming)
      : Flow(Direction::kSend, peer, path.total()), path_(path), data_(data), incoming_(incoming) {
    path_.normalise(place_);
  }
  Window window() override {
    if (finished()) return {};
    const std::size_t ready = std::min(n_bytes(), path_.n_bytes(0) + incoming_.ready()) - done();
    const std::size_t left = path_.n_bytes(place_.step) - place_.offset;
    return {data_ + path_.begin(place_.step) + place_.offset, std::min(ready, left)};
  }
  void moved(std::size_t n_bytes) override {
    Flow::moved(n_bytes);
    place_.offset += n_bytes;
    path_.normalise(place_);
  }

 private:
  const RingPath& path_;
  char* data_;
  const RingReceive& incoming_;
  RingPath::Place place_;
};

Reducing reducing_of(const Operation& operation, const Span& data, int size) {
  return {size - 1, data.dtype, operation.op, operation.partial ? 1 : size};
}

// `first`: the chunk that this rank sends first.
Status run_ring(Exchange& exchange, const Operation& operation, char* data, const std::vector<Block>& chunks, int first,
                int n_steps, const Reducing& reducing) {
  const int rank = exchange.rank(), size = exchange.size();
  const RingPath sent(chunks, first, n_steps), received(chunks, first - 1, n_steps);
  RingReceive incoming((rank - 1 + size) % size, received, data, reducing);
  RingSend outgoing((rank + 1) % size, sent, data, incoming);
  return exchange.run(operation, {&outgoing, &incoming});
}

}  // namespace

Status ring_allreduce(Exchange& exchange, const Operation& operation, const Span& data) {
  const int size = exchange.size();
  return run_ring(exchange, operation, data.data, even_blocks(data, static_cast<std::size_t>(size)), exchange.rank(),
                  2 * (size - 1), reducing_of(operation, data, size));
}

Status ring_reduce_scatter(Exchange& exchange, const Operation& operation, const Span& data) {
  const int size = exchange.size();
  // So the last chunk to come in is the own one.
  return run_ring(exchange, operation, data.data, even_blocks(data, static_cast<std::size_t>(size)),
                  exchange.rank() - 1, size - 1, reducing_of(operation, data, size));
}

Status ring_allgather(Exchange& exchange, const Operation& operation, char* data, const std::vector<Block>& blocks) {
  return run_ring(exchange, operation, data, blocks, exchange.rank(), exchange.size() - 1, {});
}

}  // namespace drun::runtime
