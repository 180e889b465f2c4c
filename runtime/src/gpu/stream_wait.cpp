#include "runtime/src/gpu/stream_wait.h"

#include <utility>

#include "runtime/src/gpu/device.h"

namespace drun::runtime::gpu {

void StreamWait::set(const Driver& driver, Context context, Stream stream, Event event) {
  destroy();
  driver_ = &driver;
  context_ = context;
  stream_ = stream;
  event_ = event;
}

bool StreamWait::is_possible(std::optional<Stream> other) const {
  if (event_ == nullptr) return true;
  ContextScope scope;
  if (scope.enter(*driver_, context_) != kSuccess) return true;  // carry_out() reports the error
  return !is_captured(*driver_, other.value_or(stream_));
}

DriverResult StreamWait::carry_out(std::optional<Stream> other) {
  if (event_ == nullptr) return kSuccess;
  ContextScope scope;
  auto error = scope.enter(*driver_, context_);
  if (error == kSuccess) error = driver_->stream_wait_event(other.value_or(stream_), event_, 0);
  destroy();
  return error == kDeinitialized ? kSuccess : error;  // the process is about to end
}

// Streams that wait for the event already go on waiting.
void StreamWait::destroy() {
  const Event event = std::exchange(event_, nullptr);
  if (event == nullptr) return;
  ContextScope scope;
  if (scope.enter(*driver_, context_) == kSuccess) driver_->event_destroy(event);
}

}  // namespace drun::runtime::gpu
