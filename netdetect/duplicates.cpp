#include "netdetect/duplicates.h"

#include <algorithm>
#include <map>
#include <string>

#include "netdetect/network.h"

namespace drun::netdetect {

bool is_internal(const Interface& nic) {
  return nic.kind == "bridge" || nic.kind == "virtual" || nic.kind == "tun" || nic.kind == "wireguard";
}

std::vector<SharedAddress> find_shared_addresses(const std::vector<HostInterfaces>& hosts,
                                                 const std::vector<int>& namespaces, const std::vector<int>& gone) {
  std::map<std::string, SharedAddress> by_bytes;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const int host = static_cast<int>(h);
    if (std::find(gone.begin(), gone.end(), host) != gone.end()) continue;
    for (const auto& nic : hosts[h].interfaces) {
      for (const auto& address : nic.addresses) {
        if (!nic.up || nic.loopback || address.link_local || is_loopback(address)) continue;
        SharedAddress& one = by_bytes[address.bytes];
        if (one.owners.empty()) one.address = address;
        const bool known = std::any_of(one.owners.begin(), one.owners.end(), [&](const auto& owner) {
          return namespaces[static_cast<std::size_t>(owner.host)] == namespaces[h];
        });
        if (!known) one.owners.push_back({host, &nic});
      }
    }
  }
  std::vector<SharedAddress> out;
  for (auto& [bytes, one] : by_bytes) {
    if (one.owners.size() < 2) continue;
    const bool internal =
        std::any_of(one.owners.begin(), one.owners.end(), [](const auto& owner) { return is_internal(*owner.nic); });
    one.in_one_network = !internal && std::any_of(by_bytes.begin(), by_bytes.end(), [&](const auto& other) {
      const SharedAddress& single = other.second;
      return single.owners.size() == 1 && !is_internal(*single.owners.front().nic) &&
             in_network(network_of(one.address), single.address);
    });
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace drun::netdetect
