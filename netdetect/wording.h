// Lists of names as people read them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "netdetect/probe_target.h"

namespace drun::netdetect {

inline constexpr std::size_t kHostsShown = 8;

// "a", "a and b", "a, b and c"; beyond `limit`: "a, b and 52 more".
inline std::string list_some(const std::vector<std::string>& names, std::size_t limit) {
  if (names.empty()) return "none";
  const bool cut = names.size() > limit + 1;  // "and 1 more" is no shorter than the name
  std::vector<std::string> shown(names.begin(), cut ? names.begin() + static_cast<std::ptrdiff_t>(limit) : names.end());
  if (cut) shown.push_back(std::to_string(names.size() - limit) + " more");
  if (shown.size() == 1) return shown.front();
  const std::string last = std::move(shown.back());
  shown.pop_back();
  return join(shown, ", ") + " and " + last;
}

// "timed out", "unreachable (No route to host)": what came back.
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
    case ProbeOutcome::kWrongPeer:
      return "answered by something else" + detail;
    case ProbeOutcome::kError:
      break;
  }
  return "failed" + detail;
}

}  // namespace drun::netdetect
