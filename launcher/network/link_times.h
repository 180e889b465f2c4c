// The durations and parameters of the parts of a link's measurement. Pure. docs/netdetect.md, How links are measured.
#pragma once

#include <chrono>
#include <cstdint>

#include "netdetect/link.h"
#include "netdetect/link_target.h"

namespace drun::launcher {

// The extent of the measurements of each pair.
struct LinkTimes {
  std::uint32_t n_round_trips = 0;
  std::chrono::milliseconds round_trips{};                     // maximum
  std::chrono::milliseconds bandwidth_min{}, bandwidth_max{};  // of one measurement
  bool four_streams = false;
};
LinkTimes quick_link_times();  // for the shortest check, and for a choice between networks by their speed

inline constexpr std::uint32_t kManyStreams = 4;
inline constexpr std::chrono::milliseconds kMaxStreamTime{2000};  // of a link with long round trips, and of the ring

// Time for one bandwidth measurement if `n_rounds` must fit into `left` and each also takes `beside` for connections.
// Between the minimum and the maximum of `times`; 0 if not even the minimum fits.
std::chrono::milliseconds bandwidth_time(const LinkTimes& times, std::chrono::milliseconds left, int n_rounds,
                                         std::chrono::milliseconds beside);

// Time for which the bandwidth of this pair is measured if `time` is the usual one: long routes need more. Uses the
// shortest round trip, because longer ones may include retransmissions.
std::chrono::milliseconds stream_time(const netdetect::Link& link, std::chrono::milliseconds time);

// True if some or all of `n_round_trips` messages were lost. Every connection of such a pair is slow and occupies both
// hosts, so the pair is measured last.
bool lost_messages(const netdetect::Link& link, std::uint32_t n_round_trips);

// True if a direction is so slow that the queues of the link fill and drain in tenths of a second.
bool is_slow(const netdetect::Link& link);

// The parameters for counting the losses of a link whose bandwidth is known: a rate far below that of the slower
// direction.
netdetect::LinkTarget loss_target(const netdetect::Link& link, std::chrono::milliseconds time);

inline std::uint32_t count_of(std::chrono::milliseconds time) { return static_cast<std::uint32_t>(time.count()); }

}  // namespace drun::launcher
