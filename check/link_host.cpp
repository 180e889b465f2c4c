#include "check/link_host.h"

#include <algorithm>
#include <set>
#include <utility>

namespace drun::check {

bool on_one_machine(const std::vector<LinkHost>& hosts) {
  std::set<std::string> machines;
  for (const auto& host : hosts) {
    if (!host.interface.empty()) machines.insert(host.machine);
  }
  return machines.size() == 1 && !machines.begin()->empty();
}

std::vector<netdetect::Link> between_machines(const std::vector<LinkHost>& hosts,
                                              const std::vector<netdetect::Link>& links) {
  if (on_one_machine(hosts)) return links;
  std::vector<netdetect::Link> out;
  for (const netdetect::Link& link : links) {
    const auto& a = hosts[static_cast<std::size_t>(link.a)].machine;
    if (a.empty() || a != hosts[static_cast<std::size_t>(link.b)].machine) out.push_back(link);
  }
  return out;
}

LinkHost link_host(std::string name, std::string machine, const std::optional<netdetect::HostChoice>& choice,
                   const std::vector<netdetect::Interface>& interfaces) {
  LinkHost out;
  out.name = std::move(name);
  out.machine = std::move(machine);
  if (!choice) return out;
  out.interface = choice->interface;
  const auto at = std::find_if(interfaces.begin(), interfaces.end(),
                               [&](const netdetect::Interface& i) { return i.name == choice->interface; });
  if (at == interfaces.end()) return out;
  out.kind = at->kind;
  out.mtu = at->mtu;
  out.speed_mbps = at->speed_mbps;
  return out;
}

}  // namespace drun::check
