#include "netdetect/nic_speed.h"

#include <algorithm>
#include <map>
#include <set>

#include "netdetect/duplicates.h"
#include "netdetect/link_stats.h"
#include "netdetect/network.h"
#include "netdetect/reachability_votes.h"

namespace drun::netdetect {

namespace {

// Makes one network of all subnets in which a host is alone, for the NICs of each name. Routers join such subnets.
void join_lone_networks(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                        std::map<std::string, NetworkToMeasure>& networks) {
  std::map<std::string, NetworkToMeasure> joined;
  for (auto it = networks.begin(); it != networks.end();) {
    if (it->second.candidates.size() > 1) {
      ++it;
      continue;
    }
    const std::size_t c = it->second.candidates.front();
    const auto& nics = hosts[static_cast<std::size_t>(candidates.tried[c].host)].interfaces;
    const Interface& nic = nics[static_cast<std::size_t>(candidates.tried[c].interface)];
    it = networks.erase(it);
    if (is_internal(nic)) continue;  // its packets go over another NIC's cable
    auto& one = joined["subnets of " + nic.name];
    one.is_joined = true;
    const auto same_host = [&](std::size_t other) { return candidates.tried[other].host == candidates.tried[c].host; };
    if (std::none_of(one.candidates.begin(), one.candidates.end(), same_host)) one.candidates.push_back(c);
  }
  for (auto& [name, network] : joined) {
    network.network = name;
    std::sort(network.candidates.begin(), network.candidates.end());
    networks[name] = std::move(network);
  }
}

}  // namespace

std::vector<NetworkToMeasure> networks_to_measure(const std::vector<HostInterfaces>& hosts,
                                                  const Candidates& candidates,
                                                  const std::vector<AttemptResult>& results, const Choice& choice) {
  const ReachabilityVotes tally = tally_results(hosts, candidates, results);
  std::map<std::string, NetworkToMeasure> networks;
  std::vector<std::set<int>> interfaces(hosts.size());
  std::vector<bool> unknown(hosts.size(), false);
  for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
    const Candidate& candidate = candidates.tried[c];
    const auto host = static_cast<std::size_t>(candidate.host);
    if (!tally.candidates[c].good || host >= choice.hosts.size() || choice.hosts[host].interface.empty()) continue;
    if (candidate.address.family != choice.hosts[host].address.family) continue;
    interfaces[host].insert(candidate.interface);
    if (hosts[host].interfaces[static_cast<std::size_t>(candidate.interface)].speed_mbps == 0) unknown[host] = true;
    const std::string name = network_text(candidate.address);
    auto& network = networks[name];
    network.network = name;
    const bool again =
        !network.candidates.empty() && candidates.tried[network.candidates.back()].host == candidate.host;
    if (!again) network.candidates.push_back(c);
  }
  bool needed = false;
  for (std::size_t h = 0; h < hosts.size(); ++h) needed = needed || (unknown[h] && interfaces[h].size() > 1);
  std::vector<NetworkToMeasure> out;
  if (!needed) return out;
  join_lone_networks(hosts, candidates, networks);
  for (auto& [name, network] : networks) {
    if (network.candidates.size() > 1) out.push_back(std::move(network));
  }
  if (out.size() < 2) out.clear();  // nothing to compare with
  return out;
}

std::vector<HostPair> pairs_to_measure(const NetworkToMeasure& network, const std::vector<HostInterfaces>& hosts,
                                       const Candidates& candidates) {
  constexpr std::size_t kMaxPairs = 2;
  const auto machine = [&](int host) {
    const std::string& name = hosts[static_cast<std::size_t>(host)].net_namespace;
    return name.substr(0, name.find('|'));
  };
  const auto name_space = [&](int host) { return candidates.namespaces[static_cast<std::size_t>(host)]; };
  std::vector<int> free;
  for (const std::size_t c : network.candidates) free.push_back(candidates.tried[c].host);
  std::vector<HostPair> out;
  for (const bool other_machine : {true, false}) {
    for (std::size_t i = 0; i < free.size() && out.size() < kMaxPairs;) {
      const auto peer = std::find_if(free.begin() + static_cast<std::ptrdiff_t>(i) + 1, free.end(), [&](int host) {
        return other_machine ? machine(host) != machine(free[i]) : name_space(host) != name_space(free[i]);
      });
      if (peer == free.end()) {
        ++i;
        continue;
      }
      out.emplace_back(free[i], *peer);
      free.erase(peer);
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return out;
}

void set_speeds(const std::vector<NetworkToMeasure>& networks, const std::vector<int>& mbps, Candidates& candidates) {
  std::map<std::pair<int, int>, int> of_interface;  // host, interface
  for (std::size_t n = 0; n < networks.size(); ++n) {
    for (const std::size_t c : networks[n].candidates) {
      int& speed = of_interface[{candidates.tried[c].host, candidates.tried[c].interface}];
      speed = std::max(speed, mbps[n]);
    }
  }
  for (auto& candidate : candidates.tried) {
    const auto known = of_interface.find({candidate.host, candidate.interface});
    if (known != of_interface.end()) candidate.measured_mbps = known->second;
  }
}

int network_mbps(const std::vector<Link>& links) {
  std::vector<double> rates;
  for (const auto& [pair, edge] : edges_of(links)) {
    if (edge.bits_per_second > 0) rates.push_back(edge.bits_per_second);
  }
  return static_cast<int>(median(std::move(rates)) / 1e6);
}

}  // namespace drun::netdetect
