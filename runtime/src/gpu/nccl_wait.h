// Explains errors of NCCL, and waits for a communicator that works in the background, because the user has set
// NCCL_COMM_BLOCKING=0: setups and calls are in progress when NCCL's functions return.
#pragma once

#include <string>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/nccl_library.h"
#include "runtime/src/group.h"
#include "runtime/src/job_context.h"
#include "runtime/src/operation.h"

namespace drun::runtime::gpu {

// Owned by the communicator of `group`; one thread at a time, as that.
class NcclWait {
 public:
  NcclWait(const JobContext& job_context, const Group& group, const Nccl& nccl)
      : job_context_(job_context), group_(group), nccl_(nccl) {}

  // Blocks until `comm` is no longer in progress. Fails with NCCL's error, at the deadline of `operation`, and when the
  // job or another rank has failed. `function` of NCCL is named in errors.
  Status settle(NcclHandle comm, const Operation& operation, const char* function);
  // The failure for an error of NCCL, which may be due to another rank's failure: waits up to a second for that.
  tl::unexpected<Failure> explained(NcclHandle comm, const Operation& operation, const char* function,
                                    NcclResult result) const;
  // The failure for an error of NCCL that is due to this rank. `comm` may be null.
  tl::unexpected<Failure> failed(NcclHandle comm, const std::string& during, const char* function,
                                 NcclResult result) const;

 private:
  const JobContext& job_context_;
  const Group& group_;
  const Nccl& nccl_;
};

}  // namespace drun::runtime::gpu
