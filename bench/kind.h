// What can be measured: names, who gives and gets how much, and how a time becomes a bandwidth, as nccl-tests has it
// (its doc/PERFORMANCE.md says why). Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun::bench {

enum class Kind {
  kAllReduce,
  kAllGather,
  kBroadcast,
  kReduce,
  kReduceScatter,
  kAlltoall,
  kGather,
  kScatter,
  kSendRecv,
  kBarrier,
};

struct KindInfo {
  Kind kind;
  const char* name;    // "all_reduce"; the test of nccl-tests has "_perf" behind it
  bool reduces;        // has a reduction
  bool rooted;         // has a root
  bool blocks;         // deals with one block per rank: the size is that of all of them
  bool has_in_place;   // it can be done in place
  bool checks_inside;  // and the result can be checked then
};

const KindInfo& info(Kind kind);
std::optional<Kind> kind_of(std::string_view name);
std::vector<std::string> kind_names();

// In elements.
struct Counts {
  std::size_t send = 0, recv = 0;  // of one rank
  std::size_t call = 0;            // what the call is given
  // In place, times the rank: where in the receive buffer what is given, and what is got, begins.
  std::size_t send_offset = 0, recv_offset = 0;
};
// For `n_bytes` to be dealt with. Blocks begin at multiples of 16 bytes, so small sizes leave nothing for any rank.
Counts counts(Kind kind, std::size_t n_bytes, std::size_t element_size, int n_ranks);

// Bytes per second. The bus bandwidth is that of the busiest link if every rank had one: it can be compared with what
// the hardware can do, whatever the number of ranks.
struct Bandwidth {
  double algorithm = 0, bus = 0;
};
Bandwidth bandwidth(Kind kind, const Counts& counts, std::size_t element_size, int n_ranks, double seconds);

}  // namespace drun::bench
