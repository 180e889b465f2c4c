#include "check/chosen_networks.h"

#include <algorithm>

#include "netdetect/network.h"

namespace drun::check {

std::vector<ChosenNetwork> chosen_networks(const CheckResult& result) {
  std::vector<ChosenNetwork> out;
  if (result.hosts.size() < 2) return out;
  for (const auto& host : result.hosts) {
    if (!host.choice || netdetect::is_loopback(host.choice->address)) return {};
    const std::string network = netdetect::network_text(host.choice->address);
    auto at = std::find_if(out.begin(), out.end(), [&](const ChosenNetwork& one) { return one.network == network; });
    if (at == out.end()) at = out.insert(out.end(), {network, {}});
    at->hosts_by_nic[host.choice->interface].push_back(host.name);
  }
  return out;
}

}  // namespace drun::check
