// One direction of data between this rank and a peer, as an algorithm sees it: bytes become ready, bytes move.
#pragma once

#include <cstddef>

namespace drun::runtime {

struct Window {
  char* data = nullptr;
  std::size_t n_bytes = 0;
};

// Owned by the algorithm's stack frame; PeerFlows::run moves it to its end.
class Flow {
 public:
  enum class Direction { kSend, kReceive };

  Flow(Direction direction, int peer, std::size_t n_bytes) : direction_(direction), peer_(peer), n_bytes_(n_bytes) {}
  virtual ~Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // The bytes that may move now, in one piece. If empty before the end, the flow waits for another flow of the same
  // run.
  virtual Window window() = 0;
  // The first `n_bytes` of the window have been sent or have arrived.
  virtual void moved(std::size_t n_bytes) { done_ += n_bytes; }

  Direction direction() const { return direction_; }
  int peer() const { return peer_; }
  std::size_t done() const { return done_; }
  std::size_t n_bytes() const { return n_bytes_; }
  bool finished() const { return done_ == n_bytes_; }

 private:
  Direction direction_;
  int peer_;
  std::size_t n_bytes_;
  std::size_t done_ = 0;
};

// A contiguous buffer. With `after`, no byte is sent before that flow has received the same byte.
class BufferFlow final : public Flow {
 public:
  BufferFlow(Direction direction, int peer, void* data, std::size_t n_bytes, const Flow* after = nullptr)
      : Flow(direction, peer, n_bytes), data_(static_cast<char*>(data)), after_(after) {}
  Window window() override {
    const std::size_t ready = after_ != nullptr ? after_->done() : n_bytes();
    return {data_ + done(), ready - done()};
  }

 private:
  char* data_;
  const Flow* after_;
};

// Sends from memory that is never written to.
class SendFlow final : public Flow {
 public:
  SendFlow(int peer, const void* data, std::size_t n_bytes)
      : Flow(Direction::kSend, peer, n_bytes), data_(const_cast<char*>(static_cast<const char*>(data))) {}
  Window window() override { return {data_ + done(), n_bytes() - done()}; }

 private:
  char* data_;
};

}  // namespace drun::runtime
