#include "runtime/src/gpu/host_copies.h"

#include <string>
#include <utility>

namespace drun::runtime::gpu {

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
  if (error != kSuccess) return failed("cuMemcpyDtoHAsync", error);
  return wait();
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
    if (error != kSuccess) return failed("cuMemcpyHtoDAsync", error);
  }
  return wait();
}

Status HostCopies::wait() {
  const auto go_on = [this] { return Clock::now() < operation_.deadline(); };
  const auto error = wait_for_stream(*driver_, stream_of(options_), go_on);
  if (error == kNotReady) return own_gpu_timeout(operation_);
  if (error != kSuccess) return failed("cuStreamQuery", error);
  return {};
}

void HostCopies::release() {
  for (const Region& region : regions_) pinned_.give_back(*driver_, region.host);
}

}  // namespace drun::runtime::gpu
