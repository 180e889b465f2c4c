#include "netdetect/rounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <set>

namespace drun::netdetect {

std::vector<Round> tournament(int n_hosts) {
  std::vector<Round> rounds;
  if (n_hosts < 2) return rounds;
  // One place is fixed, and the others rotate around it; with an odd number of hosts one place is empty.
  const int n = n_hosts + n_hosts % 2;
  for (int r = 0; r < n - 1; ++r) {
    Round round;
    const auto place = [&](int k) { return k == 0 ? n - 1 : (r + k - 1) % (n - 1); };
    for (int k = 0; k < n / 2; ++k) {
      const int a = place(k), b = place(n - 1 - k);
      if (std::max(a, b) < n_hosts) round.emplace_back(std::min(a, b), std::max(a, b));
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

std::vector<Round> rounds_of(int n_hosts, const std::vector<HostPair>& pairs) {
  std::set<HostPair> wanted;
  for (const auto& [a, b] : pairs) {
    if (std::min(a, b) >= 0 && std::max(a, b) < n_hosts && a != b) wanted.emplace(std::min(a, b), std::max(a, b));
  }
  std::vector<Round> rounds;
  if (n_hosts <= kAllPairsHosts) {
    for (auto& all : tournament(n_hosts)) {
      Round round;
      for (const auto& pair : all) {
        if (wanted.count(pair) > 0) round.push_back(pair);
      }
      if (!round.empty()) rounds.push_back(std::move(round));
    }
    return rounds;
  }
  std::vector<std::vector<bool>> busy;  // by round, then host
  for (const auto& pair : wanted) {
    const auto a = static_cast<std::size_t>(pair.first), b = static_cast<std::size_t>(pair.second);
    std::size_t r = 0;
    while (r < rounds.size() && (busy[r][a] || busy[r][b])) ++r;
    if (r == rounds.size()) {
      rounds.emplace_back();
      busy.emplace_back(static_cast<std::size_t>(n_hosts), false);
    }
    rounds[r].push_back(pair);
    busy[r][a] = busy[r][b] = true;
  }
  return rounds;
}

std::vector<HostPair> limit_pairs(int n_hosts, const std::vector<HostPair>& pairs, int most) {
  std::vector<int> wanted(static_cast<std::size_t>(n_hosts), 0), kept(static_cast<std::size_t>(n_hosts), 0);
  const auto at = [](std::vector<int>& counts, int host) -> int& { return counts[static_cast<std::size_t>(host)]; };
  for (const auto& [a, b] : pairs) {
    ++at(wanted, a);
    ++at(wanted, b);
  }
  const auto always_kept = [&](const HostPair& pair) {
    const int distance = std::abs(pair.first - pair.second);
    const bool follow = distance == 1 || distance == n_hosts - 1;
    return follow || std::max(at(wanted, pair.first), at(wanted, pair.second)) <= most;
  };
  std::vector<HostPair> sorted = pairs, out;
  const auto optional = std::stable_partition(sorted.begin(), sorted.end(), always_kept);
  for (auto pair = sorted.begin(); pair != sorted.end(); ++pair) {
    int &a = at(kept, pair->first), &b = at(kept, pair->second);
    if (pair >= optional && std::max(a, b) >= most && std::min(a, b) > 0) continue;
    ++a;
    ++b;
    out.push_back(*pair);
  }
  return out;
}

std::vector<HostPair> reachable_pairs(const std::vector<std::vector<int>>& reach) {
  std::vector<HostPair> pairs;
  for (std::size_t i = 0; i < reach.size(); ++i) {
    for (std::size_t j = i + 1; j < reach.size(); ++j) {
      if (reach[i][j] == 1 || reach[j][i] == 1) pairs.emplace_back(static_cast<int>(i), static_cast<int>(j));
    }
  }
  return pairs;
}

}  // namespace drun::netdetect
