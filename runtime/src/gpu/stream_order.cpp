#include "runtime/src/gpu/stream_order.h"

#include <algorithm>

namespace drun::runtime::gpu {
namespace {

// Uses an event of its own, because the call's is reused.
Status wait_later(Device& device, const UserStream& stream, const Operation& operation) {
  const Driver& driver = device.driver();
  Event event = nullptr;
  auto error = driver.event_create(&event, kEventDisableTiming);
  if (error != kSuccess) return driver_failure(driver, operation, "cuEventCreate", error);
  stream.later->set(driver, device.context(), stream.stream, event);
  error = driver.event_record(event, device.stream());
  if (error != kSuccess) return driver_failure(driver, operation, "cuEventRecord", error);
  return {};
}

}  // namespace

// A call on a single stream that waits at once goes to that stream itself: ours would gain nothing, and two waits
// between streams are saved. Ours is for work that runs beside the user's stream, for calls of several streams
// together, for work in memory that calls share, and for a capture, whose calls it keeps in order. It also replaces
// cudaStreamPerThread, because NCCL has threads of its own.
Outcome<StreamPlan> begin_after(Device& device, const std::vector<UserStream>& streams, const Operation& during,
                                bool needs_ours) {
  const Driver& driver = device.driver();
  StreamPlan plan{streams.front().stream, false, false};
  // Each stream once.
  const auto is_first = [&](const UserStream& one) {
    return std::none_of(streams.data(), &one, [&](const UserStream& before) { return before.stream == one.stream; });
  };
  for (const UserStream& one : streams) {
    plan.is_ours = plan.is_ours || needs_ours || one.later != nullptr || one.stream != streams.front().stream ||
                   one.stream == stream_of_thread();
    if (!is_first(one)) continue;
    int capture = kCaptureNone;
    if (driver.stream_capture(one.stream, &capture) == kSuccess && capture != kCaptureNone) plan.is_captured = true;
  }
  plan.is_ours = plan.is_ours || plan.is_captured;
  if (plan.is_ours) plan.stream = device.stream();
  for (const UserStream& one : streams) {
    if (!plan.is_ours || !is_first(one)) continue;
    Event event = nullptr;
    auto error = device.take_event(event);
    if (error != kSuccess) return driver_failure(driver, during, "cuEventCreate", error);
    const char* function = "cuEventRecord";
    if ((error = driver.event_record(event, one.stream)) == kSuccess) {
      function = "cuStreamWaitEvent";
      error = driver.stream_wait_event(plan.stream, event, 0);
    }
    device.give_back(event);  // the wait is for the work recorded so far
    if (error != kSuccess) return driver_failure(driver, during, function, error);
  }
  if (plan.is_captured && needs_ours) device.keep_scratch();
  // In a capture no work can wait for an event from outside of it: the program must have waited for its earlier calls
  // when it launches a graph.
  const Event before = device.last_call();
  if (before != nullptr && plan.stream != device.last_stream() && !plan.is_captured) {
    const auto error = driver.stream_wait_event(plan.stream, before, 0);
    if (error != kSuccess) return driver_failure(driver, during, "cuStreamWaitEvent", error);
  }
  return plan;
}

Status end_before(Device& device, const std::vector<UserStream>& streams, const StreamPlan& plan, Event end,
                  const Operation& during) {
  const Driver& driver = device.driver();
  auto error = driver.event_record(end, plan.stream);
  if (error != kSuccess) return driver_failure(driver, during, "cuEventRecord", error);
  for (std::size_t i = 0; plan.is_ours && i < streams.size(); ++i) {
    if (streams[i].later != nullptr && !plan.is_captured) {  // a capture must end with all streams joined
      if (auto ok = wait_later(device, streams[i], during); !ok) return ok;
      continue;
    }
    error = driver.stream_wait_event(streams[i].stream, end, 0);
    if (error != kSuccess) return driver_failure(driver, during, "cuStreamWaitEvent", error);
  }
  return {};
}

}  // namespace drun::runtime::gpu
