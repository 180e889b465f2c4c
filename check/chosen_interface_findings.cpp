#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "check/interface_findings.h"
#include "netdetect/network.h"
#include "netdetect/wording.h"

namespace drun::check {
namespace {

// The interface of `host` that has the address; null: none, a loopback, or the chosen interface has it, too.
const netdetect::Interface* other_source(const InterfaceView& view, int host, const std::string& source) {
  const std::string bytes = netdetect::parse_address(source).bytes;
  const netdetect::Interface* found = nullptr;
  for (const auto& nic : view.nics(host)) {
    const bool has = std::any_of(nic.addresses.begin(), nic.addresses.end(),
                                 [&](const netdetect::Address& address) { return address.bytes == bytes; });
    if (!has) continue;
    if (&nic == view.chosen_nic(host)) return nullptr;
    found = &nic;
  }
  return bytes.empty() || found == nullptr || found->loopback ? nullptr : found;
}

bool is_in_network_of(const netdetect::Interface& nic, const netdetect::Address& other) {
  return std::any_of(nic.addresses.begin(), nic.addresses.end(), [&](const netdetect::Address& own) {
    return own.family == other.family && netdetect::in_network(netdetect::network_of(own), other);
  });
}

// NCCL and Gloo bind the listening side to the chosen interface, and the kernel chooses the interface of the
// connecting side. If both interfaces are in one network, the network's first route decides.
void find_sent_elsewhere(const InterfaceView& view, std::vector<Finding>& out) {
  std::map<std::pair<int, std::string>, std::vector<std::string>> by_nic;  // host, interface: evidence
  std::map<std::pair<int, std::string>, std::string> examples;
  for (std::size_t c = 0; c < view.candidates().size(); ++c) {
    const netdetect::Candidate& to = view.candidates()[c];
    if (!view.has_choice(to.host) || !(view.choice(to.host).address == to.address)) continue;
    for (const netdetect::AttemptResult* a : view.attempts(c)) {
      const int from = a->attempt.from;
      const bool same = view.candidates()[static_cast<std::size_t>(a->attempt.candidate)].host == to.host;
      if (!netdetect::reached(*a) || !same || view.gone(from) || view.chosen_nic(from) == nullptr) continue;
      const netdetect::Interface* nic = other_source(view, from, a->result.source);
      if (nic == nullptr) continue;
      // The two hosts use different networks: other findings report what kept them from sharing one.
      if (is_in_network_of(*nic, to.address) && !is_in_network_of(*view.chosen_nic(from), to.address)) continue;
      const std::pair<int, std::string> key(from, nic->name);
      by_nic[key].push_back(view.name(from) + " to " + view.name(to.host) + " at " + to.address.text() + ": from " +
                            a->result.source + " on " + nic->name);
      examples.emplace(key, to.address.text());
    }
  }
  for (auto& [key, details] : by_nic) {
    const auto& [host, nic] = key;
    const std::string chosen = view.chosen_nic(host)->name;
    add_group(
        Severity::kWarning, "sends-elsewhere", {{host}, {view.name(host) + " " + nic}, std::move(details)},
        "sends by " + nic + ", listens on " + chosen + ": what it sends does not go over the interface that was chosen",
        "ip route get " + examples.at(key) + "  # on " + view.name(host), out);
  }
}

std::string why(const InterfaceView& view, int host, const netdetect::Interface& chosen,
                const netdetect::Interface& other) {
  const int mine = view.speed(host, chosen);
  const int its = view.speed(host, other);
  if (its == 0 && mine > 0) return "the speed of the other is unknown";
  if (mine > its + its / 5) return "it is faster";
  if (chosen.rdma && !other.rdma) return "it has RDMA";
  if (!is_tunnel(chosen) && is_tunnel(other)) return "the other is a tunnel";
  return std::string(mine > 0 ? "they are about equally fast" : "neither speed is known") +
         "; by family, network, route metric, round trip, name";
}

// Reports which of several usable interfaces was chosen, and why, and tunnels that were chosen.
void find_choices(const InterfaceView& view, std::vector<Finding>& out) {
  InterfaceGroup clear;
  InterfaceGroup unclear;
  InterfaceGroup tunnels;
  std::string other_name, clear_other, tunnel_host;
  for (int h = 0; h < view.n_hosts(); ++h) {
    const netdetect::Interface* chosen = view.chosen_nic(h);
    if (chosen == nullptr || chosen->loopback) continue;
    if (is_tunnel(*chosen)) {
      tunnels.add(view, h, chosen->name);
      tunnel_host = view.name(h);
    }
    bool is_clear = false;
    bool is_unclear = false;
    for (std::size_t i = 0; i < view.nics(h).size(); ++i) {
      const netdetect::Interface& nic = view.nics(h)[i];
      if (&nic == chosen || !view.any_good(h, static_cast<int>(i))) continue;
      const auto& used = view.choice(h).interfaces;
      const bool together = std::find(used.begin(), used.end(), nic.name) != used.end();
      const bool guessed = view.speed(h, *chosen) == 0 && !is_tunnel(nic);
      (guessed ? is_unclear : is_clear) = true;
      InterfaceGroup& group = guessed ? unclear : clear;
      for (const std::size_t c : view.candidates_of(h, static_cast<int>(i))) {
        (guessed ? other_name : clear_other) = netdetect::network_text(view.candidates()[c].address);
      }
      group.details.push_back(view.name(h) + ": " + chosen->name + " (" + nic_speed_text(view.speed(h, *chosen)) +
                              ") before " + nic.name + " (" + nic_speed_text(view.speed(h, nic)) +
                              "): " + why(view, h, *chosen, nic) + (together ? "; NCCL gets both" : ""));
    }
    if (is_clear) clear.add(view, h, chosen->name);
    if (is_unclear) unclear.add(view, h, chosen->name);
  }
  add_group(Severity::kNote, "several-interfaces", std::move(clear),
            "chosen among several interfaces that all hosts reach",
            "drun check --network-interfaces " + clear_other + " ...", out);
  add_group(Severity::kWarning, "speed-unknown", std::move(unclear),
            "chosen among several interfaces that all hosts reach, of which the drivers tell no speed: it may be the "
            "slower",
            "drun check --network-interfaces " + other_name + " ...", out);
  add_group(Severity::kWarning, "tunnel-chosen", std::move(tunnels),
            "a tunnel, the only interface that all hosts reach", "ip -details link  # on " + tunnel_host, out);
}

void find_families(const InterfaceView& view, std::vector<Finding>& out) {
  std::vector<int> v4;
  std::vector<int> v6;
  for (int h = 0; h < view.n_hosts(); ++h) {
    if (view.has_choice(h)) (view.choice(h).address.family == 4 ? v4 : v6).push_back(h);
  }
  Finding finding;
  if (v6.empty()) return;
  finding.hosts = v6;
  finding.subject = view.names(v6);
  if (v4.empty()) {
    finding.code = "ipv6-only";
    finding.text = "the network that all share is IPv6";
    finding.command = "ip -brief address";
    bool some_v4 = false;
    for (const auto& c : view.candidates()) some_v4 = some_v4 || c.address.family == 4;
    if (some_v4) finding.text += "; there are IPv4 addresses, but not on every host one that the others reach";
  } else {
    finding.severity = Severity::kWarning;
    finding.code = "families-mixed";
    finding.text = "have IPv6 only, while " + view.names(v4) + " " + (v4.size() == 1 ? "has" : "have") + " IPv4";
    finding.command = "ip -brief address  # on " + view.names(v6);
  }
  out.push_back(std::move(finding));
}

void find_names(const InterfaceView& view, std::vector<Finding>& out) {
  std::map<std::string, std::vector<int>> by_name;
  for (int h = 0; h < view.n_hosts(); ++h) {
    if (view.has_choice(h)) by_name[view.choice(h).interface].push_back(h);
  }
  if (by_name.size() < 2) return;
  Finding finding;
  finding.code = "names-differ";
  finding.command = "drun run ... env | grep IFNAME";
  finding.subject = "interfaces";
  finding.text =
      "the network is on another interface of each host, so no single NCCL_SOCKET_IFNAME fits: drun sets "
      "it per host";
  if (by_name.size() < static_cast<std::size_t>(view.n_hosts())) {
    finding.text =
        "the network is not on the same interface of every host, so no single NCCL_SOCKET_IFNAME fits: "
        "drun sets it per host";
  }
  for (const auto& [nic, hosts] : by_name) {
    finding.hosts.insert(finding.hosts.end(), hosts.begin(), hosts.end());
    if (finding.details.size() < kInterfaceDetails) finding.details.push_back(nic + ": " + view.names(hosts));
  }
  std::sort(finding.hosts.begin(), finding.hosts.end());
  out.push_back(std::move(finding));
}

// Faster interfaces that --network-interfaces leaves out.
void find_excluded(const InterfaceView& view, std::vector<Finding>& out) {
  InterfaceGroup group;
  for (int h = 0; h < view.n_hosts(); ++h) {
    const netdetect::Interface* chosen = view.chosen_nic(h);
    if (chosen == nullptr || chosen->speed_mbps == 0) continue;
    for (const auto& r : view.rejected()) {
      if (r.host != h || r.reason.find("--network-interfaces") == std::string::npos) continue;
      const auto nic = std::find_if(view.nics(h).begin(), view.nics(h).end(),
                                    [&](const netdetect::Interface& n) { return n.name == r.interface; });
      if (nic == view.nics(h).end() || !nic->running || nic->addresses.empty() || !is_hardware(*nic)) continue;
      if (nic->speed_mbps <= chosen->speed_mbps) continue;
      group.add(view, h, chosen->name);
      group.details.push_back(view.name(h) + ": " + chosen->name + " (" + nic_speed_text(chosen->speed_mbps) +
                              ") is used, and " + nic->name + " (" + nic_speed_text(nic->speed_mbps) + ") is not");
    }
  }
  add_group(Severity::kWarning, "interfaces-option-slower", std::move(group),
            "--network-interfaces leaves out a faster interface that is up", "leave out --network-interfaces", out);
}

}  // namespace

void find_chosen_interfaces(const InterfaceView& view, std::vector<Finding>& out) {
  find_sent_elsewhere(view, out);
  find_choices(view, out);
  find_families(view, out);
  find_names(view, out);
  find_excluded(view, out);
}

}  // namespace drun::check
