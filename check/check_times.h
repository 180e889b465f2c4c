// The time limits of the steps of a check, by its depth. Pure: the caller passes the time in. docs/check.md, Time.
#pragma once

#include <chrono>

#include "base/clock.h"
#include "check/check_result.h"
#include "launcher/network/link_times.h"

namespace drun::check {

// Duration of a check of this depth with up to 32 hosts, including connecting to them.
std::chrono::milliseconds check_time(CheckDepth depth);

// Measurements of each pair at this depth.
launcher::LinkTimes link_times(CheckDepth depth);

// Timeout of a program on a host, above all nvidia-smi.
std::chrono::milliseconds tool_time(CheckDepth depth);

// The deadlines of the measurements of links, in their order.
struct LinkSchedule {
  Deadline speeds;       // of networks, if the choice between them depends on it
  Deadline first_pass;   // of all pairs
  Deadline ring;         // all hosts at once
  Deadline end;          // of these three
  Deadline second_pass;  // of the pairs that look bad, one at a time
};

// The schedule of measurements that begin at `now`. `deadline` is the end of a check of this depth, `latest` that of
// --timeout. The measurements get a part of check_time() even if the steps before them took too long; the second pass,
// which identifies what the first one found, may take as long again, except in a quick check.
LinkSchedule link_schedule(CheckDepth depth, Deadline now, Deadline deadline, Deadline latest);

}  // namespace drun::check
