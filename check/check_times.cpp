#include "check/check_times.h"

#include <algorithm>

namespace drun::check {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTool{8000}, kQuickTool{2500};

// Minimum time for measuring links, however long the steps before it took.
milliseconds min_time(CheckDepth depth) {
  return depth == CheckDepth::kQuick ? check_time(depth) / 3 : check_time(depth) * 4 / 5;
}

}  // namespace

milliseconds check_time(CheckDepth depth) {
  switch (depth) {
    case CheckDepth::kQuick:
      return milliseconds(4500);  // 5 s including the end of the agents
    case CheckDepth::kFull:
      return milliseconds(60000);
    case CheckDepth::kDefault:
      break;
  }
  return milliseconds(15000);
}

launcher::LinkTimes link_times(CheckDepth depth) {
  launcher::LinkTimes times = launcher::quick_link_times();
  switch (depth) {
    case CheckDepth::kQuick:
      break;
    case CheckDepth::kDefault:
      times.n_round_trips = 100;
      times.round_trips = milliseconds(500);
      times.bandwidth_min = milliseconds(150);
      times.bandwidth_max = milliseconds(500);
      times.four_streams = true;
      break;
    case CheckDepth::kFull:
      times.n_round_trips = 1000;
      times.round_trips = milliseconds(2000);
      times.bandwidth_min = milliseconds(300);
      times.bandwidth_max = milliseconds(1000);
      times.four_streams = true;
      break;
  }
  return times;
}

milliseconds tool_time(CheckDepth depth) { return depth == CheckDepth::kQuick ? kQuickTool : kTool; }

LinkSchedule link_schedule(CheckDepth depth, Deadline now, Deadline deadline, Deadline latest) {
  LinkSchedule out;
  out.end = std::min(latest, std::max(deadline, now + min_time(depth)));
  const auto whole = out.end - now;
  out.speeds = out.end - whole * 7 / 10;
  out.first_pass = out.end - whole * 3 / 10;
  out.ring = out.end - whole * 2 / 10;
  out.second_pass = depth == CheckDepth::kQuick ? out.end : std::min(latest, out.end + check_time(depth));
  return out;
}

}  // namespace drun::check
