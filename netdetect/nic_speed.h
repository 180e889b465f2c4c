// Finds what has to be measured to know the fastest of several networks if the drivers report no speed. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "netdetect/choose.h"
#include "netdetect/link.h"
#include "netdetect/rounds.h"

namespace drun::netdetect {

// Good candidates of several hosts: with addresses in one network, or on NICs of one name that are each alone in a
// subnet.
struct NetworkToMeasure {
  std::string network;                  // "10.0.0.0/24", "subnets of eth1"
  std::vector<std::size_t> candidates;  // indices into Candidates::tried, one per host, ascending by host
  bool is_joined = false;               // of several subnets
};

// Networks that good candidates share with other hosts, if some host has good candidates on several interfaces, in
// the family of its chosen address, and the speed of one of these is unknown. Otherwise, or if there is only one such
// network, empty.
std::vector<NetworkToMeasure> networks_to_measure(const std::vector<HostInterfaces>& hosts,
                                                  const Candidates& candidates,
                                                  const std::vector<AttemptResult>& results, const Choice& choice);

// Up to two pairs of the network's hosts, each host in at most one: of different machines if possible, at least of
// different network namespaces, so that their traffic goes over the network.
std::vector<HostPair> pairs_to_measure(const NetworkToMeasure& network, const std::vector<HostInterfaces>& hosts,
                                       const Candidates& candidates);

// Stores the speeds of the networks (`mbps`, in the same order) in the candidates. All addresses of an interface get
// the same speed, including those of the other family; an interface in several networks gets the fastest.
void set_speeds(const std::vector<NetworkToMeasure>& networks, const std::vector<int>& mbps, Candidates& candidates);

// The speed of a network in Mb/s, from transfers between some of its hosts: the median of all directions; 0: not
// measured.
int network_mbps(const std::vector<Link>& links);

}  // namespace drun::netdetect
