#include "check/link_repeat.h"

#include <algorithm>
#include <map>
#include <set>

#include "check/link_anomalies.h"

namespace drun::check {
namespace {

constexpr std::size_t kPeersPerAnomaly = 3;  // several, because a good host may be busy at the time
constexpr std::size_t kControls = 4;

// With two hosts there is nothing to compare with, but a second measurement rules out chance.
bool worth_repeating(const netdetect::Edges& edges) {
  constexpr double kLooksLike100Mbit = 105e6;
  double least = 0, most = 0;
  bool lost = false;
  for (const auto& [pair, edge] : edges) {
    if (edge.bits_per_second <= 0) continue;
    least = least == 0 ? edge.bits_per_second : std::min(least, edge.bits_per_second);
    most = std::max(most, edge.bits_per_second);
    lost = lost || edge.loss() > 0.01;
  }
  return lost || (least > 0 && (least <= kLooksLike100Mbit || most >= 3 * least));
}

class Plan {
 public:
  explicit Plan(std::size_t limit) : limit_(limit) {}
  void add(int a, int b, bool twice = false) {
    const std::pair<int, int> pair = std::minmax(a, b);
    if (a == b || pairs_.size() >= limit_ || (!twice && !known_.insert(pair).second)) return;
    pairs_.push_back(pair);
  }
  std::vector<std::pair<int, int>> take() { return std::move(pairs_); }

 private:
  std::size_t limit_;
  std::set<std::pair<int, int>> known_;
  std::vector<std::pair<int, int>> pairs_;
};

double slower_direction(const netdetect::Edges& edges, const netdetect::HostPair& pair) {
  double out = 0;
  for (const netdetect::HostPair& direction : {pair, netdetect::HostPair{pair.second, pair.first}}) {
    const auto at = edges.find(direction);
    if (at == edges.end() || at->second.bits_per_second <= 0) continue;
    out = out == 0 ? at->second.bits_per_second : std::min(out, at->second.bits_per_second);
  }
  return out;
}

std::set<int> good_hosts(const netdetect::Edges& edges, const std::set<int>& bad_hosts) {
  std::set<int> good;
  for (const auto& [pair, edge] : edges) {
    for (const int host : {pair.first, pair.second}) {
      if (!bad_hosts.contains(host)) good.insert(host);
    }
  }
  return good;
}

// Good pairs, spread over the hosts: each new pair has the hosts that were used least. Counts the uses in `n_used`.
std::vector<netdetect::HostPair> control_pairs(const netdetect::Edges& edges, const std::set<int>& good,
                                               const std::set<netdetect::HostPair>& bad_pairs,
                                               std::map<int, int>& n_used) {
  std::vector<netdetect::HostPair> controls;
  while (controls.size() < kControls) {
    const netdetect::HostPair* next = nullptr;
    int least = 0;
    for (const auto& [pair, edge] : edges) {
      if (pair.first > pair.second || !good.contains(pair.first) || !good.contains(pair.second)) continue;
      if (bad_pairs.contains(pair) || std::find(controls.begin(), controls.end(), pair) != controls.end()) continue;
      const int used = n_used[pair.first] + n_used[pair.second];
      if (next != nullptr && used >= least) continue;
      next = &pair;
      least = used;
    }
    if (next == nullptr) break;
    controls.push_back(*next);
    n_used[next->first] += 1;
    n_used[next->second] += 1;
  }
  return controls;
}

// Bad pairs of good hosts, the slowest first, and then the pairs that are to be measured in any case.
std::vector<netdetect::HostPair> lone_pairs(const netdetect::Edges& edges, const Anomalies& anomalies,
                                            const std::vector<std::pair<int, int>>& also) {
  const std::set<netdetect::HostPair> bad_pairs = anomalies.pairs();
  std::vector<netdetect::HostPair> lone(bad_pairs.begin(), bad_pairs.end());
  std::erase_if(lone,
                [&](const netdetect::HostPair& p) { return anomalies.host(p.first) || anomalies.host(p.second); });
  std::stable_sort(lone.begin(), lone.end(), [&](const netdetect::HostPair& x, const netdetect::HostPair& y) {
    return slower_direction(edges, x) < slower_direction(edges, y);
  });
  for (const auto& [a, b] : also) lone.emplace_back(std::minmax(a, b));
  return lone;
}

}  // namespace

std::vector<std::pair<int, int>> pairs_to_repeat(const std::vector<LinkHost>& hosts,
                                                 const std::vector<netdetect::Link>& first_pass,
                                                 const std::vector<std::pair<int, int>>& also, int limit) {
  const std::size_t most = limit < 0 ? 2 * hosts.size() : static_cast<std::size_t>(limit);
  const netdetect::Edges edges = netdetect::edges_of(between_machines(hosts, first_pass));
  Plan plan(most);
  if (edges.size() <= 2) {
    if (!edges.empty() && (worth_repeating(edges) || !also.empty())) {
      plan.add(edges.begin()->first.first, edges.begin()->first.second);
    }
    return plan.take();
  }
  const Anomalies anomalies = find_anomalies(edges, usual_of(edges, on_one_machine(hosts)));
  if (anomalies.empty() && also.empty()) return {};

  const std::set<int> bad_hosts = anomalies.doubted();
  const std::set<netdetect::HostPair> bad_pairs = anomalies.pairs();
  const std::set<int> good = good_hosts(edges, bad_hosts);
  std::map<int, int> n_used;
  const std::vector<netdetect::HostPair> controls = control_pairs(edges, good, bad_pairs, n_used);

  // Lone pairs come first, because a plan that is cut short says nothing about a pair that it left out. Then each bad
  // host gets its first good peer, then each its second, so that a plan that is cut short covers all bad hosts;
  // controls come in between, so that they are measured at the same time.
  std::size_t n_controls = 0;
  const auto control = [&] {
    if (n_controls < controls.size()) plan.add(controls[n_controls].first, controls[n_controls].second);
    ++n_controls;
  };
  const std::vector<netdetect::HostPair> lone = lone_pairs(edges, anomalies, also);
  std::map<int, int> n_met;
  for (const netdetect::HostPair& pair : lone) plan.add(pair.first, pair.second);
  for (std::size_t turn = 0; turn < kPeersPerAnomaly; ++turn) {
    control();
    for (const int host : bad_hosts) {
      int peer = -1;
      for (const int candidate : good) {
        const netdetect::HostPair pair = std::minmax(host, candidate);
        const bool met = n_met.contains(host * static_cast<int>(hosts.size()) + candidate);
        if (met || (!edges.contains(pair) && edges.size() > 2 * hosts.size())) continue;
        if (peer < 0 || n_used[candidate] < n_used[peer]) peer = candidate;
      }
      if (peer < 0) continue;
      n_met[host * static_cast<int>(hosts.size()) + peer] = 1;
      n_used[peer] += 1;
      plan.add(host, peer);
    }
    if (turn == 1) {
      for (const netdetect::HostPair& pair : lone) plan.add(pair.first, pair.second, true);
    }
  }
  while (n_controls < controls.size()) control();
  return plan.take();
}

}  // namespace drun::check
