// The cost model's texts for reports.
#include <string>

#include "base/text.h"
#include "base/units.h"
#include "check/cost_model.h"
#include "netdetect/wording.h"

namespace drun::check {
std::string prediction_text(const Prediction& prediction, const std::vector<std::string>& names,
                            const std::string& pace) {
  if (prediction.seconds <= 0) return "";
  const auto name = [&](int host) { return names[static_cast<std::size_t>(host)]; };
  std::string out = "an allreduce of " + size_text(prediction.n_bytes) + " takes about " +
                    time_text(prediction.seconds) + " on these " +
                    plural(static_cast<std::size_t>(prediction.n_hosts), "host");
  if (!pace.empty()) out += "; " + pace;
  if (!prediction.without.empty()) {
    std::vector<std::string> hosts;
    for (const int host : prediction.without) hosts.push_back(name(host));
    out += "; without " + list_some(hosts, netdetect::kHostsShown) + ": " + time_text(prediction.seconds_without);
  }
  return out;
}

std::string efficiency_text(const Prediction& prediction) {
  if (prediction.step_seconds <= 0) return "";
  const std::string after = share_text(prediction.efficiency), during = share_text(prediction.efficiency_overlapped);
  return "with steps of " + time_text(prediction.step_seconds) + ": " + after + " of the ideal speed, " +
         (after == during ? "also" : during) + " if it all happens during the computation";
}

}  // namespace drun::check
