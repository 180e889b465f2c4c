// Reductions as NCCL has them: which ones it can carry out, and NCCL's operation for each. docs/gpu.md, "Route of a
// call".
#pragma once

#include <vector>

#include "runtime/src/gpu/nccl_library.h"
#include "runtime/src/operation.h"

namespace drun::runtime::gpu {

// False for reductions that NCCL does not have: they go through the host. Pure.
bool nccl_can_reduce(const Operation& operation);

// How many of the operation's elements NCCL reduces in one call, from the first on; another call reduces the others.
// NCCL scales the data of one rank in blocks of 16 KiB, or of a 32nd if that is more. From 2.19 to 2.29.3 it leaves the
// last elements unwritten if the blocks share them unevenly (https://github.com/NVIDIA/nccl/issues/1950), so the second
// call gets what is less than a block. Pure.
std::size_t n_reduced_at_once(const Operation& operation, int n_members);

// NCCL's operations for the reductions of one call, or of calls that are enqueued together. Must live until all of them
// are enqueued; the destructor destroys the operations that were made for them.
class NcclReductions {
 public:
  // `n_members` is the size of `comm`.
  NcclReductions(const Nccl& nccl, NcclHandle comm, int n_members) : nccl_(nccl), comm_(comm), n_members_(n_members) {}
  ~NcclReductions();
  NcclReductions(const NcclReductions&) = delete;
  NcclReductions& operator=(const NcclReductions&) = delete;

  // Sets `op` for the operation, which nccl_can_reduce() allows. Returns NCCL's result.
  NcclResult add(const Operation& operation, NcclRedOp& op);

 private:
  const Nccl& nccl_;
  NcclHandle comm_;
  int n_members_;
  std::vector<NcclRedOp> made_;
};

}  // namespace drun::runtime::gpu
