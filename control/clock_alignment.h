// Maps a host's monotonic clock to drun's, from round trips (Cristian's algorithm): the host read its clock at some
// moment between drun's send and receive. Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace drun::control {

// A moment on drun's CLOCK_MONOTONIC (ns), known to lie between two bounds.
struct Moment {
  std::int64_t earliest_ns = 0;
  std::int64_t latest_ns = 0;
  std::int64_t middle_ns() const { return earliest_ns + (latest_ns - earliest_ns) / 2; }
};

class ClockAlignment {
 public:
  // All in ns; `host_ns` was read between the other two. A time that no clock shows is ignored.
  void add(std::int64_t sent_ns, std::int64_t received_ns, std::int64_t host_ns);
  // The host's `host_ns` on drun's clock. Nothing before the first round trip, or for a time that no clock shows.
  std::optional<Moment> ours(std::int64_t host_ns) const;

  struct Sample {
    std::int64_t offset_ns = 0;  // host's clock - ours
    std::int64_t half_trip_ns = 0;
    std::int64_t host_ns = 0;
  };
  const std::optional<Sample>& best() const { return best_; }

 private:
  static std::int64_t error_at(const Sample& sample, std::int64_t host_ns);
  std::optional<Sample> best_;
};

}  // namespace drun::control
