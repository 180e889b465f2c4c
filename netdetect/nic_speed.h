// Which of several networks is the fastest one, where no driver says how fast its interfaces are: what has to be
// measured to know. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "netdetect/choose.h"
#include "netdetect/link.h"
#include "netdetect/rounds.h"

namespace drun::netdetect {

// Good candidates of several hosts with addresses in one network.
struct NetworkToMeasure {
  std::string network;                  // "10.0.0.0/24"
  std::vector<std::size_t> candidates;  // indices into Candidates::tried, by host ascending, one of each
};

// Empty unless some host has, in the family of its chosen address, good candidates on several interfaces of which one
// has no known speed: then all networks that such candidates share with other hosts.
std::vector<NetworkToMeasure> networks_to_measure(const std::vector<HostInterfaces>& hosts,
                                                  const Candidates& candidates,
                                                  const std::vector<AttemptResult>& results, const Choice& choice);

// Pairs of the network's hosts, each host in one at most: of different machines if there are such, at least of
// different network namespaces, between which something goes over the network.
std::vector<HostPair> pairs_to_measure(const NetworkToMeasure& network, const std::vector<HostInterfaces>& hosts,
                                       const Candidates& candidates);

// Puts the networks' speeds, in their order, into the candidates: all addresses of an interface have the same, also
// those of the other family; of several networks on one interface the fastest.
void set_speeds(const std::vector<NetworkToMeasure>& networks, const std::vector<int>& mbps, Candidates& candidates);

// The speed of a network by transfers between some of its hosts: the median of their directions; 0: none was measured.
int network_mbps(const std::vector<Link>& links);

}  // namespace drun::netdetect
