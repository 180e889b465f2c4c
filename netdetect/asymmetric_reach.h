// Chooses addresses of hosts to which not every other host can connect, and words the warnings about them. Pure.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "netdetect/reachability_matrix.h"

namespace drun::netdetect {

// By namespace: the index of the candidate that its hosts get; -1 = none.
using Picks = std::vector<int>;
using Pairs = std::vector<std::pair<int, int>>;  // of hosts or namespaces, smaller one first

// Fills the entries of `picks` that are -1. A candidate qualifies if some peer reached it, or if its host reached
// others over its interface. Prefers the fewest unconnected pairs, then the fewest peers that do not reach the
// candidate, then the most peers that the host reaches over it, then the lowest `order` (by candidate). `family` 0:
// any.
Picks fill_one_way(Picks picks, const Candidates& candidates, const ReachabilityVotes& tally,
                   const ReachabilityMatrix& directions, int family, const std::vector<int>& order);

// Pairs of namespaces of which neither reached the other at its pick, and at least one tried.
Pairs unconnected_at(const Picks& picks, const ReachabilityMatrix& directions);

// One sentence for each host that accepts no connections or makes none, and one for all pairs that connect in one
// direction only. Empty: all directions that were tried work.
std::vector<std::string> one_way_warnings(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                                          const ReachabilityVotes& tally, const Picks& picks);

}  // namespace drun::netdetect
