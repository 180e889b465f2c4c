#include "runtime/src/gpu/host_copies.h"

#include <chrono>
#include <string>
#include <utility>

namespace drun::runtime::gpu {
namespace {

constexpr std::chrono::milliseconds kCheckInterval{50};  // between checks of the job and of the deadline

}  // namespace

tl::unexpected<Failure> HostCopies::failed(const char* function, DriverResult error) const {
  return driver_failure(*driver_, describe(operation_), function, error);
}

Outcome<char*> HostCopies::add(DevicePointer device, std::size_t n_bytes, bool written) {
  if (!context_.is_entered()) {
    auto context = context_of(*driver_, device, describe(operation_));
    if (!context) return tl::unexpected<Failure>(context.error());
    const auto error = context_.enter(*driver_, *context);
    if (error != kSuccess) return failed("cuCtxPushCurrent", error);
  }
  DriverResult error = kSuccess;
  char* const host = pinned_.take(*driver_, n_bytes, error);
  if (host == nullptr) return failed("cuMemHostAlloc", error);
  regions_.push_back({device, host, n_bytes, written});
  return host;
}

Status HostCopies::fetch(char* to, DevicePointer from, std::size_t n_bytes) {
  const auto error = driver_->copy_to_host(to, from, n_bytes, stream_of(options_));
  if (auto ok = started("cuMemcpyDtoHAsync", error); !ok) return ok;
  return wait();
}

Status HostCopies::started(const char* function, DriverResult error) {
  if (error != kSuccess) return failed(function, error);
  is_copying_ = true;
  return {};
}

Status HostCopies::copy_written(void*& memory, std::size_t n_bytes, bool keeps) {
  if (!is_device(memory)) return {};
  auto host = add(device_pointer(memory), n_bytes, true);
  if (!host) return tl::unexpected<Failure>(host.error());
  if (keeps) {
    if (auto ok = fetch(*host, device_pointer(memory), n_bytes); !ok) return ok;
  }
  memory = *host;
  return {};
}

Status HostCopies::copy_read(const void*& memory, std::size_t n_bytes) {
  if (!is_device(memory)) return {};
  char* host = nullptr;
  for (const Region& region : regions_) {  // in place
    const auto begin = device_pointer(memory);
    if (begin >= region.device && begin + n_bytes <= region.device + region.n_bytes) {
      host = region.host + (begin - region.device);
    }
  }
  if (host == nullptr) {
    auto own = add(device_pointer(memory), n_bytes, false);
    if (!own) return tl::unexpected<Failure>(own.error());
    host = *own;
  }
  if (auto ok = fetch(host, device_pointer(memory), n_bytes); !ok) return ok;
  memory = host;
  return {};
}

Status HostCopies::copy_back() {
  for (const Region& region : regions_) {
    if (!region.written) continue;
    const auto error = driver_->copy_to_device(region.device, region.host, region.n_bytes, stream_of(options_));
    if (auto ok = started("cuMemcpyHtoDAsync", error); !ok) return ok;
  }
  return wait();
}

Status HostCopies::wait() {
  (void)call_deadline_.left(operation_);  // what came before this wait was no stop of the process
  auto next_check = Clock::now() + kCheckInterval;
  Status job;
  const auto go_on = [&] {
    if (Clock::now() < next_check) return true;
    next_check = Clock::now() + kCheckInterval;
    job = check_job_(operation_);
    return job && call_deadline_.left(operation_).count() > 0;
  };
  const auto error = wait_for_stream(*driver_, stream_of(options_), go_on);
  if (!job) {
    is_interrupted_ = true;
    return job;
  }
  if (error == kNotReady) return own_gpu_timeout(operation_);
  if (error != kSuccess) return failed("cuStreamQuery", error);
  is_copying_ = false;
  return {};
}

void HostCopies::release() {
  for (const Region& region : regions_) {
    if (is_copying_) {
      pinned_.leave(region.host);
    } else {
      pinned_.give_back(*driver_, region.host);
    }
  }
}

}  // namespace drun::runtime::gpu
