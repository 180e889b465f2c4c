// Finds the addresses of each host that are worth probing. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "netdetect/interface.h"

namespace drun::netdetect {

// A host's interfaces, as input to find_candidates() and choose().
struct HostInterfaces {
  std::string host;           // for messages
  std::string net_namespace;  // equal strings: the same network namespace, so equal addresses are not duplicates
  std::vector<Interface> interfaces;
};

struct Candidate {
  int host = 0;       // index into the hosts
  int interface = 0;  // index into that host's interfaces
  Address address;
  int measured_mbps = 0;  // by a transfer; overrides the driver's speed; 0 = not measured
};

struct Rejection {
  int host = 0;
  std::string interface;
  std::string address;  // "" = the whole interface
  std::string reason;   // "down", "172.17.0.1 is also on host1", "not in --network-interfaces"
};

struct Candidates {
  std::vector<Candidate> tried;  // all that are worth a probe
  std::vector<Rejection> rejected;
  std::vector<int> namespaces;  // by host; equal numbers share a network namespace and don't probe each other
};

// Numbers the hosts by network namespace; each host with an empty string gets a number of its own.
std::vector<int> number_namespaces(const std::vector<HostInterfaces>& hosts);

// `wanted`: names, name globs or CIDRs from --network-interfaces; empty = all. Fails with Errc::kUsage if an item is
// malformed or matches no interface of any host.
Result<Candidates> find_candidates(const std::vector<HostInterfaces>& hosts, const std::vector<std::string>& wanted);

}  // namespace drun::netdetect
