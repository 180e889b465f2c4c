#include <algorithm>

#include "check/host_findings.h"
#include "check/vote.h"

namespace drun::check {

namespace {

constexpr int kSlowMbps = 100;  // Fast Ethernet and less: hardly ever intended
constexpr int kDefaultRules = 3;
constexpr int kStrict = 1;  // rp_filter

std::string speed_text(std::int64_t mbps) {
  return mbps >= 1000 && mbps % 1000 == 0 ? std::to_string(mbps / 1000) + " Gb/s" : std::to_string(mbps) + " Mb/s";
}

const control::NicFacts* chosen_nic(const ExaminedHost& host) {
  if (host.facts == nullptr || host.interface.empty()) return nullptr;
  for (const auto& nic : host.facts->nics) {
    if (nic.name == host.interface) return &nic;
  }
  return nullptr;
}

void find_slow_nics(const std::vector<ExaminedHost>& hosts, FindingList& out) {
  int fastest = 0;
  for (const auto& host : hosts) {
    if (const control::NicFacts* nic = chosen_nic(host)) fastest = std::max(fastest, nic->speed_mbps);
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const control::NicFacts* nic = chosen_nic(hosts[i]);
    if (nic == nullptr || nic->speed_mbps <= 0) continue;
    if (nic->speed_mbps > kSlowMbps && nic->speed_mbps * 2 > fastest) continue;
    const bool alone = nic->speed_mbps >= fastest;
    out.add(Severity::kWarning, "nic-speed", static_cast<int>(i),
            nic->name + " runs at " + speed_text(nic->speed_mbps) +
                (alone ? std::string() : ", the fastest host's at " + speed_text(fastest)) +
                ": the cable, the switch's port, or what they negotiated",
            "ethtool " + nic->name);
  }
}

void find_filters(const control::HostFacts& f, int host, FindingList& out) {
  for (const auto& nic : f.nics) {
    if (!nic.up || nic.rp_filter != kStrict) continue;
    for (const auto& other : f.nics) {
      if (other.name == nic.name || !other.up) continue;
      const auto shared = std::find_if(nic.networks.begin(), nic.networks.end(), [&](const std::string& network) {
        return std::find(other.networks.begin(), other.networks.end(), network) != other.networks.end();
      });
      if (shared == nic.networks.end()) continue;
      out.add(Severity::kWarning, "rp-filter", host,
              nic.name + " and " + other.name + " are both in " + *shared + ", and " + nic.name +
                  " drops what would be answered through another interface (rp_filter 1)",
              "sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf." + nic.name + ".rp_filter=2");
      break;
    }
  }
  if (f.n_routing_rules > kDefaultRules) {
    out.add(Severity::kNote, "policy-routing", host,
            "has " + plural(static_cast<std::size_t>(f.n_routing_rules - kDefaultRules), "routing rule") +
                " beyond the usual ones: which way an answer takes may depend on more than its target",
            "ip rule");
  }
}

void find_bonds(const control::HostFacts& f, int host, FindingList& out) {
  for (const auto& bond : f.bonds) {
    std::vector<std::string> down, all;
    for (const auto& slave : bond.slaves) {
      if (!slave.up) down.push_back(slave.name);
      all.push_back(slave.name + ": " + (slave.up ? "up" : "down") +
                    (slave.speed_mbps > 0 ? ", " + speed_text(slave.speed_mbps) : ""));
    }
    if (down.empty()) continue;
    out.add(Severity::kWarning, "bond-degraded", host,
            join(down, ", ") + " of " + bond.name + " " + (down.size() == 1 ? "is" : "are") + " down",
            "cat /proc/net/bonding/" + bond.name, std::move(all));
  }
}

std::string port_name(const control::RdmaPort& p) { return p.device + " port " + std::to_string(p.port); }

// Compares each port with the same port of the other hosts.
void find_rdma(const std::vector<ExaminedHost>& hosts, FindingList& out) {
  std::vector<std::string> seen;
  for (const auto& host : hosts) {
    if (host.facts == nullptr) continue;
    for (const auto& port : host.facts->rdma) {
      const std::string name = port_name(port);
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      std::vector<std::pair<int, const control::RdmaPort*>> ports;
      bool active = false;
      std::int64_t rate = 0;
      for (std::size_t i = 0; i < hosts.size(); ++i) {
        if (hosts[i].facts == nullptr) continue;
        for (const auto& p : hosts[i].facts->rdma) {
          if (port_name(p) != name) continue;
          ports.emplace_back(static_cast<int>(i), &p);
          active = active || p.state == "ACTIVE";
          if (p.state == "ACTIVE") rate = std::max(rate, p.rate_mbps);
        }
      }
      std::vector<Ballot> gids;
      for (const auto& [i, p] : ports) {
        if (p->state != "ACTIVE" && active) {
          out.add(Severity::kWarning, "rdma-port-down", i,
                  name + " is " + lower(p->state) + ", on other hosts it is active", "ibstat " + p->device);
        }
        if (p->state != "ACTIVE") continue;
        if (p->rate_mbps > 0 && p->rate_mbps < rate) {
          out.add(Severity::kWarning, "rdma-slow", i,
                  name + " runs at " + speed_text(p->rate_mbps) + ", on other hosts at " + speed_text(rate),
                  "ibstat " + p->device);
        }
        if (p->link_layer == "Ethernet")
          gids.push_back({i, p->gid_rocev2 < 0 ? "none" : std::to_string(p->gid_rocev2)});
      }
      const Vote vote = count_votes(gids);
      if (vote.unanimous()) continue;
      Finding f;
      f.severity = Severity::kNote;
      f.code = "rdma-gid-differs";
      for (const auto& group : vote.groups)
        f.details.push_back("index " + group.value + ": " + out.hosts_text(group.hosts));
      for (const auto& ballot : gids) f.hosts.push_back(ballot.host);
      f.text = "the GID of RoCE v2 of " + name + " has another index on some hosts: one NCCL_IB_GID_INDEX fits not all";
      f.command = "show_gids";
      out.add_shared(std::move(f));
    }
  }
}

}  // namespace

void find_nic_trouble(const std::vector<ExaminedHost>& hosts, FindingList& out) {
  find_slow_nics(hosts, out);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].facts == nullptr) continue;
    const control::HostFacts& f = *hosts[i].facts;
    const int host = static_cast<int>(i);
    for (const auto& nic : f.nics) {
      if (!nic.up || nic.duplex != "half") continue;
      out.add(nic.name == hosts[i].interface ? Severity::kWarning : Severity::kNote, "nic-half-duplex", host,
              nic.name + " runs half duplex: one side does not negotiate", "ethtool " + nic.name);
    }
    find_bonds(f, host, out);
    find_filters(f, host, out);
  }
  find_rdma(hosts, out);
}

}  // namespace drun::check
