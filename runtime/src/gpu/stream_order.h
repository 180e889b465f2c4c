// The order of an NCCL call among the streams of a device: on which stream its work goes, what that stream waits for
// before it, and which streams wait for its end. Calls only the driver; keeps no state but the device's.
// docs/gpu.md, "Streams, requests, capture".
#pragma once

#include <vector>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/stream_wait.h"
#include "runtime/src/operation.h"

namespace drun::runtime::gpu {

struct StreamPlan {
  Stream stream;     // to which the call's work goes
  bool is_ours;      // it is Device::stream()
  bool is_captured;  // the call becomes part of a graph
};

// Chooses the stream, and orders the work that it gets from here on after the work of the user's `streams` and after
// the device's last call. `needs_ours`: the work must go to our stream. The device's context must be current, here and
// below.
Outcome<StreamPlan> begin_after(Device& device, const std::vector<UserStream>& streams, const Operation& during,
                                bool needs_ours);
// Records `end`, and makes the user's streams wait for it, at once or later.
Status end_before(Device& device, const std::vector<UserStream>& streams, const StreamPlan& plan, Event end,
                  const Operation& during);

}  // namespace drun::runtime::gpu
