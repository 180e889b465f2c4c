#include "runtime/src/gpu/call_watch.h"

#include <string>
#include <vector>

#include "runtime/src/gpu/device.h"

namespace drun::runtime::gpu {
namespace {

// A call that takes less is not worth a look at the job; and the interval at which other ranks' failures are asked for.
constexpr std::chrono::milliseconds kMinBlocked{300}, kAskOthers{1000};

}  // namespace

void CallWatch::leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  operation_ = nullptr;
  if (blocked_ >= kMinBlocked) note_.done(job_context_);
}

void CallWatch::poll(std::chrono::nanoseconds passed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (operation_ == nullptr) return;
  const bool is_first = blocked_.count() == 0;
  if (is_first) {
    stopped_ = job_context_.stopped();
    asked_ = {};
  }
  blocked_ += passed;
  if (blocked_ < kMinBlocked) return;
  const std::string during = name_of(*operation_);
  if (auto alive = check_alive(job_context_, during); !alive) fail(alive.error());
  if (blocked_ - asked_ >= kAskOthers) {
    asked_ = blocked_;
    if (const auto cause = published_failure(job_context_, during, std::chrono::milliseconds(1))) fail(*cause);
  }
  const auto others = is_of_two(*operation_) ? std::vector<int>{group_.world_rank(operation_->root)} : group_.others();
  if (others.empty()) {
    if (Clock::now() > operation_->deadline() + (job_context_.stopped() - stopped_)) {
      fail(publish_own_failure(job_context_, own_gpu_timeout(*operation_).value()).value());
    }
    return;
  }
  note_.waiting(job_context_, group_, *operation_, [&] { return others; });
  if (Clock::now() <= operation_->deadline() + (job_context_.stopped() - stopped_)) return;
  const auto where = [this](int) { return std::string("in ") + function_ + ", which does not say for whom it waits"; };
  fail(timeout_failure(job_context_, group_, *operation_, others, where));
}

void CallWatch::fail(const Failure& failure) const {
  end_process(job_context_.name_of(job_context_.rank()) + ": " + with_code(failure) + "; " + function_ +
              " can't be canceled");
}

}  // namespace drun::runtime::gpu
