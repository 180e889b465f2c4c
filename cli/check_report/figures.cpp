#include "cli/check_report/figures.h"

#include <algorithm>
#include <vector>

#include "check/cost_model.h"

namespace drun::cli {

namespace {

using check::Prediction;

struct Range {
  double least = 0, median = 0;  // 0: no values
};

Range range_of(const Matrix& matrix) {
  Range out;
  for (const auto& cell : matrix.cells) {
    if (cell.value > 0) out.least = out.least == 0 ? cell.value : std::min(out.least, cell.value);
  }
  out.median = matrix.median;
  return out;
}

template <typename Value>
Range range_of(const check::CheckResult& result, Value value) {
  std::vector<double> values;
  for (const auto& host : result.hosts) {
    if (const double of_host = value(host); of_host > 0) values.push_back(of_host);
  }
  if (values.empty()) return {};
  return {*std::min_element(values.begin(), values.end()), median_of(values)};
}

// If adding up in the hosts' memory takes longer than the network, no link sets the pace.
bool network_sets_pace(const Prediction& prediction) {
  constexpr double kShare = 0.6;
  return prediction.network_seconds > kShare * prediction.seconds;
}

// Describes the slowest link with figures of the matrix: the prediction's own figures are for all hosts at once.
std::string pace_words(const check::CheckResult& result, const Figures& figures) {
  const Prediction& p = *result.predicted;
  if (p.slowest_from < 0 || p.slowest_to < 0 || !network_sets_pace(p)) return "";
  const auto name = [&](int host) { return result.hosts[static_cast<std::size_t>(host)].name; };
  int from = p.slowest_from, to = p.slowest_to;
  if (p.n_hosts == 2) {
    constexpr double kSlower = 1.25;
    if (figures.bandwidth.at(from, to).value > figures.bandwidth.at(to, from).value) std::swap(from, to);
    const double slower = figures.bandwidth.at(from, to).value, faster = figures.bandwidth.at(to, from).value;
    if (slower <= 0 || slower * kSlower > faster) return "";
    return "the slower direction, " + name(from) + " to " + name(to) + " at " + figures.rate.text(slower) +
           ", sets the pace";
  }
  const std::string link = name(from) + " to " + name(to);
  const double rate = figures.bandwidth.at(from, to).value;
  if (rate <= 0) return "the link " + link + " sets the pace";
  if (bandwidth_heat(figures.bandwidth, from, to) <= Heat::kNormal) {
    return "with all hosts at once the link " + link + " sets the pace";
  }
  return "the link " + link + ", at " + figures.rate.text(rate) + ", sets the pace";
}

}  // namespace

Figures::Figures(const check::CheckResult& result)
    : bandwidth(bandwidth_matrix(result)), latency(latency_matrix(result)) {
  const Range rates = bandwidth.median > 0 ? range_of(bandwidth) : range_of(result, line_rate);
  const Range times = range_of(latency);
  const Range logins = range_of(result, [](const auto& host) { return host.connect_seconds; });
  rate = rate_unit(rates.median, rates.least);
  time = time_unit(times.median, times.least);
  login = time_unit(logins.median, logins.least);
}

std::string prediction_sentence(const check::CheckResult& result, const Figures& figures) {
  if (!result.predicted) return "";
  std::vector<std::string> names;
  for (const auto& host : result.hosts) names.push_back(host.name);
  return check::prediction_text(*result.predicted, names, pace_words(result, figures));
}

}  // namespace drun::cli
