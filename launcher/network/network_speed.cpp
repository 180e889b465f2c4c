#include "launcher/network/network_speed.h"

#include <algorithm>
#include <utility>

#include "netdetect/nic_speed.h"

namespace drun::launcher {

Task<bool> choose_by_speed(NetworkProbe& probe, LinkCheck& links, std::vector<int> gone, std::chrono::milliseconds each,
                           Deadline deadline) {
  auto& candidates = probe.candidates;
  const auto is_gone = [&gone](int host) { return std::find(gone.begin(), gone.end(), host) != gone.end(); };
  auto networks = netdetect::networks_to_measure(probe.inventories, candidates, probe.results, probe.most.choice);
  for (auto& network : networks) {
    std::erase_if(network.candidates, [&](std::size_t c) { return is_gone(candidates.tried[c].host); });
  }
  std::erase_if(networks, [&](const auto& network) {
    return netdetect::pairs_to_measure(network, probe.inventories, candidates).empty();
  });
  if (networks.size() < 2) co_return true;  // nothing to compare with
  co_await links.listen(deadline);
  std::vector<int> speeds;
  for (const auto& network : networks) {
    netdetect::Choice choice = probe.most.choice;
    choice.reach.clear();  // it belongs to other addresses; these can connect
    for (const std::size_t c : network.candidates) {
      choice.hosts[static_cast<std::size_t>(candidates.tried[c].host)].address = candidates.tried[c].address;
    }
    links.use(std::move(choice));
    auto pairs = netdetect::pairs_to_measure(network, probe.inventories, candidates);
    const auto measured = co_await links.rates(std::move(pairs), each, deadline);
    if (measured.empty()) co_return false;
    // A network that was tried but moved nothing counts as the slowest. Between subnets another route may be to blame,
    // as these addresses may have been reached from others only.
    speeds.push_back(std::max(network.is_joined ? 0 : 1, netdetect::network_mbps(measured)));
  }
  netdetect::set_speeds(networks, speeds, candidates);
  probe.most = netdetect::choose_subset(probe.inventories, candidates, probe.results, gone);
  co_return true;
}

}  // namespace drun::launcher
