// The findings of a check and its prediction, from what was collected and measured. Pure. docs/check.md, steps 6 and
// 7.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/baseline.h"
#include "check/check_options.h"
#include "check/check_result.h"
#include "launcher/network/network.h"

namespace drun::check {

// Facts about the hosts that the result does not have. Vectors are by host; pointers are valid during the call.
struct Observations {
  std::vector<std::string> machines;                          // machines_of()
  std::vector<std::optional<std::int64_t>> clock_offsets_ms;  // wall_clock_offset_ms()
  std::vector<int> gone;                                      // gone_hosts(): reach_findings() leaves them out
  const launcher::NetworkProbe* network = nullptr;            // null: the network was not probed
  const Baseline* baseline = nullptr;                         // null: none was given
};

// Adds findings, notes and the prediction to the result. The verdicts follow (set_verdicts()), because the caller may
// add findings.
void judge(const Observations& seen, const CheckOptions& options, CheckResult& result);

}  // namespace drun::check
