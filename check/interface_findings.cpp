#include "check/interface_findings.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "netdetect/duplicates.h"
#include "netdetect/network.h"
#include "netdetect/wording.h"

namespace drun::check {
namespace {

constexpr std::size_t kDetails = 12;

std::string speed_text(int mbps) { return mbps > 0 ? std::to_string(mbps) + " Mb/s" : "speed unknown"; }

bool is_tunnel(const netdetect::Interface& nic) { return nic.kind == "tun" || nic.kind == "wireguard"; }

bool is_hardware(const netdetect::Interface& nic) {
  return nic.kind == "physical" || nic.kind == "bond" || nic.kind == "vlan";
}

// Findings of the same kind about interfaces of several hosts become one.
struct Group {
  std::vector<int> hosts;
  std::vector<std::string> interfaces;  // "host0 eno2", in step with `hosts`
  std::vector<std::string> details;
};

class Interfaces {
 public:
  Interfaces(const std::vector<netdetect::HostInterfaces>& hosts, const netdetect::Candidates& candidates,
             const netdetect::ReachabilityVotes& tally, const netdetect::PartialChoice& most,
             const std::vector<netdetect::SharedAddress>& shared, const std::vector<int>& gone)
      : hosts_(hosts),
        candidates_(candidates),
        tally_(tally),
        most_(most),
        shared_(shared),
        gone_(gone.begin(), gone.end()) {
    for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
      of_[{candidates.tried[c].host, candidates.tried[c].interface}].push_back(c);
    }
  }

  std::vector<Finding> run() {
    find_same_addresses();
    find_unreached();
    find_partly_reached();
    find_sent_elsewhere();
    find_unused();
    find_choices();
    find_families();
    find_names();
    find_excluded();
    return std::move(out_);
  }

 private:
  const std::string& name(int host) const { return hosts_[static_cast<std::size_t>(host)].host; }
  std::string names(const std::vector<int>& list) const {
    std::vector<std::string> out;
    for (const int host : list) out.push_back(name(host));
    return list_some(out, netdetect::kHostsShown);
  }
  const std::vector<netdetect::Interface>& nics(int host) const {
    return hosts_[static_cast<std::size_t>(host)].interfaces;
  }
  const netdetect::HostChoice& choice(int host) const { return most_.choice.hosts[static_cast<std::size_t>(host)]; }
  bool has_choice(int host) const { return !choice(host).address.bytes.empty(); }
  const netdetect::Interface* chosen_nic(int host) const {
    for (const auto& nic : nics(host)) {
      if (has_choice(host) && nic.name == choice(host).interface) return &nic;
    }
    return nullptr;
  }
  // The speed of one of these interfaces that the choice used, in Mb/s: measured if known, else the driver's.
  int speed(int host, const netdetect::Interface& nic) const {
    int measured = 0;
    for (const std::size_t c : candidates_of(host, static_cast<int>(&nic - nics(host).data()))) {
      measured = std::max(measured, candidates_.tried[c].measured_mbps);
    }
    return measured > 0 ? measured : nic.speed_mbps;
  }
  int n_hosts() const { return static_cast<int>(hosts_.size()); }
  const std::vector<std::size_t>& candidates_of(int host, int nic) const {
    static const std::vector<std::size_t> none;
    const auto found = of_.find({host, nic});
    return found == of_.end() ? none : found->second;
  }
  bool is_reached(std::size_t c) const {
    const auto& attempts = tally_.candidates[c].attempts;
    return std::any_of(attempts.begin(), attempts.end(), [](const auto* a) { return netdetect::reached(*a); });
  }
  bool any_reached(int host, int nic) const {
    const auto& list = candidates_of(host, nic);
    return std::any_of(list.begin(), list.end(), [&](std::size_t c) { return is_reached(c); });
  }
  bool any_good(int host, int nic) const {
    const auto& list = candidates_of(host, nic);
    return std::any_of(list.begin(), list.end(), [&](std::size_t c) { return tally_.candidates[c].good; });
  }

  void add(Severity severity, const char* code, Group group, std::string text, std::string command) {
    if (group.hosts.empty()) return;
    Finding finding;
    finding.severity = severity;
    finding.code = code;
    finding.subject = list_some(group.interfaces, netdetect::kHostsShown);
    std::sort(group.hosts.begin(), group.hosts.end());
    group.hosts.erase(std::unique(group.hosts.begin(), group.hosts.end()), group.hosts.end());
    finding.hosts = std::move(group.hosts);
    finding.text = std::move(text);
    if (group.details.size() > kDetails + 1) {
      const std::size_t n_more = group.details.size() - kDetails;
      group.details.resize(kDetails);
      group.details.push_back("and " + std::to_string(n_more) + " more");
    }
    finding.details = std::move(group.details);
    finding.command = std::move(command);
    out_.push_back(std::move(finding));
  }

  void find_same_addresses() {
    for (const netdetect::SharedAddress& shared : shared_) {
      const bool internal = std::any_of(shared.owners.begin(), shared.owners.end(),
                                        [](const auto& owner) { return netdetect::is_internal(*owner.nic); });
      const bool stranded = std::any_of(shared.owners.begin(), shared.owners.end(),
                                        [&](const auto& owner) { return !has_choice(owner.host); });
      Group group;
      for (const auto& owner : shared.owners) {
        group.hosts.push_back(owner.host);
        group.interfaces.push_back(name(owner.host) + " " + owner.nic->name);
      }
      const auto& first = shared.owners.front();
      const std::string text = shared.address.text();
      if (!internal && (stranded || shared.in_one_network)) {
        add(stranded ? Severity::kFailure : Severity::kWarning, "address-duplicate", std::move(group),
            "all have the address " + text + " in one network: who connects to it reaches one of them, or none",
            "arping -D -c 2 -I " + first.nic->name + " " + text + "  # on " + name(first.host));
        continue;
      }
      add(Severity::kNote, "interface-same-address", std::move(group),
          "the address " + text + " is on " + plural(shared.owners.size(), "host") +
              ", so who connects to it reaches itself: not used",
          "ip -brief address show " + first.nic->name + "  # on " + name(first.host));
    }
  }

  // A host that no other host reaches at all is another finding.
  bool is_reached_somewhere(int host) const {
    for (std::size_t i = 0; i < nics(host).size(); ++i) {
      if (any_reached(host, static_cast<int>(i))) return true;
    }
    return false;
  }

  void find_unreached() {
    Group plain;
    std::map<std::string, Group> faster;  // by network
    for (int h = 0; h < n_hosts(); ++h) {
      const netdetect::Interface* chosen = chosen_nic(h);
      if (gone_.count(h) > 0 || !is_reached_somewhere(h)) continue;
      for (std::size_t i = 0; i < nics(h).size(); ++i) {
        const netdetect::Interface& nic = nics(h)[i];
        const auto& list = candidates_of(h, static_cast<int>(i));
        if (list.empty() || any_reached(h, static_cast<int>(i)) || &nic == chosen) continue;
        std::vector<std::string> words;
        for (const std::size_t c : list) {
          std::set<std::string> outcomes;
          for (const netdetect::AttemptResult* a : tally_.candidates[c].attempts)
            outcomes.insert(netdetect::outcome_words(a->result));
          if (outcomes.empty()) continue;
          words.push_back(candidates_.tried[c].address.text() + " " + join({outcomes.begin(), outcomes.end()}, ", "));
        }
        if (words.empty()) continue;
        const bool better = chosen != nullptr && nic.speed_mbps > chosen->speed_mbps && chosen->speed_mbps > 0;
        Group& group = better ? faster[netdetect::network_text(candidates_.tried[list.front()].address)] : plain;
        group.hosts.push_back(h);
        group.interfaces.push_back(name(h) + " " + nic.name);
        group.details.push_back(name(h) + " " + nic.name + " (" + nic.kind + ", " + speed_text(nic.speed_mbps) +
                                "): " + join(words, "; "));
      }
    }
    for (auto& [network, group] : faster) {
      if (group.hosts.size() > 1) {
        const std::string command = "ip route; nft list ruleset  # on " + names(group.hosts);
        add(Severity::kWarning, "faster-interface-unreached", std::move(group),
            "faster than the interfaces that were chosen, and in one network (" + network +
                "), but no other host reaches them",
            command);
        continue;
      }
      plain.hosts.insert(plain.hosts.end(), group.hosts.begin(), group.hosts.end());
      plain.interfaces.insert(plain.interfaces.end(), group.interfaces.begin(), group.interfaces.end());
      plain.details.insert(plain.details.end(), group.details.begin(), group.details.end());
    }
    const std::string command = plain.hosts.empty() ? "" : "ip route  # on " + name(plain.hosts.front());
    add(Severity::kNote, "interface-unreached", std::move(plain),
        "up, with an address, but no other host reaches it: not used", command);
  }

  // The interface of `host` that has the address; null: none, a loopback, or the chosen interface has it, too.
  const netdetect::Interface* other_source(int host, const std::string& source) const {
    const std::string bytes = netdetect::parse_address(source).bytes;
    const netdetect::Interface* found = nullptr;
    for (const auto& nic : nics(host)) {
      const bool has = std::any_of(nic.addresses.begin(), nic.addresses.end(),
                                   [&](const netdetect::Address& address) { return address.bytes == bytes; });
      if (!has) continue;
      if (&nic == chosen_nic(host)) return nullptr;
      found = &nic;
    }
    return bytes.empty() || found == nullptr || found->loopback ? nullptr : found;
  }

  static bool is_in_network_of(const netdetect::Interface& nic, const netdetect::Address& other) {
    return std::any_of(nic.addresses.begin(), nic.addresses.end(), [&](const netdetect::Address& own) {
      return own.family == other.family && netdetect::in_network(netdetect::network_of(own), other);
    });
  }

  // NCCL and Gloo bind the listening side to the chosen interface, and the kernel chooses the interface of the
  // connecting side. If both interfaces are in one network, the network's first route decides.
  void find_sent_elsewhere() {
    std::map<std::pair<int, std::string>, std::vector<std::string>> by_nic;  // host, interface: evidence
    std::map<std::pair<int, std::string>, std::string> examples;
    for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
      const netdetect::Candidate& to = candidates_.tried[c];
      if (!has_choice(to.host) || !(choice(to.host).address == to.address)) continue;
      for (const netdetect::AttemptResult* a : tally_.candidates[c].attempts) {
        const int from = a->attempt.from;
        const bool same = candidates_.tried[static_cast<std::size_t>(a->attempt.candidate)].host == to.host;
        if (!netdetect::reached(*a) || !same || gone_.count(from) > 0 || chosen_nic(from) == nullptr) continue;
        const netdetect::Interface* nic = other_source(from, a->result.source);
        if (nic == nullptr) continue;
        // The two hosts use different networks: other findings report what kept them from sharing one.
        if (is_in_network_of(*nic, to.address) && !is_in_network_of(*chosen_nic(from), to.address)) continue;
        const std::pair<int, std::string> key(from, nic->name);
        by_nic[key].push_back(name(from) + " to " + name(to.host) + " at " + to.address.text() + ": from " +
                              a->result.source + " on " + nic->name);
        examples.emplace(key, to.address.text());
      }
    }
    for (auto& [key, details] : by_nic) {
      const auto& [host, nic] = key;
      const std::string chosen = chosen_nic(host)->name;
      add(Severity::kWarning, "sends-elsewhere", {{host}, {name(host) + " " + nic}, std::move(details)},
          "sends by " + nic + ", listens on " + chosen +
              ": what it sends does not go over the interface that was chosen",
          "ip route get " + examples.at(key) + "  # on " + name(host));
    }
  }

  void find_partly_reached() {
    Group slower;
    Group faster;
    for (int h = 0; h < n_hosts(); ++h) {
      const netdetect::Interface* chosen = chosen_nic(h);
      if (gone_.count(h) > 0 || chosen == nullptr || !choice(h).reached_by_all) continue;
      for (std::size_t i = 0; i < nics(h).size(); ++i) {
        const netdetect::Interface& nic = nics(h)[i];
        if (&nic == chosen || !any_reached(h, static_cast<int>(i)) || any_good(h, static_cast<int>(i))) continue;
        const bool better = nic.speed_mbps > chosen->speed_mbps && chosen->speed_mbps > 0;
        Group& group = better ? faster : slower;
        group.hosts.push_back(h);
        group.interfaces.push_back(name(h) + " " + nic.name);
        for (const std::size_t c : candidates_of(h, static_cast<int>(i))) {
          std::vector<std::string> missed;
          for (const netdetect::AttemptResult* a : tally_.candidates[c].attempts) {
            if (!netdetect::reached(*a))
              missed.push_back(name(a->attempt.from) + " (" + netdetect::outcome_words(a->result) + ")");
          }
          group.details.push_back(name(h) + " " + nic.name + " (" + speed_text(nic.speed_mbps) +
                                  "): " + candidates_.tried[c].address.text() + " is not reached by " +
                                  list_some(missed, netdetect::kHostsShown));
        }
      }
    }
    const auto command = [this](const Group& group) {
      return group.hosts.empty() ? "" : "ip route; nft list ruleset  # on " + names(group.hosts);
    };
    const std::string for_faster = command(faster);
    const std::string for_slower = command(slower);
    add(Severity::kWarning, "faster-interface-partly-reached", std::move(faster),
        "faster than what was chosen, but not every host reaches it: not used", for_faster);
    add(Severity::kNote, "interface-partly-reached", std::move(slower), "not every host reaches it: not used",
        for_slower);
  }

  // Interfaces that are down, without carrier, or without an address other than link-local ones.
  void find_unused() {
    std::map<std::string, Group> groups;  // by reason
    for (int h = 0; h < n_hosts(); ++h) {
      if (gone_.count(h) > 0) continue;
      for (std::size_t i = 0; i < nics(h).size(); ++i) {
        const netdetect::Interface& nic = nics(h)[i];
        const bool has_address = !nic.addresses.empty();
        if (nic.loopback || !nic.master.empty() || !candidates_of(h, static_cast<int>(i)).empty()) continue;
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
        groups[reason].hosts.push_back(h);
        groups[reason].interfaces.push_back(name(h) + " " + nic.name);
      }
    }
    for (auto& [reason, group] : groups) {
      const std::string command = "ip -brief address  # on " + name(group.hosts.front());
      add(Severity::kNote, "interface-unused", std::move(group), reason, command);
    }
  }

  std::string why(int host, const netdetect::Interface& chosen, const netdetect::Interface& other) const {
    const int mine = speed(host, chosen);
    const int its = speed(host, other);
    if (its == 0 && mine > 0) return "the speed of the other is unknown";
    if (mine > its + its / 5) return "it is faster";
    if (chosen.rdma && !other.rdma) return "it has RDMA";
    if (!is_tunnel(chosen) && is_tunnel(other)) return "the other is a tunnel";
    return std::string(mine > 0 ? "they are about equally fast" : "neither speed is known") +
           "; by family, network, route metric, round trip, name";
  }

  void add_host(Group& group, int host, const netdetect::Interface& interface) const {
    group.hosts.push_back(host);
    group.interfaces.push_back(name(host) + " " + interface.name);
  }

  // Reports which of several usable interfaces was chosen, and why, and tunnels that were chosen.
  void find_choices() {
    Group clear;
    Group unclear;
    Group tunnels;
    std::string other_name, clear_other, tunnel_host;
    for (int h = 0; h < n_hosts(); ++h) {
      const netdetect::Interface* chosen = chosen_nic(h);
      if (chosen == nullptr || chosen->loopback) continue;
      if (is_tunnel(*chosen)) {
        add_host(tunnels, h, *chosen);
        tunnel_host = name(h);
      }
      bool is_clear = false;
      bool is_unclear = false;
      for (std::size_t i = 0; i < nics(h).size(); ++i) {
        const netdetect::Interface& nic = nics(h)[i];
        if (&nic == chosen || !any_good(h, static_cast<int>(i))) continue;
        const auto& used = choice(h).interfaces;
        const bool together = std::find(used.begin(), used.end(), nic.name) != used.end();
        const bool guessed = speed(h, *chosen) == 0 && !is_tunnel(nic);
        (guessed ? is_unclear : is_clear) = true;
        Group& group = guessed ? unclear : clear;
        for (const std::size_t c : candidates_of(h, static_cast<int>(i))) {
          (guessed ? other_name : clear_other) = netdetect::network_text(candidates_.tried[c].address);
        }
        group.details.push_back(name(h) + ": " + chosen->name + " (" + speed_text(speed(h, *chosen)) + ") before " +
                                nic.name + " (" + speed_text(speed(h, nic)) + "): " + why(h, *chosen, nic) +
                                (together ? "; NCCL gets both" : ""));
      }
      if (is_clear) add_host(clear, h, *chosen);
      if (is_unclear) add_host(unclear, h, *chosen);
    }
    add(Severity::kNote, "several-interfaces", std::move(clear), "chosen among several interfaces that all hosts reach",
        "drun check --network-interfaces " + clear_other + " ...");
    add(Severity::kWarning, "speed-unknown", std::move(unclear),
        "chosen among several interfaces that all hosts reach, of which the drivers tell no speed: it may be the "
        "slower",
        "drun check --network-interfaces " + other_name + " ...");
    add(Severity::kWarning, "tunnel-chosen", std::move(tunnels), "a tunnel, the only interface that all hosts reach",
        "ip -details link  # on " + tunnel_host);
  }

  void find_families() {
    std::vector<int> v4;
    std::vector<int> v6;
    for (int h = 0; h < n_hosts(); ++h) {
      if (has_choice(h)) (choice(h).address.family == 4 ? v4 : v6).push_back(h);
    }
    Finding finding;
    if (v6.empty()) return;
    finding.hosts = v6;
    finding.subject = names(v6);
    if (v4.empty()) {
      finding.code = "ipv6-only";
      finding.text = "the network that all share is IPv6";
      finding.command = "ip -brief address";
      bool some_v4 = false;
      for (const auto& c : candidates_.tried) some_v4 = some_v4 || c.address.family == 4;
      if (some_v4) finding.text += "; there are IPv4 addresses, but not on every host one that the others reach";
    } else {
      finding.severity = Severity::kWarning;
      finding.code = "families-mixed";
      finding.text = "have IPv6 only, while " + names(v4) + " " + (v4.size() == 1 ? "has" : "have") + " IPv4";
      finding.command = "ip -brief address  # on " + names(v6);
    }
    out_.push_back(std::move(finding));
  }

  void find_names() {
    std::map<std::string, std::vector<int>> by_name;
    for (int h = 0; h < n_hosts(); ++h) {
      if (has_choice(h)) by_name[choice(h).interface].push_back(h);
    }
    if (by_name.size() < 2) return;
    Finding finding;
    finding.code = "names-differ";
    finding.command = "drun run ... env | grep IFNAME";
    finding.subject = "interfaces";
    finding.text =
        "the network is on another interface of each host, so no single NCCL_SOCKET_IFNAME fits: drun sets "
        "it per host";
    if (by_name.size() < most_.choice.hosts.size()) {
      finding.text =
          "the network is not on the same interface of every host, so no single NCCL_SOCKET_IFNAME fits: "
          "drun sets it per host";
    }
    for (const auto& [nic, hosts] : by_name) {
      finding.hosts.insert(finding.hosts.end(), hosts.begin(), hosts.end());
      if (finding.details.size() < kDetails) finding.details.push_back(nic + ": " + names(hosts));
    }
    std::sort(finding.hosts.begin(), finding.hosts.end());
    out_.push_back(std::move(finding));
  }

  // Faster interfaces that --network-interfaces leaves out.
  void find_excluded() {
    Group group;
    for (int h = 0; h < n_hosts(); ++h) {
      const netdetect::Interface* chosen = chosen_nic(h);
      if (chosen == nullptr || chosen->speed_mbps == 0) continue;
      for (const auto& r : candidates_.rejected) {
        if (r.host != h || r.reason.find("--network-interfaces") == std::string::npos) continue;
        const auto nic = std::find_if(nics(h).begin(), nics(h).end(),
                                      [&](const netdetect::Interface& n) { return n.name == r.interface; });
        if (nic == nics(h).end() || !nic->running || nic->addresses.empty() || !is_hardware(*nic)) continue;
        if (nic->speed_mbps <= chosen->speed_mbps) continue;
        group.hosts.push_back(h);
        group.interfaces.push_back(name(h) + " " + chosen->name);
        group.details.push_back(name(h) + ": " + chosen->name + " (" + speed_text(chosen->speed_mbps) +
                                ") is used, and " + nic->name + " (" + speed_text(nic->speed_mbps) + ") is not");
      }
    }
    add(Severity::kWarning, "interfaces-option-slower", std::move(group),
        "--network-interfaces leaves out a faster interface that is up", "leave out --network-interfaces");
  }

  const std::vector<netdetect::HostInterfaces>& hosts_;
  const netdetect::Candidates& candidates_;
  const netdetect::ReachabilityVotes& tally_;
  const netdetect::PartialChoice& most_;
  const std::vector<netdetect::SharedAddress>& shared_;
  std::set<int> gone_;
  std::map<std::pair<int, int>, std::vector<std::size_t>> of_;  // host, interface: its candidates
  std::vector<Finding> out_;
};

}  // namespace

std::vector<Finding> interface_findings(const std::vector<netdetect::HostInterfaces>& hosts,
                                        const netdetect::Candidates& candidates,
                                        const netdetect::ReachabilityVotes& tally, const netdetect::PartialChoice& most,
                                        const std::vector<netdetect::SharedAddress>& shared,
                                        const std::vector<int>& gone) {
  return Interfaces(hosts, candidates, tally, most, shared, gone).run();
}

}  // namespace drun::check
