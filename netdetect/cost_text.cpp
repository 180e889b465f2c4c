// What people read of the cost model.
#include <cmath>
#include <string>

#include "base/text.h"
#include "netdetect/cost_model.h"
#include "netdetect/units.h"
#include "netdetect/wording.h"

namespace drun::netdetect {
std::string prediction_text(const Prediction& prediction, const std::vector<std::string>& names) {
  if (prediction.seconds <= 0) return "";
  const auto name = [&](int host) { return names[static_cast<std::size_t>(host)]; };
  std::string out = "an allreduce of " + size_text(prediction.n_bytes) + " takes about " +
                    time_text(prediction.seconds) + " on these " +
                    plural(static_cast<std::size_t>(prediction.n_hosts), "host");
  if (prediction.slowest_from >= 0) {
    out += "; the slowest link, " + name(prediction.slowest_from) + " to " + name(prediction.slowest_to) + " at " +
           rate_text(prediction.slowest_bits_per_second) + ", sets it";
  }
  if (!prediction.without.empty()) {
    std::vector<std::string> hosts;
    for (const int host : prediction.without) hosts.push_back(name(host));
    out += "; without " + list_some(hosts, kHostsShown) + ": " + time_text(prediction.seconds_without);
  }
  return out;
}

std::string efficiency_text(const Prediction& prediction) {
  if (prediction.step_seconds <= 0) return "";
  const auto percent = [](double share) { return std::to_string(std::lround(100 * share)) + " %"; };
  return "with steps of " + time_text(prediction.step_seconds) + ": " + percent(prediction.efficiency) +
         " of the ideal speed, " + percent(prediction.efficiency_overlapped) +
         " if it all happens during the computation";
}

}  // namespace drun::netdetect
