#include "control/frame_queue.h"

namespace drun::control {

namespace {
constexpr std::size_t kTogether = 16u << 10;  // bytes of frames that are written together
}

void FrameQueue::add(std::deque<std::string>& queue, std::string bytes) {
  if (closed_) return;
  bytes_of(queue) += bytes.size();
  queue.push_back(std::move(bytes));
  taken_.reset();
  wake_.notify();
}

void FrameQueue::push(Type type, std::string_view body) { add(urgent_, encode_frame(type, body)); }
void FrameQueue::push_bulk(Type type, std::string_view body) { add(bulk_, encode_frame(type, body)); }
void FrameQueue::push_bytes(std::string bytes) { add(urgent_, std::move(bytes)); }

Task<std::optional<std::string>> FrameQueue::next() {
  while (urgent_.empty() && bulk_.empty()) {
    taken_.notify();
    if (finished_ || closed_) co_return std::nullopt;
    co_await wake_.wait_and_reset();
  }
  std::optional<std::string> frames = take();
  while (!urgent_.empty() || !bulk_.empty()) {
    const auto& next = urgent_.empty() ? bulk_.front() : urgent_.front();
    if (frames->size() + next.size() > kTogether) break;
    *frames += take();
  }
  co_return frames;
}

std::string FrameQueue::take() {
  auto& queue = urgent_.empty() ? bulk_ : urgent_;
  std::string frame = std::move(queue.front());
  queue.pop_front();
  bytes_of(queue) -= frame.size();
  return frame;
}

Task<void> FrameQueue::flush(Deadline deadline) { co_await taken_.wait_until(deadline); }

void FrameQueue::finish() {
  finished_ = true;
  wake_.notify();
}

void FrameQueue::close() {
  closed_ = true;
  urgent_.clear();
  bulk_.clear();
  bulk_bytes_ = urgent_bytes_ = 0;
  wake_.notify();
  taken_.notify();
}

}  // namespace drun::control
