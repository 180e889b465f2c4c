#include "cli/check_report/view.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "cli/quantity.h"

namespace drun::cli {

namespace {

using check::Severity;
using check::Verdict;
using netdetect::Direction;
using netdetect::Link;

// Round trips within this difference count as equal, whatever their ratio: scheduling noise is larger.
constexpr double kSameRoundTrip = 100e-6;

Matrix empty_matrix(const check::CheckResult& result) {
  Matrix out;
  out.n_hosts = static_cast<int>(result.hosts.size());
  out.cells.resize(result.hosts.size() * result.hosts.size());
  return out;
}

double best_rate(const Direction& direction) {
  double out = 0;
  for (const auto& rate : direction.rates) out = std::max(out, rate.bits_per_second);
  return out;
}

// Takes the better of two middle values: one bad host among three must not become the norm.
template <typename Better>
double better_median(std::vector<double> values, Better better) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end(), better);
  return *middle;
}

template <typename Better>
void find_median(Matrix& matrix, Better better) {
  std::vector<double> medians;
  for (int host = 0; host < matrix.n_hosts; ++host) {
    std::vector<double> values;
    for (int other = 0; other < matrix.n_hosts; ++other) {
      if (matrix.at(host, other).value > 0) values.push_back(matrix.at(host, other).value);
      if (matrix.at(other, host).value > 0) values.push_back(matrix.at(other, host).value);
    }
    if (!values.empty()) medians.push_back(better_median(std::move(values), better));
  }
  matrix.median = better_median(std::move(medians), better);
}

void put(Cell& cell, double value, const std::string& error) {
  if (value > 0) {
    cell.value = value;
    cell.error.clear();
  } else if (cell.value == 0 && !error.empty()) {
    cell.error = error;
  }
}

void put_better(Cell& cell, double value, const std::string& error) { put(cell, std::max(value, cell.value), error); }

// A pair that can't connect was never measured: its cell gets the error that reachability found.
void put_unreachable(Matrix& matrix, const check::CheckResult& result) {
  const std::size_t n = std::min(result.reach.size(), result.hosts.size());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < std::min(n, result.reach[i].size()); ++j) {
      if (i == j || result.reach[i][j] != 0) continue;
      put(matrix.at(static_cast<int>(i), static_cast<int>(j)), 0, "can't connect");
    }
  }
}

bool valid(const Matrix& matrix, const Link& link) {
  return link.a >= 0 && link.b >= 0 && link.a < matrix.n_hosts && link.b < matrix.n_hosts && link.a != link.b;
}

Heat heat_of(const Cell& cell, double ratio) {
  if (cell.value <= 0) return cell.error.empty() ? Heat::kNone : Heat::kFailed;
  if (ratio < 0.8) return Heat::kBetter;
  return ratio <= 1.25 ? Heat::kNormal : ratio <= 2 ? Heat::kBelow : ratio <= 5 ? Heat::kBad : Heat::kAwful;
}

template <typename HeatOf, typename Badness>
std::vector<Entry> worst(const Matrix& matrix, HeatOf heat, Badness badness, bool symmetric) {
  std::vector<Entry> out;
  for (int from = 0; from < matrix.n_hosts; ++from) {
    for (int to = 0; to < matrix.n_hosts; ++to) {
      const Heat h = heat(matrix, from, to);
      if (from != to && h > Heat::kNormal && !(symmetric && from > to)) out.push_back({from, to, h});
    }
  }
  std::stable_sort(out.begin(), out.end(), [&](const Entry& a, const Entry& b) {
    if ((a.heat == Heat::kFailed) != (b.heat == Heat::kFailed)) return a.heat == Heat::kFailed;
    return badness(matrix.at(a.from, a.to).value) > badness(matrix.at(b.from, b.to).value);
  });
  return out;
}

// "10.0.0.1" and "fd00::1" have no domain.
bool is_address(const std::string& name) {
  return name.find(':') != std::string::npos || name.find_first_not_of("0123456789.") == std::string::npos;
}

std::string count(std::size_t n, const char* what) { return std::to_string(n) + " " + what; }

}  // namespace

bool Matrix::empty() const {
  return std::all_of(cells.begin(), cells.end(), [](const Cell& c) { return c.value <= 0 && c.error.empty(); });
}

bool Matrix::median_counts() const {
  return std::count_if(cells.begin(), cells.end(), [](const Cell& c) { return c.value > 0; }) > 2;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Matrix bandwidth_matrix(const check::CheckResult& result) {
  Matrix out = empty_matrix(result);
  for (const auto* pass : {&result.links.links, &result.links.second_pass}) {
    Matrix best = empty_matrix(result);
    for (const auto& link : *pass) {
      if (!valid(out, link)) continue;
      put_better(best.at(link.a, link.b), best_rate(link.forward), link.forward.error);
      put_better(best.at(link.b, link.a), best_rate(link.backward), link.backward.error);
    }
    for (std::size_t i = 0; i < out.cells.size(); ++i) put(out.cells[i], best.cells[i].value, best.cells[i].error);
  }
  put_unreachable(out, result);
  find_median(out, std::greater<>());
  return out;
}

Matrix latency_matrix(const check::CheckResult& result) {
  Matrix out = empty_matrix(result);
  for (const auto* pass : {&result.links.links, &result.links.second_pass}) {
    for (const auto& link : *pass) {
      if (!valid(out, link)) continue;
      double value = link.n_round_trips > 0 ? link.rtt_median_us * 1e-6 : 0;
      // Load on a host only adds to a round trip: the better of two passes is nearer to the true value.
      const double before = out.at(link.a, link.b).value;
      if (before > 0 && value > 0) value = std::min(value, before);
      const std::string error = link.forward.error.empty() ? link.backward.error : link.forward.error;
      put(out.at(link.a, link.b), value, error);
      put(out.at(link.b, link.a), value, error);
    }
  }
  put_unreachable(out, result);
  find_median(out, std::less<>());
  return out;
}

Heat bandwidth_heat(const Matrix& matrix, int from, int to) {
  const Cell& cell = matrix.at(from, to);
  return heat_of(cell, cell.value > 0 ? matrix.median / cell.value : 0);
}

Heat latency_heat(const Matrix& matrix, int from, int to) {
  const Cell& cell = matrix.at(from, to);
  const bool same = std::abs(cell.value - matrix.median) <= kSameRoundTrip;
  return heat_of(cell, same ? 1 : cell.value / matrix.median);
}

std::vector<Entry> worst_bandwidth(const Matrix& matrix) {
  return worst(
      matrix, bandwidth_heat, [](double value) { return -value; }, false);
}

std::vector<Entry> worst_latency(const Matrix& matrix) {
  return worst(
      matrix, latency_heat, [](double value) { return value; }, true);
}

HostRates host_rates(const Matrix& bandwidth, const Matrix& latency, int host) {
  std::vector<double> sent, received, round_trips;
  for (int other = 0; other < bandwidth.n_hosts; ++other) {
    if (bandwidth.at(host, other).value > 0) sent.push_back(bandwidth.at(host, other).value);
    if (bandwidth.at(other, host).value > 0) received.push_back(bandwidth.at(other, host).value);
    if (latency.at(host, other).value > 0) round_trips.push_back(latency.at(host, other).value);
  }
  return {median_of(std::move(sent)), median_of(std::move(received)), median_of(std::move(round_trips))};
}

const netdetect::Interface* chosen_interface(const check::CheckedHost& host) {
  if (!host.choice) return nullptr;
  for (const auto& interface : host.interfaces) {
    if (interface.name == host.choice->interface) return &interface;
  }
  return nullptr;
}

double line_rate(const check::CheckedHost& host) {
  const auto* interface = chosen_interface(host);
  return interface == nullptr || interface->speed_mbps <= 0 ? 0 : interface->speed_mbps * 1e6;
}

std::vector<std::string> short_names(const check::CheckResult& result) {
  std::vector<std::string> full, cut;
  for (const auto& host : result.hosts) {
    full.push_back(host.name);
    cut.push_back(is_address(host.name) ? host.name : host.name.substr(0, host.name.find('.')));
  }
  const std::set<std::string> different(cut.begin(), cut.end());
  return different.size() == cut.size() ? cut : full;
}

std::string verdict_text(Verdict verdict) {
  return verdict == Verdict::kReady ? "ready" : verdict == Verdict::kWarnings ? "ready with warnings" : "not ready";
}

std::string severity_text(Severity severity) {
  return severity == Severity::kFailure ? "failure" : severity == Severity::kWarning ? "warning" : "note";
}

std::string evidence_head(const check::Finding& finding) {
  return finding.subject.empty() ? "the cluster" : finding.subject;
}

std::string hosts_sentence(const check::CheckResult& result) {
  std::size_t n[3] = {0, 0, 0};
  for (const auto& host : result.hosts) ++n[static_cast<std::size_t>(host.verdict)];
  std::vector<std::string> parts;
  if (n[0] > 0) parts.push_back(count(n[0], "ready"));
  if (n[1] > 0) parts.push_back(count(n[1], "ready with warnings"));
  if (n[2] > 0) parts.push_back(count(n[2], "not ready"));
  return plural(result.hosts.size(), "host") + (parts.empty() ? "" : ": " + join(parts, ", "));
}

std::string findings_sentence(const check::CheckResult& result) {
  std::size_t n[3] = {0, 0, 0};
  for (const auto& finding : result.findings) ++n[static_cast<std::size_t>(finding.severity)];
  std::vector<std::string> parts;
  if (n[2] > 0) parts.push_back(plural(n[2], "failure"));
  if (n[1] > 0) parts.push_back(plural(n[1], "warning"));
  if (n[0] > 0) parts.push_back(plural(n[0], "note"));
  return parts.empty() ? "nothing wrong was found" : join(parts, ", ");
}

std::string efficiency_sentence(const check::CheckResult& result) {
  return result.predicted ? check::efficiency_text(*result.predicted) : "";
}

std::string effort_sentence(const check::CheckResult& result) {
  std::string out = "checked " + plural(result.hosts.size(), "host") + " in " + time_text(result.seconds);
  if (!result.links.links.empty()) out += ": " + plural(result.links.links.size(), "link");
  if (!result.links.second_pass.empty())
    out += ", " + std::to_string(result.links.second_pass.size()) + " measured again";
  return out;
}

}  // namespace drun::cli
