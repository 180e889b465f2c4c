// Hosts as tables, for tests without I/O.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "netdetect/choose.h"
#include "netdetect/network.h"
#include "netdetect/reachability_votes.h"

namespace drun::netdetect::testing {

// The address and prefix length of a text such as "10.0.0.1/24".
inline Address address(const std::string& text) {
  Address out = parse_address(text.substr(0, text.find('/')));
  if (text.find('/') != std::string::npos) out.prefix_length = std::stoi(text.substr(text.find('/') + 1));
  return out;
}

inline Interface nic(std::string name, const std::vector<std::string>& addresses, int speed_mbps = 0) {
  Interface out;
  out.name = std::move(name);
  out.mtu = 1500;
  out.speed_mbps = speed_mbps;
  out.up = true;
  out.running = true;
  out.kind = "physical";
  for (const auto& text : addresses) out.addresses.push_back(address(text));
  return out;
}

inline Interface loopback() {
  Interface out = nic("lo", {"127.0.0.1/8", "::1/128"});
  out.loopback = true;
  out.kind = "loopback";
  return out;
}

inline HostInterfaces host(std::string name, std::vector<Interface> interfaces) {
  HostInterfaces out;
  out.net_namespace = "net of " + name;
  out.host = std::move(name);
  out.interfaces = std::move(interfaces);
  out.interfaces.insert(out.interfaces.begin(), loopback());
  return out;
}

inline AttemptResult result(const Attempt& attempt, ProbeOutcome outcome, std::uint32_t micros = 100) {
  AttemptResult out;
  out.attempt = attempt;
  out.result.outcome = outcome;
  if (outcome == ProbeOutcome::kReached) out.result.micros = micros;
  return out;
}

// The source address that a kernel would pick: an address in the same network, else the first of the family.
inline std::string source_of(const HostInterfaces& host, const Address& target) {
  std::string first;
  for (const auto& n : host.interfaces) {
    for (const auto& a : n.addresses) {
      if (a.family != target.family || is_loopback(a)) continue;
      if (in_network(network_of(a), target)) return a.text();
      if (first.empty()) first = a.text();
    }
  }
  return first;
}

// Plays every planned attempt; `answer(from, candidate)` returns its outcome.
template <typename F>
std::vector<AttemptResult> play(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, F answer) {
  std::vector<AttemptResult> out;
  for (const auto& attempt : plan_attempts(static_cast<int>(hosts.size()), candidates, 1)) {
    const Candidate& candidate = candidates.tried[static_cast<std::size_t>(attempt.candidate)];
    out.push_back(result(attempt, answer(attempt.from, candidate)));
    if (reached(out.back())) {
      out.back().result.source = source_of(hosts[static_cast<std::size_t>(attempt.from)], candidate.address);
    }
  }
  return out;
}

inline ProbeOutcome all_reached(int, const Candidate&) { return ProbeOutcome::kReached; }

// A host is reached at its addresses in networks that the trying host is in, too.
struct SameNetwork {
  const std::vector<HostInterfaces>& hosts;
  ProbeOutcome operator()(int from, const Candidate& to) const {
    for (const auto& n : hosts[static_cast<std::size_t>(from)].interfaces) {
      for (const auto& a : n.addresses) {
        if (a.prefix_length == to.address.prefix_length && network_of(a) == network_of(to.address)) {
          return ProbeOutcome::kReached;
        }
      }
    }
    return ProbeOutcome::kTimedOut;
  }
};

inline std::vector<std::string> tried(const std::vector<HostInterfaces>& hosts, const Candidates& candidates) {
  std::vector<std::string> out;
  for (const auto& c : candidates.tried) {
    const auto& h = hosts[static_cast<std::size_t>(c.host)];
    out.push_back(h.host + " " + h.interfaces[static_cast<std::size_t>(c.interface)].name + " " + c.address.text());
  }
  return out;
}

inline std::vector<std::string> rejected(const std::vector<HostInterfaces>& hosts, const Candidates& candidates) {
  std::vector<std::string> out;
  for (const auto& r : candidates.rejected) {
    if (r.reason == "loopback") continue;
    out.push_back(hosts[static_cast<std::size_t>(r.host)].host + " " + r.interface + ": " + r.reason);
  }
  return out;
}

}  // namespace drun::netdetect::testing
