// Which addresses of which hosts are worth trying. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "netdetect/interface.h"

namespace drun::netdetect {

// One host as the choice sees it.
struct HostInterfaces {
  std::string host;           // for messages
  std::string net_namespace;  // equal strings: the same network namespace, so equal addresses are not duplicates
  std::vector<Interface> interfaces;
};

struct Candidate {
  int host = 0;       // index into the hosts
  int interface = 0;  // index into that host's interfaces
  Address address;
  int measured_mbps = 0;  // by a transfer, if somebody made one: counts in place of what the driver says; 0 = unknown
};

struct Rejection {
  int host = 0;
  std::string interface;
  std::string address;  // "" = the whole interface
  std::string reason;   // "down", "172.17.0.1 is also on host1", "not in --network-interfaces"
};

struct Candidates {
  std::vector<Candidate> tried;  // every one worth a probe
  std::vector<Rejection> rejected;
  std::vector<int> namespaces;  // by host: equal numbers share a network namespace, and need no probe of each other
};

// Numbers the hosts by network namespace; an empty string is one of its own.
std::vector<int> number_namespaces(const std::vector<HostInterfaces>& hosts);

// `wanted`: names, name globs or CIDRs from --network-interfaces; empty = all. A word of `wanted` that fits no
// interface of any host is Errc::kUsage.
Result<Candidates> find_candidates(const std::vector<HostInterfaces>& hosts, const std::vector<std::string>& wanted);

}  // namespace drun::netdetect
