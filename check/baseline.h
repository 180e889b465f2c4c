// The baseline of a cluster: measurements of its links on a good day, by host name, in a file (--save-baseline,
// --baseline).
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

// Takes the best of both passes. Hosts with the same name (as the user wrote it) are not distinguished: the better
// link counts. Pure.
Baseline make_baseline(const std::vector<std::string>& names, const netdetect::LinkReport& report,
                       std::chrono::system_clock::time_point now);
std::string to_json(const Baseline& baseline);
// Fails with kUsage, which says what is wrong and where, without a subject.
Result<Baseline> parse_baseline(const std::string& json);

// Writes the file atomically, by a rename. Errors are kUsage; the subject is the path.
Result<void> write_baseline(const std::string& path, const Baseline& baseline);
Result<Baseline> read_baseline(const std::string& path);

// Pairs that the first pass found worse than their baseline, as input to pairs_to_repeat().
std::vector<std::pair<int, int>> pairs_below_baseline(const std::vector<std::string>& names,
                                                      const std::vector<netdetect::Link>& first_pass,
                                                      const Baseline& baseline);
// Findings baseline-slower and baseline-latency, on hosts, pairs, or all hosts, and baseline-hosts, a note on hosts
// that are only in the baseline or only in `names`. A host that was not measured has no links in `report`.
std::vector<Finding> baseline_findings(const std::vector<std::string>& names, const netdetect::LinkReport& report,
                                       const Baseline& baseline);

}  // namespace drun::check
