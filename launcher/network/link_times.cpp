#include "launcher/network/link_times.h"

#include <algorithm>

namespace drun::launcher {

namespace {

using netdetect::Direction;
using netdetect::Link;
using netdetect::LinkTarget;
using std::chrono::milliseconds;

constexpr double kRoundTripsOfStreams = 12;  // slow start needs a few before the window begins
constexpr double kSlow = 100e6;              // bits/s
// Full queues drop packets too. So losses are counted at a rate so low that no queue fills. Segments have full size,
// because a bad cable loses long frames more often than short ones; each is in a frame of its own, at most
// kPacedSegments a second.
constexpr double kMinPaced = 1e6, kPacedShare = 0.25, kPacedSegments = 5000;
constexpr int kHeaders = 72, kUsualMtu = 1500;  // bytes; of IPv6, the longer one, and of TCP with timestamps
// Duration of a stream, at most, in times of the part of it in which arriving bytes count.
constexpr double kStreamTimes = 2;

// Bits per second that the direction carries. A stream that loses a retransmission waits for 200 ms or more, and then
// little arrives in a short measurement; it has sent more before.
double carried(const netdetect::Rate& rate, int segment_bytes) {
  if (rate.seconds <= 0) return rate.bits_per_second;
  const double sent = static_cast<double>(rate.n_segments - rate.n_retransmits) * 8 * segment_bytes;
  return std::max(rate.bits_per_second, sent / (kStreamTimes * rate.seconds));
}

}  // namespace

LinkTimes quick_link_times() {
  LinkTimes times;
  times.n_round_trips = 20;
  times.round_trips = milliseconds(100);
  times.bandwidth_min = milliseconds(40);
  times.bandwidth_max = milliseconds(150);
  return times;
}

milliseconds bandwidth_time(const LinkTimes& times, milliseconds left, int n_rounds, milliseconds beside) {
  if (n_rounds <= 0) return times.bandwidth_max;
  const milliseconds each = left / n_rounds - beside;
  if (each < times.bandwidth_min) return milliseconds(0);
  return std::min(each, times.bandwidth_max);
}

milliseconds stream_time(const Link& link, milliseconds time) {
  const milliseconds long_route(static_cast<long>(kRoundTripsOfStreams * link.rtt_min_us / 1000));
  return std::max(time, std::min(long_route, kMaxStreamTime));
}

bool lost_messages(const Link& link, std::uint32_t n_round_trips) {
  constexpr double kSentAgainUs = 150e3;  // Linux retransmits after 200 ms at the earliest
  if (link.n_round_trips == 0) return true;
  return link.n_round_trips < n_round_trips && link.rtt_p99_us > link.rtt_min_us + kSentAgainUs;
}

bool is_slow(const Link& link) {
  const auto slow = [](const Direction& d) { return !d.rates.empty() && d.rates[0].bits_per_second < kSlow; };
  return slow(link.forward) || slow(link.backward);
}

LinkTarget loss_target(const Link& link, milliseconds time) {
  int mtu = 0;
  for (const Direction* direction : {&link.forward, &link.backward}) {
    const int of_direction = direction->path_mtu > 0 ? direction->path_mtu : kUsualMtu;
    mtu = mtu == 0 ? of_direction : std::min(mtu, of_direction);
  }
  LinkTarget out;
  out.segment_bytes = static_cast<std::uint16_t>(std::clamp(mtu, 576, 9000) - kHeaders);
  double rate = 0;
  for (const Direction* direction : {&link.forward, &link.backward}) {
    for (const auto& r : direction->rates) {
      const double of_direction = carried(r, out.segment_bytes);
      rate = rate == 0 ? of_direction : std::min(rate, of_direction);
    }
  }
  rate = std::min(rate * kPacedShare, kPacedSegments * 8 * out.segment_bytes);
  out.max_rate = static_cast<std::uint64_t>(std::max(rate, kMinPaced));
  // A stream that has lost a retransmission waits for at least 200 ms; the others go on.
  out.n_streams = kManyStreams;
  out.time_ms = count_of(time);
  return out;
}

}  // namespace drun::launcher
