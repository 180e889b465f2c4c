// Values that the three reports of `drun check` derive from its result, so that the reports agree. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/check_result.h"

namespace drun::cli {

// A figure's distance from the median of its kind, as a ratio.
enum class Heat : std::uint8_t {
  kNone,    // not measured
  kBetter,  // by more than a quarter
  kNormal,  // up to 1.25 times as bad
  kBelow,   // up to 2
  kBad,     // up to 5
  kAwful,   // beyond
  kFailed,  // tried, but did not work
};

struct Cell {
  double value = 0;   // 0: not measured
  std::string error;  // why it failed; "" = measured, or not tried
};

// Values between hosts, from the row's host to the column's.
struct Matrix {
  int n_hosts = 0;
  std::vector<Cell> cells;  // by row
  double median = 0;        // of the hosts' medians; 0: nothing was measured

  const Cell& at(int from, int to) const { return cells[index(from, to)]; }
  Cell& at(int from, int to) { return cells[index(from, to)]; }
  bool empty() const;  // nothing was measured and nothing failed
  // True if the median is worth printing: for one link's two directions it is the better one.
  bool median_counts() const;

 private:
  std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(n_hosts) + static_cast<std::size_t>(to);
  }
};

// Bits per second: the maximum over all numbers of streams. Measurements of the second pass replace those of the
// first; within a pass the best counts, as for the findings.
Matrix bandwidth_matrix(const check::CheckResult& result);
// Median round trips in seconds, the same in both directions; the better of two passes counts.
Matrix latency_matrix(const check::CheckResult& result);

Heat bandwidth_heat(const Matrix& matrix, int from, int to);
Heat latency_heat(const Matrix& matrix, int from, int to);

// All cells worse than kNormal, worst first; a pair's round trip appears once.
struct Entry {
  int from = 0, to = 0;
  Heat heat = Heat::kNone;
};
std::vector<Entry> worst_bandwidth(const Matrix& matrix);
std::vector<Entry> worst_latency(const Matrix& matrix);

// The medians over a host's links; 0: nothing was measured.
struct HostRates {
  double sent = 0, received = 0, round_trip = 0;
};
HostRates host_rates(const Matrix& bandwidth, const Matrix& latency, int host);

double median_of(std::vector<double> values);  // 0 if empty

// The chosen interface; null if none was chosen.
const netdetect::Interface* chosen_interface(const check::CheckedHost& host);
// Bits per second of the chosen interface, as its driver reports; 0: unknown.
double line_rate(const check::CheckedHost& host);

// Names short enough for a matrix, all different: a suffix common to all (".cluster.lan") is left out.
std::vector<std::string> short_names(const check::CheckResult& result);

std::string verdict_text(check::Verdict verdict);     // "ready with warnings"
std::string severity_text(check::Severity severity);  // "warning"
// Heading of a finding's own evidence, which stands beside figures of others.
std::string evidence_head(const check::Finding& finding);
inline constexpr const char* kComparisonHead = "others, measured the same way";
// "3 hosts ready, 1 ready with warnings, 2 not ready".
std::string hosts_sentence(const check::CheckResult& result);
// "1 failure, 2 warnings"; "nothing wrong was found".
std::string findings_sentence(const check::CheckResult& result);
// Like check::efficiency_text(); "" = no step time was given.
std::string efficiency_sentence(const check::CheckResult& result);
// "checked 4 hosts in 6.2 s: 6 links, 8 measurements of a second pass".
std::string effort_sentence(const check::CheckResult& result);

}  // namespace drun::cli
