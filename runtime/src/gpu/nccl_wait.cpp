#include "runtime/src/gpu/nccl_wait.h"

#include <chrono>
#include <thread>
#include <utility>

#include "runtime/src/backend/failure_attribution.h"

namespace drun::runtime::gpu {
namespace {

using std::chrono::milliseconds;

constexpr auto kSpin = std::chrono::microseconds(50), kPause = std::chrono::microseconds(200);
// The interval between looks at the job in a wait for NCCL, and the wait for another rank's explanation of an error.
constexpr milliseconds kPollJob{20}, kExplain{1000};

}  // namespace

tl::unexpected<Failure> NcclWait::failed(NcclHandle comm, const std::string& during, const char* function,
                                         NcclResult result) const {
  std::string text = during + ": " + function + ": " + nccl_.GetErrorString(result);
  const char* const more = comm != nullptr ? nccl_.GetLastError(comm) : nullptr;
  if (more != nullptr && *more != '\0') text += std::string(" (") + more + ")";
  return failure(DRUN_ERROR_SYSTEM, text, job_context_.rank(), job_context_.host_of(job_context_.rank()));
}

tl::unexpected<Failure> NcclWait::explained(NcclHandle comm, const Operation& operation, const char* function,
                                            NcclResult result) const {
  if (auto cause = published_failure(job_context_, name_of(operation), kExplain)) {
    return tl::unexpected<Failure>(std::move(*cause));
  }
  auto failure = failed(comm, describe(operation), function, result);
  if (result == kNcclRemoteError) {  // another rank's failure, of which NCCL does not know the rank
    failure.value().status = DRUN_ERROR_PEER;
    failure.value().rank = -1;
    failure.value().host.clear();
  }
  return failure;
}

Status NcclWait::settle(NcclHandle comm, const Operation& operation, const char* function) {
  const auto began = Clock::now();
  auto polled = began, asked = began;
  for (;;) {
    NcclResult state = kNcclSuccess;
    const auto asking = nccl_.CommGetAsyncError(comm, &state);
    if (asking != kNcclSuccess) return failed(comm, name_of(operation), "ncclCommGetAsyncError", asking);
    if (state == kNcclSuccess) return {};
    if (state != kNcclInProgress) return explained(comm, operation, function, state);
    const auto now = Clock::now();
    if (now - polled >= kPollJob) {
      polled = now;
      if (auto well = check_others(job_context_, name_of(operation), asked); !well) return well;
      if (job_context_.call_deadline.left(operation).count() <= 0) {
        const auto where = [function](int) {
          return std::string("in ") + function + ", which does not say for whom it waits";
        };
        return tl::unexpected<Failure>(timeout_failure(job_context_, group_, operation, group_.others(), where));
      }
    }
    if (now - began > kSpin) std::this_thread::sleep_for(kPause);
  }
}

}  // namespace drun::runtime::gpu
