// Wording that errors, notes and findings share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/wording.h"
#include "netdetect/probe_target.h"

namespace drun::netdetect {

inline constexpr std::size_t kHostsShown = 8;

// The outcome of a probe: "timed out", "unreachable (No route to host)".
inline std::string outcome_words(const ProbeResult& result) {
  const std::string detail = result.detail.empty() ? "" : " (" + result.detail + ")";
  switch (result.outcome) {
    case ProbeOutcome::kReached:
      return "reached";
    case ProbeOutcome::kRefused:
      return "refused";
    case ProbeOutcome::kTimedOut:
      return "timed out";
    case ProbeOutcome::kUnreachable:
      return "unreachable" + detail;
    case ProbeOutcome::kHostUnreachable:
      return "host unreachable" + detail;
    case ProbeOutcome::kWrongPeer:
      return "answered by something else" + detail;
    case ProbeOutcome::kError:
      break;
  }
  return "failed" + detail;
}

}  // namespace drun::netdetect
