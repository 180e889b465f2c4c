#include "bench/kind.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace drun::bench {

namespace {

constexpr std::size_t kBlockAlignment = 16;  // bytes

// In the order of the enum. The result of an in-place sendrecv or alltoall is undefined, because they send from the
// buffer into which they receive.
constexpr std::array<KindInfo, 10> kKinds = {{
    {Kind::kAllReduce, "all_reduce", true, false, false, true, true},
    {Kind::kAllGather, "all_gather", false, false, true, true, true},
    {Kind::kBroadcast, "broadcast", false, true, false, true, true},
    {Kind::kReduce, "reduce", true, true, false, true, true},
    {Kind::kReduceScatter, "reduce_scatter", true, false, true, true, true},
    {Kind::kAlltoall, "alltoall", false, false, true, true, false},
    {Kind::kGather, "gather", false, true, true, true, true},
    {Kind::kScatter, "scatter", false, true, true, true, true},
    {Kind::kSendRecv, "sendrecv", false, false, false, true, false},
    {Kind::kBarrier, "barrier", false, false, false, false, false},
}};

// libdrun and Horovod write "allreduce", nccl-tests "all_reduce".
std::string without_signs(std::string_view name) {
  std::string out;
  std::copy_if(name.begin(), name.end(), std::back_inserter(out), [](char c) { return c != '_' && c != '-'; });
  return out;
}

}  // namespace

const KindInfo& info(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<Kind> kind_of(std::string_view name) {
  for (const auto& one : kKinds) {
    if (without_signs(name) == without_signs(one.name)) return one.kind;
  }
  return std::nullopt;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> out;
  for (const auto& one : kKinds) out.emplace_back(one.name);
  return out;
}

Counts counts(Kind kind, std::size_t n_bytes, std::size_t element_size, int n_ranks) {
  Counts out;
  const std::size_t count = n_bytes / element_size;
  const auto n = static_cast<std::size_t>(n_ranks);
  const std::size_t block = count / n / (kBlockAlignment / element_size) * (kBlockAlignment / element_size);
  switch (kind) {
    case Kind::kAllReduce:
    case Kind::kBroadcast:
    case Kind::kReduce:
    case Kind::kSendRecv:
      out.send = out.recv = out.call = count;
      break;
    case Kind::kAllGather:
    case Kind::kGather:
      out.send = out.call = out.send_offset = block;
      out.recv = block * n;
      break;
    case Kind::kReduceScatter:
    case Kind::kScatter:
      out.send = block * n;
      out.recv = out.call = out.recv_offset = block;
      break;
    case Kind::kAlltoall:
      out.send = out.recv = block * n;
      out.call = block;
      break;
    case Kind::kBarrier:
      break;
  }
  return out;
}

Bandwidth bandwidth(Kind kind, const Counts& counts, std::size_t element_size, int n_ranks, double seconds) {
  const double n = n_ranks;
  double n_bytes = static_cast<double>(counts.call * element_size);
  double factor = 1;
  if (info(kind).blocks) {
    n_bytes *= n;
    factor = (n - 1) / n;
  }
  if (kind == Kind::kAllReduce) factor = 2 * (n - 1) / n;
  Bandwidth out;
  if (seconds > 0) out.algorithm = n_bytes / seconds;
  out.bus = out.algorithm * factor;
  return out;
}

}  // namespace drun::bench
