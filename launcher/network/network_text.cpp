#include "launcher/network/network_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "netdetect/network.h"

namespace drun::launcher {
namespace {

constexpr std::size_t kMaxNames = 3, kMaxGroups = 4;

std::string hosts_text(const std::vector<std::string>& names, std::size_t n_all) {
  if (names.size() == n_all && n_all > 2) return "all " + plural(n_all, "host");
  if (names.size() > kMaxNames) return plural(names.size(), "host");
  std::string out = names[0];
  for (std::size_t i = 1; i < names.size(); ++i) out += (i + 1 == names.size() ? " and " : ", ") + names[i];
  return out;
}

}  // namespace

std::string network_in_short(const std::vector<std::string>& names, const std::vector<netdetect::HostChoice>& hosts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_interface;  // in order of appearance
  std::set<std::string> networks, addresses;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].interface.empty() || netdetect::is_loopback(hosts[i].address)) return "";
    networks.insert(netdetect::network_text(hosts[i].address));
    addresses.insert(hosts[i].address.text());
    auto group = std::find_if(by_interface.begin(), by_interface.end(),
                              [&](const auto& g) { return g.first == hosts[i].interface; });
    if (group == by_interface.end()) group = by_interface.insert(group, {hosts[i].interface, {}});
    group->second.push_back(names[i]);
  }
  if (addresses.size() < 2) return "";
  std::string out =
      networks.size() == 1 ? "network " + *networks.begin() + ": " : plural(networks.size(), "network") + ": ";
  std::size_t n_left = hosts.size();
  for (std::size_t i = 0; i < by_interface.size(); ++i) {
    const auto& [interface, group] = by_interface[i];
    if (i > 0) out += ", ";
    if (i + 1 == kMaxGroups && by_interface.size() > kMaxGroups) {
      return out + std::to_string(by_interface.size() - i) + " others on " + plural(n_left, "host");
    }
    out += interface + " on " + hosts_text(group, hosts.size());
    n_left -= group.size();
  }
  return out;
}

}  // namespace drun::launcher
