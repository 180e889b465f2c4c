// Ends communicators of NCCL in threads of ours: NCCL may wait there for other ranks, or for the end of a graph, for an
// unlimited time. docs/threads.md, "Ending threads".
#pragma once

#include <chrono>
#include <vector>

#include "runtime/src/gpu/driver.h"
#include "runtime/src/gpu/nccl_library.h"

namespace drun::runtime::gpu {

// Time that NCCL has to end calls that can't go on; if it takes longer, the process ends.
inline constexpr std::chrono::milliseconds kNcclEndTime{10'000};

// A communicator of NCCL that no call uses any more. The functions of NCCL and of the driver live as long as the
// process.
struct NcclRemains {
  const Nccl* nccl = nullptr;
  const Driver* driver = nullptr;
  Context context = nullptr;
  NcclHandle comm = nullptr;
  std::vector<void*> registered;  // NCCL's handles of memory
};

enum class NcclEnd {
  kDeregister,  // only deregisters the memory
  kFinalize,    // deregisters the memory and finalizes the communicator: peers whose end waits for it can finish
  kDestroy,     // the same, and destroys it
  kAbort,       // NCCL's abort deregisters the memory
};

// Carries out `end` in a new thread, which outlives this call if that takes longer than `wait`. Leaves the communicator
// as it is if no thread can be started.
void end_in_thread(NcclRemains remains, NcclEnd end, std::chrono::milliseconds wait);

}  // namespace drun::runtime::gpu
