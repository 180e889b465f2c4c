// A cluster's own normal: what its links did when all was well, by host names, in a file (--save-baseline, --baseline).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "check/finding.h"
#include "netdetect/link.h"

namespace drun::check {

struct BaselineLink {
  double bits_per_second = 0;  // 0: not measured
  double rtt_us = 0;
};

struct Baseline {
  std::string saved;                                                  // "2026-11-22T04:57:02Z"
  std::map<std::pair<std::string, std::string>, BaselineLink> links;  // from, to
};

// Pure. The best of both passes. Hosts that are called the same (as the user wrote them) are told apart by nothing: the
// better link counts.
Baseline make_baseline(const std::vector<std::string>& names, const netdetect::LinkReport& report,
                       std::chrono::system_clock::time_point now);
std::string to_json(const Baseline& baseline);
// kUsage: what is wrong with it, and where; no subject.
Result<Baseline> parse_baseline(const std::string& json);

// The whole file or nothing: written beside it, then renamed. Errors: kUsage, the subject is the path.
Result<void> write_baseline(const std::string& path, const Baseline& baseline);
Result<Baseline> read_baseline(const std::string& path);

// Pairs that the first pass found slower than their normal: for pairs_to_repeat().
std::vector<std::pair<int, int>> pairs_below_baseline(const std::vector<std::string>& names,
                                                      const std::vector<netdetect::Link>& first_pass,
                                                      const Baseline& baseline);
// baseline-slower, baseline-latency for hosts, pairs, or all; baseline-hosts: a note on those that are only in one.
// A host that is not here now is none of `names`; one that was not measured has no links in `report`.
std::vector<Finding> baseline_findings(const std::vector<std::string>& names, const netdetect::LinkReport& report,
                                       const Baseline& baseline);

}  // namespace drun::check
