// The collectives that can be measured: names, element counts, and bandwidth formulas, all as in nccl-tests (whose
// doc/PERFORMANCE.md explains them). Pure.
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
  const char* name;    // "all_reduce"; nccl-tests appends "_perf"
  bool reduces;        // has a reduction
  bool rooted;         // has a root
  bool blocks;         // has one block per rank: the size is that of all blocks
  bool has_in_place;   // can be done in place
  bool checks_inside;  // the in-place result can be checked
};

const KindInfo& info(Kind kind);
std::optional<Kind> kind_of(std::string_view name);
std::vector<std::string> kind_names();

// In elements.
struct Counts {
  std::size_t send = 0, recv = 0;  // of one rank
  std::size_t call = 0;            // count passed to the call
  // In place, times the rank: offsets of the input and of the output in the receive buffer.
  std::size_t send_offset = 0, recv_offset = 0;
};
// The counts for a size of `n_bytes`. Blocks begin at multiples of 16 bytes, so small sizes give empty blocks.
Counts counts(Kind kind, std::size_t n_bytes, std::size_t element_size, int n_ranks);

// Bytes per second. The bus bandwidth is that of the busiest link if every rank had one link: it can be compared with
// the speed of the hardware for any number of ranks.
struct Bandwidth {
  double algorithm = 0, bus = 0;
};
Bandwidth bandwidth(Kind kind, const Counts& counts, std::size_t element_size, int n_ranks, double seconds);

}  // namespace drun::bench
