// Adasum of vectors on GPUs: does what adasum_allreduce() does on the host, with whole vectors. Enqueues all work, and
// has its caller exchange the vectors of two ranks.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/call_watch.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/group.h"
#include "runtime/src/operation.h"

namespace drun::runtime::gpu {

// One call. The device's context must be current, and its scratch memory is used, so `ours` must be its stream().
class GpuAdasum {
 public:
  // Sends the vector at `send` to a member, and receives one at `recv` from another, at the same time. With a
  // null pointer it does only the other. Returns when this is enqueued, connections included, so that the kernels of
  // the next step come after it. `watch` is for calls of the driver; `exchange` uses its own.
  using Exchange = std::function<Status(const void* send, int to, void* recv, int from)>;
  GpuAdasum(Device& device, CallWatch& watch, const Group& group, const Operation& operation, Stream ours, void* data,
            Exchange exchange)
      : device_(device),
        watch_(watch),
        group_(group),
        operation_(operation),
        during_(describe(operation)),
        ours_(ours),
        data_(data),
        exchange_(std::move(exchange)) {}

  // Enqueues everything, from the input at `send` to the result at `data`.
  Status run(const void* send);

 private:
  static constexpr std::size_t kScratchAlignment = 256;

  Status begin(const void* send);
  Status combine_all();
  Status launch(const std::string& kernel, const void* arguments, std::uint64_t n_parts) const;
  // Replaces our vector by its Adasum with that of a peer. `lower`: ours is the one of the lower rank.
  Status combine(bool lower);
  Status scale(double factor) const;

  Device& device_;
  CallWatch& watch_;
  const Group& group_;
  const Operation& operation_;
  std::string during_;
  Stream ours_;
  void* data_;
  Exchange exchange_;
  DevicePointer theirs_ = 0, dots_ = 0;
};

}  // namespace drun::runtime::gpu
