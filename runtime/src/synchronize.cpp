#include "runtime/src/synchronize.h"

#include <string>

#include "base/units.h"
#include "runtime/src/call_deadline.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/operation.h"
#include "runtime/src/runtime_state.h"

namespace drun::runtime {

Status synchronize(gpu::Stream stream, std::chrono::milliseconds timeout) {
  const char* const during = "drun_synchronize";
  Operation wait;
  wait.timeout = timeout;
  std::string under_way;
  gpu::Context ours = nullptr;
  const auto poll = [&](Process& process) -> Status {
    auto all = process.communicator(during);
    if (!all) return tl::unexpected<Failure>(all.error());
    if (wait.timeout.count() == 0) wait.timeout = (*all)->job_context().timeouts.op;
    auto polled = (*all)->poll_for_failure();
    under_way = (*all)->under_way();
    ours = (*all)->gpu_context();
    return polled;
  };
  wait.clock.began();
  const gpu::Driver* const driver = gpu::loaded_driver();
  if (auto ok = in_turn(poll); !ok || driver == nullptr) return ok;
  gpu::Context current = nullptr;
  gpu::ContextScope scope;
  if (driver->context_current(&current) != gpu::kSuccess || current == nullptr) {  // no context, as in a new thread
    if (ours == nullptr && stream == nullptr) return {};
    if (ours != nullptr) (void)scope.enter(*driver, ours);
  }
  if (gpu::is_captured(*driver, stream)) {
    return failure(DRUN_ERROR_STATE, std::string(during) + ": the stream is being captured");
  }

  CallQueue& queue = state().queue;
  Status seen;
  CallDeadline call_deadline;
  auto polled = Clock::now();
  const auto go_on = [&] {
    const auto now = Clock::now();
    if (now - polled >= GpuPoller::kInterval) {
      polled = now;
      queue.try_run([&] { seen = poll(state().process); });
    }
    return seen && call_deadline.left(wait).count() > 0;
  };
  const auto error = gpu::wait_for_stream(*driver, stream, go_on);
  if (!seen) return seen;
  if (auto ok = in_turn(poll); !ok) return ok;
  if (error == gpu::kNotReady) {
    return failure(DRUN_ERROR_TIMEOUT, std::string(during) + ": the stream still has work after " +
                                           limit_text(wait.timeout) +
                                           (under_way.empty() ? "" : "; under way over NCCL: " + under_way));
  }
  if (error != gpu::kSuccess) return gpu::driver_failure(*driver, during, "cuStreamQuery", error);
  return {};
}

}  // namespace drun::runtime
