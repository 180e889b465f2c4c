// What the members of a communicator tell each other before they use NCCL, and what all of them decide alike from that.
// Pure. docs/gpu.md.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

struct NcclMember {
  std::string why_not;  // why it has no NCCL that it can use; empty: it has
  int version = 0;
  std::string path;
  DeviceUuid device{};
  std::string machine;       // what NCCL takes for a host
  bool may_share = false;    // DRUN_SHARED_GPU=1
  bool has_kernels = false;  // for its GPU
  // Whether it would split the local and the cross communicator off: it has none yet, and may.
  bool splits_local = false, splits_cross = false;
};

inline constexpr std::size_t kNcclMemberBytes = 512;
// Always so many bytes; texts that do not fit are cut.
std::string encode_member(const NcclMember& member);
NcclMember decode_member(const std::string& bytes);

struct NcclDecision {
  bool use = false;
  bool has_kernels = false;                         // all have
  bool splits_local = false, splits_cross = false;  // all would
  std::string why_not;                              // of a communicator that goes through the host
};
// `names`: "rank 3 on node7", by member. A failure is one of all members.
Outcome<NcclDecision> decide_nccl(const std::vector<NcclMember>& members, const std::vector<std::string>& names);

std::string uuid_text(const DeviceUuid& uuid);  // as nvidia-smi has it: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"

}  // namespace drun::runtime::gpu
