#include "netdetect/faulty_hosts.h"

#include <cstddef>
#include <set>

namespace drun::netdetect {

Pairs find_unconnected(const ReachabilityVotes& tally, const ReachabilityMatrix& directions) {
  Pairs pairs;
  for (std::size_t a = 0; a < tally.namespaces.size(); ++a) {
    for (std::size_t b = a + 1; b < tally.namespaces.size(); ++b) {
      if (tally.namespaces[a] == tally.namespaces[b]) continue;
      if (!directions.unconnected(tally.namespaces[a], tally.namespaces[b])) continue;
      pairs.emplace_back(static_cast<int>(a), static_cast<int>(b));
    }
  }
  return pairs;
}

std::vector<int> find_faulty_hosts(int n_hosts, const Candidates& candidates, const Pairs& pairs) {
  std::vector<bool> has_candidate(static_cast<std::size_t>(n_hosts), false);
  for (const auto& candidate : candidates.tried) has_candidate[static_cast<std::size_t>(candidate.host)] = true;
  std::vector<std::set<int>> others(static_cast<std::size_t>(n_hosts));
  for (const auto& [a, b] : pairs) {
    others[static_cast<std::size_t>(a)].insert(b);
    others[static_cast<std::size_t>(b)].insert(a);
  }
  std::vector<int> faulty;
  const auto take = [&](std::size_t host) {
    faulty.push_back(static_cast<int>(host));
    for (const int other : others[host]) others[static_cast<std::size_t>(other)].erase(static_cast<int>(host));
    others[host].clear();
  };
  const auto enough = [&] { return faulty.size() * 2 > static_cast<std::size_t>(n_hosts); };
  for (std::size_t h = 0; h < has_candidate.size() && !enough(); ++h) {
    if (!has_candidate[h]) take(h);
  }
  while (!enough()) {
    std::size_t worst = 0;
    for (std::size_t h = 1; h < others.size(); ++h) {
      if (others[h].size() > others[worst].size()) worst = h;
    }
    if (others.empty() || others[worst].empty()) break;
    take(worst);
  }
  return faulty;
}

}  // namespace drun::netdetect
