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

void find_same_addresses(const InterfaceView& view, std::vector<Finding>& out) {
  for (const netdetect::SharedAddress& shared : view.shared_addresses()) {
    const bool internal = std::any_of(shared.owners.begin(), shared.owners.end(),
                                      [](const auto& owner) { return netdetect::is_internal(*owner.nic); });
    const bool stranded = std::any_of(shared.owners.begin(), shared.owners.end(),
                                      [&](const auto& owner) { return !view.has_choice(owner.host); });
    InterfaceGroup group;
    for (const auto& owner : shared.owners) group.add(view, owner.host, owner.nic->name);
    const auto& first = shared.owners.front();
    const std::string text = shared.address.text();
    if (!internal && (stranded || shared.in_one_network)) {
      add_group(stranded ? Severity::kFailure : Severity::kWarning, "address-duplicate", std::move(group),
                "all have the address " + text + " in one network: who connects to it reaches one of them, or none",
                "arping -D -c 2 -I " + first.nic->name + " " + text + "  # on " + view.name(first.host), out);
      continue;
    }
    add_group(Severity::kNote, "interface-same-address", std::move(group),
              "the address " + text + " is on " + plural(shared.owners.size(), "host") +
                  ", so who connects to it reaches itself: not used",
              "ip -brief address show " + first.nic->name + "  # on " + view.name(first.host), out);
  }
}

void find_unreached(const InterfaceView& view, std::vector<Finding>& out) {
  InterfaceGroup plain;
  std::map<std::string, InterfaceGroup> faster;  // by network
  for (int h = 0; h < view.n_hosts(); ++h) {
    const netdetect::Interface* chosen = view.chosen_nic(h);
    if (view.gone(h) || !view.is_reached_somewhere(h)) continue;
    for (std::size_t i = 0; i < view.nics(h).size(); ++i) {
      const netdetect::Interface& nic = view.nics(h)[i];
      const auto& list = view.candidates_of(h, static_cast<int>(i));
      if (list.empty() || view.any_reached(h, static_cast<int>(i)) || &nic == chosen) continue;
      std::vector<std::string> words;
      for (const std::size_t c : list) {
        std::set<std::string> outcomes;
        for (const netdetect::AttemptResult* a : view.attempts(c)) outcomes.insert(netdetect::outcome_words(a->result));
        if (outcomes.empty()) continue;
        words.push_back(view.candidates()[c].address.text() + " " + join({outcomes.begin(), outcomes.end()}, ", "));
      }
      if (words.empty()) continue;
      const bool better = chosen != nullptr && nic.speed_mbps > chosen->speed_mbps && chosen->speed_mbps > 0;
      InterfaceGroup& group = better ? faster[netdetect::network_text(view.candidates()[list.front()].address)] : plain;
      group.add(view, h, nic.name);
      group.details.push_back(view.name(h) + " " + nic.name + " (" + nic.kind + ", " + nic_speed_text(nic.speed_mbps) +
                              "): " + join(words, "; "));
    }
  }
  for (auto& [network, group] : faster) {
    if (group.hosts.size() > 1) {
      const std::string command = "ip route; nft list ruleset  # on " + view.names(group.hosts);
      add_group(Severity::kWarning, "faster-interface-unreached", std::move(group),
                "faster than the interfaces that were chosen, and in one network (" + network +
                    "), but no other host reaches them",
                command, out);
      continue;
    }
    plain.hosts.insert(plain.hosts.end(), group.hosts.begin(), group.hosts.end());
    plain.interfaces.insert(plain.interfaces.end(), group.interfaces.begin(), group.interfaces.end());
    plain.details.insert(plain.details.end(), group.details.begin(), group.details.end());
  }
  const std::string command = plain.hosts.empty() ? "" : "ip route  # on " + view.name(plain.hosts.front());
  add_group(Severity::kNote, "interface-unreached", std::move(plain),
            "up, with an address, but no other host reaches it: not used", command, out);
}

void find_partly_reached(const InterfaceView& view, std::vector<Finding>& out) {
  InterfaceGroup slower;
  InterfaceGroup faster;
  for (int h = 0; h < view.n_hosts(); ++h) {
    const netdetect::Interface* chosen = view.chosen_nic(h);
    if (view.gone(h) || chosen == nullptr || !view.choice(h).reached_by_all) continue;
    for (std::size_t i = 0; i < view.nics(h).size(); ++i) {
      const netdetect::Interface& nic = view.nics(h)[i];
      if (&nic == chosen || !view.any_reached(h, static_cast<int>(i)) || view.any_good(h, static_cast<int>(i)))
        continue;
      const bool better = nic.speed_mbps > chosen->speed_mbps && chosen->speed_mbps > 0;
      InterfaceGroup& group = better ? faster : slower;
      group.add(view, h, nic.name);
      for (const std::size_t c : view.candidates_of(h, static_cast<int>(i))) {
        std::vector<std::string> missed;
        for (const netdetect::AttemptResult* a : view.attempts(c)) {
          if (!netdetect::reached(*a))
            missed.push_back(view.name(a->attempt.from) + " (" + netdetect::outcome_words(a->result) + ")");
        }
        group.details.push_back(view.name(h) + " " + nic.name + " (" + nic_speed_text(nic.speed_mbps) +
                                "): " + view.candidates()[c].address.text() + " is not reached by " +
                                list_some(missed, netdetect::kHostsShown));
      }
    }
  }
  const auto command = [&view](const InterfaceGroup& group) {
    return group.hosts.empty() ? "" : "ip route; nft list ruleset  # on " + view.names(group.hosts);
  };
  const std::string for_faster = command(faster);
  const std::string for_slower = command(slower);
  add_group(Severity::kWarning, "faster-interface-partly-reached", std::move(faster),
            "faster than what was chosen, but not every host reaches it: not used", for_faster, out);
  add_group(Severity::kNote, "interface-partly-reached", std::move(slower), "not every host reaches it: not used",
            for_slower, out);
}

// Interfaces that are down, without carrier, or without an address other than link-local ones.
void find_unused(const InterfaceView& view, std::vector<Finding>& out) {
  std::map<std::string, InterfaceGroup> groups;  // by reason
  for (int h = 0; h < view.n_hosts(); ++h) {
    if (view.gone(h)) continue;
    for (std::size_t i = 0; i < view.nics(h).size(); ++i) {
      const netdetect::Interface& nic = view.nics(h)[i];
      const bool has_address = !nic.addresses.empty();
      if (nic.loopback || !nic.master.empty() || !view.candidates_of(h, static_cast<int>(i)).empty()) continue;
      if (!is_hardware(nic) && !has_address) continue;
      std::string reason;
      const bool link_local = std::all_of(nic.addresses.begin(), nic.addresses.end(),
                                          [](const netdetect::Address& address) { return address.link_local; });
      if (!nic.up) {
        reason = "down";
      } else if (!nic.running) {
        reason = "up, but without carrier: no cable, or nothing at its other end";
      } else if (!has_address) {
        reason = "up, but without an address";
      } else if (link_local) {
        reason = "up, but only with link-local addresses";
      } else {
        continue;  // the address is on several hosts, or not wanted
      }
      groups[reason].add(view, h, nic.name);
    }
  }
  for (auto& [reason, group] : groups) {
    const std::string command = "ip -brief address  # on " + view.name(group.hosts.front());
    add_group(Severity::kNote, "interface-unused", std::move(group), reason, command, out);
  }
}

}  // namespace

void find_unused_interfaces(const InterfaceView& view, std::vector<Finding>& out) {
  find_same_addresses(view, out);
  find_unreached(view, out);
  find_partly_reached(view, out);
  find_unused(view, out);
}

}  // namespace drun::check
