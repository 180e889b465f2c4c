#include "launcher/network/network_speed.h"

#include <algorithm>
#include <utility>

#include "netdetect/nic_speed.h"

namespace drun::launcher {

Task<bool> choose_by_speed(NetworkProbe& probe, LinkCheck& links, std::vector<int> gone, std::chrono::milliseconds each,
                           Deadline deadline) {
  auto& candidates = probe.candidates;
  const auto is_gone = [&gone](int host) { return std::find(gone.begin(), gone.end(), host) != gone.end(); };
  std::vector<netdetect::NetworkToMeasure> networks;
  std::vector<std::vector<netdetect::HostPair>> pairs;  // by network
  for (auto& network :
       netdetect::networks_to_measure(probe.inventories, candidates, probe.results, probe.most.choice)) {
    std::erase_if(network.candidates, [&](std::size_t c) { return is_gone(candidates.tried[c].host); });
    auto of_network = netdetect::pairs_to_measure(network, probe.inventories, candidates);
    if (of_network.empty()) continue;
    networks.push_back(std::move(network));
    pairs.push_back(std::move(of_network));
  }
  if (networks.size() < 2) co_return true;  // nothing to compare with
  co_await links.listen(deadline);
  std::vector<int> speeds;
  for (std::size_t n = 0; n < networks.size(); ++n) {
    netdetect::Choice choice = probe.most.choice;
    choice.reach.clear();  // it belongs to other addresses
    for (const std::size_t c : networks[n].candidates) {
      choice.hosts[static_cast<std::size_t>(candidates.tried[c].host)].address = candidates.tried[c].address;
    }
    links.use(std::move(choice));
    const auto measured = co_await links.rates(std::move(pairs[n]), each, deadline);
    if (measured.empty()) co_return false;
    // A network that was tried but moved nothing counts as the slowest. The speed of joined subnets is unknown then:
    // packets between them may take another route than that on which these addresses were reached.
    speeds.push_back(std::max(networks[n].is_joined ? 0 : 1, netdetect::network_mbps(measured)));
  }
  netdetect::set_speeds(networks, speeds, candidates);
  probe.most = netdetect::choose_subset(probe.inventories, candidates, probe.results, gone);
  co_return true;
}

}  // namespace drun::launcher
