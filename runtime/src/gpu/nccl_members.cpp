#include "runtime/src/gpu/nccl_members.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/bytes.h"
#include "runtime/src/gpu/nccl_library.h"

namespace drun::runtime::gpu {
namespace {

constexpr std::size_t kLongestReason = 200, kLongestPath = 150, kLongestBusId = 24, kLongestMachine = 80;

std::string version_of(const NcclMember& member, const std::string& name) {
  return name + " has NCCL " + nccl_version_text(member.version) + " (" + member.path + ")";
}

}  // namespace

std::string encode_member(const NcclMember& member) {
  ByteWriter out;
  out.str(member.why_not.substr(0, kLongestReason));
  out.i32(member.version);
  out.str(member.path.substr(0, kLongestPath));
  out.str(std::string(reinterpret_cast<const char*>(member.device.bytes), sizeof member.device.bytes));
  out.str(member.bus_id.substr(0, kLongestBusId));
  out.str(member.machine.substr(0, kLongestMachine));
  out.u8(static_cast<std::uint8_t>((member.may_share ? 1 : 0) + (member.has_kernels ? 2 : 0) +
                                   (member.splits_local ? 4 : 0) + (member.splits_cross ? 8 : 0)));
  std::string bytes = out.take();
  bytes.resize(kNcclMemberBytes, '\0');
  return bytes;
}

NcclMember decode_member(const std::string& bytes) {
  ByteReader in(bytes);
  NcclMember member;
  member.why_not = in.str();
  member.version = in.i32();
  member.path = in.str();
  const std::string uuid = in.str();
  member.bus_id = in.str();
  member.machine = in.str();
  const auto flags = in.u8();
  member.may_share = (flags & 1) != 0;
  member.has_kernels = (flags & 2) != 0;
  member.splits_local = (flags & 4) != 0;
  member.splits_cross = (flags & 8) != 0;
  if (!in.ok() || uuid.size() != sizeof member.device.bytes) {
    member.why_not = "it said something else than it should";
  } else {
    std::memcpy(member.device.bytes, uuid.data(), uuid.size());
  }
  return member;
}

Outcome<NcclDecision> decide_nccl(const std::vector<NcclMember>& members, const std::vector<std::string>& names) {
  NcclDecision out;
  std::size_t n_without = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].why_not.empty()) continue;
    if (n_without++ == 0) out.why_not = names[i] + " has no NCCL that it can use: " + members[i].why_not;
  }
  if (n_without == 2) out.why_not += " (nor has one other)";
  if (n_without > 2) out.why_not += " (nor have " + std::to_string(n_without - 1) + " others)";
  if (n_without > 0) return out;

  for (std::size_t i = 1; i < members.size(); ++i) {
    if (members[i].version == members[0].version) continue;
    return failure(DRUN_ERROR_MISMATCH,
                   version_of(members[0], names[0]) + ", " + version_of(members[i], names[i]) +
                       ": all ranks need the same version (hint: DRUN_NCCL_LIB=PATH says which one to load)");
  }
  std::map<std::pair<std::string, std::string>, std::size_t> by_device;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto [place, is_new] = by_device.emplace(std::pair(members[i].machine, members[i].bus_id), i);
    if (is_new) continue;
    if (std::all_of(members.begin(), members.end(), [](const NcclMember& m) { return m.may_share; })) {
      out.why_not = names[place->second] + " and " + names[i] + " share a GPU, as DRUN_SHARED_GPU=1 allows";
      return out;
    }
    const bool are_parts = uuid_text(members[i].device) != uuid_text(members[place->second].device);
    return failure(DRUN_ERROR_ARGUMENT,
                   names[place->second] + " and " + names[i] + " use " + (are_parts ? "parts (MIG) of " : "") +
                       "the same GPU, " + (are_parts ? "at " + members[i].bus_id : uuid_text(members[i].device)) +
                       ", which NCCL refuses: each rank needs one of its own, which is what cudaSetDevice with drun's "
                       "local rank gives (hint: DRUN_SHARED_GPU=1 sends the data of ranks that share one through the "
                       "host)");
  }
  out.use = true;
  const auto all = [&](bool NcclMember::*flag) {
    return std::all_of(members.begin(), members.end(), [&](const NcclMember& member) { return member.*flag; });
  };
  out.has_kernels = all(&NcclMember::has_kernels);
  out.splits_local = all(&NcclMember::splits_local);
  out.splits_cross = all(&NcclMember::splits_cross);
  return out;
}

std::string uuid_text(const DeviceUuid& uuid) {
  static const char* const digits = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits[uuid.bytes[i] >> 4];
    text += digits[uuid.bytes[i] & 15];
  }
  return text;
}

}  // namespace drun::runtime::gpu
