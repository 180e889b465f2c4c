#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>

#include "netdetect/choose.h"

namespace drun::netdetect {
namespace {

constexpr int kAllPairsHosts = 32;
constexpr std::size_t kTriers = 4;

// SplitMix64: the same sequence with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// For each host, the hosts that try it.
using Triers = std::vector<std::vector<int>>;

class Planner {
 public:
  Planner(int n_hosts, const Candidates& candidates) : n_hosts_(n_hosts), candidates_(candidates) {}

  Triers all_pairs() const {
    Triers triers(static_cast<std::size_t>(n_hosts_));
    for (int to = 0; to < n_hosts_; ++to) {
      for (int from = 0; from < n_hosts_; ++from) {
        if (are_peers(from, to)) triers[static_cast<std::size_t>(to)].push_back(from);
      }
    }
    return triers;
  }

  // First a ring, in which the previous host tries each host; then the hosts with the fewest attempts, at random
  // among equals.
  Triers sample(std::uint64_t seed) const {
    Random random(seed);
    Triers triers(static_cast<std::size_t>(n_hosts_));
    std::vector<int> load(static_cast<std::size_t>(n_hosts_), 0);
    const auto add = [&](int from, int to) {
      triers[static_cast<std::size_t>(to)].push_back(from);
      ++load[static_cast<std::size_t>(from)];
    };
    for (int to = 0; to < n_hosts_; ++to) {
      int from = (to + n_hosts_ - 1) % n_hosts_;
      while (from != to && !are_peers(from, to)) from = (from + n_hosts_ - 1) % n_hosts_;
      if (from != to) add(from, to);
    }
    for (int to = 0; to < n_hosts_; ++to) {
      const auto& present = triers[static_cast<std::size_t>(to)];
      std::vector<std::tuple<int, std::uint64_t, int>> others;
      for (int from = 0; from < n_hosts_; ++from) {
        if (!are_peers(from, to) || std::find(present.begin(), present.end(), from) != present.end()) continue;
        others.emplace_back(load[static_cast<std::size_t>(from)], random.next(), from);
      }
      std::sort(others.begin(), others.end());
      for (const auto& other : others) {
        if (triers[static_cast<std::size_t>(to)].size() >= kTriers) break;
        add(std::get<2>(other), to);
      }
    }
    return triers;
  }

 private:
  bool are_peers(int a, int b) const { return a != b && namespace_of(a) != namespace_of(b); }
  // A host that has no number is in a namespace of its own.
  int namespace_of(int host) const {
    const auto h = static_cast<std::size_t>(host);
    return h < candidates_.namespaces.size() ? candidates_.namespaces[h] : std::numeric_limits<int>::min() + host;
  }

  int n_hosts_;
  const Candidates& candidates_;
};

}  // namespace

std::vector<Attempt> plan_attempts(int n_hosts, const Candidates& candidates, std::uint64_t seed) {
  const Planner planner(n_hosts, candidates);
  const Triers triers = n_hosts <= kAllPairsHosts ? planner.all_pairs() : planner.sample(seed);
  std::vector<Attempt> attempts;
  for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
    const int to = candidates.tried[c].host;
    if (to < 0 || to >= n_hosts) continue;
    for (const int from : triers[static_cast<std::size_t>(to)]) attempts.push_back({from, static_cast<int>(c)});
  }
  return attempts;
}

}  // namespace drun::netdetect
