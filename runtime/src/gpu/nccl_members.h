// The messages that members of a communicator exchange before they use NCCL, and the decision that all of them derive
// from these. Pure. docs/gpu.md.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

struct NcclMember {
  std::string why_not;  // why it has no usable NCCL; empty: it has one
  int version = 0;
  std::string path;
  DeviceUuid device{};
  std::string bus_id;        // which with the machine identifies a GPU to NCCL: parts of one (MIG) have the same
  std::string machine;       // identifies a host to NCCL
  bool may_share = false;    // DRUN_SHARED_GPU=1
  bool has_kernels = false;  // for its GPU
  // True if it can split off the local and the cross communicator: it is allowed to, and has none yet.
  bool splits_local = false, splits_cross = false;
};

inline constexpr std::size_t kNcclMemberBytes = 512;
// The result always has kNcclMemberBytes bytes; texts that do not fit are cut.
std::string encode_member(const NcclMember& member);
NcclMember decode_member(const std::string& bytes);

struct NcclDecision {
  bool use = false;
  bool has_kernels = false;                         // all members have kernels
  bool splits_local = false, splits_cross = false;  // all members can
  std::string why_not;                              // why data goes through the host
};
// `names`: "rank 3 on node7", by member. All members come to the same decision or failure.
Outcome<NcclDecision> decide_nccl(const std::vector<NcclMember>& members, const std::vector<std::string>& names);

std::string uuid_text(const DeviceUuid& uuid);  // as nvidia-smi prints it: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"

}  // namespace drun::runtime::gpu
