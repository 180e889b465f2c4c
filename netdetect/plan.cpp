#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "netdetect/choose.h"

namespace drun::netdetect {
namespace {

// Each attempt at a new address is a broadcast to all hosts of a network, so their cost grows with the square of the
// hosts. Hosts with a failed attempt get second opinions (later_attempts.h).
constexpr int kManyHosts = 256;
std::size_t n_triers(int n_hosts) { return n_hosts > kManyHosts ? 2 : 4; }

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

  // First a ring, in which the previous host tries each host; then, in a random order of the hosts, those that follow
  // it. So every host tries about as many as all others, and the plan takes time in proportion to the hosts.
  Triers sample(std::uint64_t seed) const {
    Triers triers(static_cast<std::size_t>(n_hosts_));
    for (int to = 0; to < n_hosts_; ++to) {
      int from = (to + n_hosts_ - 1) % n_hosts_;
      while (from != to && !are_peers(from, to)) from = (from + n_hosts_ - 1) % n_hosts_;
      if (from != to) triers[static_cast<std::size_t>(to)].push_back(from);
    }
    const std::vector<int> order = shuffled(seed);
    const std::size_t wanted = n_triers(n_hosts_);
    for (std::size_t place = 0; place < order.size(); ++place) {
      auto& present = triers[static_cast<std::size_t>(order[place])];
      for (std::size_t next = 1; next < order.size() && present.size() < wanted; ++next) {
        const int from = order[(place + next) % order.size()];
        const bool is_new = std::find(present.begin(), present.end(), from) == present.end();
        if (is_new && are_peers(from, order[place])) present.push_back(from);
      }
    }
    return triers;
  }

 private:
  std::vector<int> shuffled(std::uint64_t seed) const {
    Random random(seed);
    std::vector<int> order(static_cast<std::size_t>(n_hosts_));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random.next() % n]);
    return order;
  }
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
  const bool tries_all = n_hosts <= static_cast<int>(kFullPlanHosts);
  const Triers triers = tries_all ? planner.all_pairs() : planner.sample(seed);
  std::vector<Attempt> attempts;
  for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
    const int to = candidates.tried[c].host;
    if (to < 0 || to >= n_hosts) continue;
    for (const int from : triers[static_cast<std::size_t>(to)]) attempts.push_back({from, static_cast<int>(c)});
  }
  return attempts;
}

}  // namespace drun::netdetect
