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

  RingPath(const Exchange& exchange, std::size_t count, std::size_t element_bytes, int first_chunk, int n_steps)
      : size_(exchange.size()), first_chunk_(first_chunk), n_steps_(n_steps) {
    for (int chunk = 0; chunk <= size_; ++chunk) {
      bounds_.push_back(count / size_ * chunk + std::min<std::size_t>(chunk, count % size_));
      bounds_.back() *= element_bytes;
    }
  }
  int chunk(int step) const { return ((first_chunk_ - step) % size_ + size_) % size_; }
  std::size_t begin(int step) const { return bounds_[chunk(step)]; }
  std::size_t n_bytes(int step) const { return bounds_[chunk(step) + 1] - bounds_[chunk(step)]; }
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
  int size_, first_chunk_, n_steps_;
  std::vector<std::size_t> bounds_;
};

// Takes in size - 1 chunks that are added to ours, then size - 1 that are final. The first kind lands in a buffer.
class RingReceive final : public Flow {
 public:
  RingReceive(int peer, const RingPath& path, const Operation& operation, char* data, int n_reduce_steps, int size)
      : Flow(Direction::kReceive, peer, path.total()),
        path_(path),
        operation_(operation),
        data_(data),
        n_reduce_steps_(n_reduce_steps),
        size_(size),
        element_bytes_(size_of(operation.dtype)),
        landing_(n_reduce_steps > 0 ? kSegmentBytes : 0) {
    path_.normalise(place_);
  }

  Window window() override {
    if (finished()) return {};
    const std::size_t left = path_.n_bytes(place_.step) - place_.offset;
    if (place_.step >= n_reduce_steps_) return {data_ + path_.begin(place_.step) + place_.offset, left};
    return {landing_.data() + landed_, std::min(kSegmentBytes, left) - landed_};
  }

  void moved(std::size_t n_bytes) override {
    Flow::moved(n_bytes);
    if (place_.step >= n_reduce_steps_) return advance(n_bytes);
    landed_ += n_bytes;
    const std::size_t left = path_.n_bytes(place_.step) - place_.offset;
    if (landed_ < std::min(kSegmentBytes, left)) return;
    char* ours = data_ + path_.begin(place_.step) + place_.offset;
    const std::size_t count = landed_ / element_bytes_;
    accumulate(ours, landing_.data(), count, operation_.dtype, operation_.op);
    if (place_.step == n_reduce_steps_ - 1) finish(ours, count, operation_.dtype, operation_.op, size_);
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
  const Operation& operation_;
  char* data_;
  int n_reduce_steps_, size_;
  std::size_t element_bytes_;
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

Status run_ring(Exchange& exchange, const Operation& operation, char* data, std::size_t count,
                std::size_t element_bytes, int n_reduce_steps, int n_steps) {
  const int rank = exchange.rank(), size = exchange.size();
  const RingPath sent(exchange, count, element_bytes, rank, n_steps);
  const RingPath received(exchange, count, element_bytes, rank - 1, n_steps);
  RingReceive incoming((rank - 1 + size) % size, received, operation, data, n_reduce_steps, size);
  RingSend outgoing((rank + 1) % size, sent, data, incoming);
  return exchange.run(operation, {&outgoing, &incoming});
}

}  // namespace

Status ring_allreduce(Exchange& exchange, const Operation& operation, void* data) {
  const int size = exchange.size();
  return run_ring(exchange, operation, static_cast<char*>(data), operation.count, size_of(operation.dtype), size - 1,
                  2 * (size - 1));
}

Status ring_allgather(Exchange& exchange, const Operation& operation, void* data, std::size_t block_bytes) {
  const int size = exchange.size();
  return run_ring(exchange, operation, static_cast<char*>(data), static_cast<std::size_t>(size) * block_bytes, 1, 0,
                  size - 1);
}

}  // namespace drun::runtime
