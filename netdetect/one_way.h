// Hosts to which not every other host can connect: which of their addresses is used all the same, and what to say.
// Pure.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "netdetect/directions.h"

namespace drun::netdetect {

// By namespace: the candidate that its hosts get, as an index; -1 = none.
using Picks = std::vector<int>;
using Pairs = std::vector<std::pair<int, int>>;  // of hosts or namespaces, smaller one first

// Fills what is -1 in `picks`. A candidate is worth taking if some peer reached it, or if the host reaches others over
// its interface; of these the one with the fewest pairs that are then unconnected, the fewest peers that do not reach
// it, the most peers that the host reaches over it, then the lowest `order` (by candidate). `family` 0: any.
Picks fill_one_way(Picks picks, const Candidates& candidates, const Tally& tally, const Directions& directions,
                   int family, const std::vector<int>& order);

// Namespaces of which neither is known to reach the other at its pick, though it was tried.
Pairs unconnected_at(const Picks& picks, const Directions& directions);

// One sentence each on the hosts that take no connection from others, or make none, and on pairs that connect in one
// direction only; empty: all directions that were tried work.
std::vector<std::string> one_way_warnings(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                                          const Tally& tally, const Picks& picks);

}  // namespace drun::netdetect
