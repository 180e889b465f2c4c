#include "netdetect/asymmetric_reach.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>

#include "netdetect/wording.h"

namespace drun::netdetect {
namespace {

constexpr int kRounds = 8;  // picks depend on each other; they settle in two or three
constexpr const char* kWhoNeedsBoth = "libdrun connects the other way round, but torch, Gloo and NCCL need both";

bool worth_taking(std::size_t c, const ReachabilityVotes& tally, const ReachabilityMatrix& directions) {
  const auto& attempts = tally.candidates[c].attempts;
  if (attempts.empty()) return false;
  return std::any_of(attempts.begin(), attempts.end(), [](const auto* a) { return reached(*a); }) ||
         directions.reaches_any_from(static_cast<int>(c));
}

// Failed directions, and numbers of tried ones, at the chosen addresses.
struct Failures {
  std::map<int, std::set<int>> to;    // by target: sources
  std::map<int, std::set<int>> from;  // by source: targets
  std::map<int, int> n_tried_to, n_tried_from;

  void forget(int a, int b) {
    to[b].erase(a);
    from[a].erase(b);
  }
  bool all_to(int host) const {
    const auto found = to.find(host);
    return found != to.end() && !found->second.empty() && static_cast<int>(found->second.size()) == n_tried_to.at(host);
  }
  bool all_from(int host) const {
    const auto found = from.find(host);
    return found != from.end() && !found->second.empty() &&
           static_cast<int>(found->second.size()) == n_tried_from.at(host);
  }
};

}  // namespace

Picks fill_one_way(Picks picks, const Candidates& candidates, const ReachabilityVotes& tally,
                   const ReachabilityMatrix& directions, int family, const std::vector<int>& order) {
  std::vector<std::vector<int>> open(picks.size());  // by namespace without a pick: candidates that it may take
  for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
    const Candidate& candidate = candidates.tried[c];
    const auto ns = static_cast<std::size_t>(tally.namespaces[static_cast<std::size_t>(candidate.host)]);
    if (picks[ns] >= 0 || (family != 0 && candidate.address.family != family)) continue;
    if (worth_taking(c, tally, directions)) open[ns].push_back(static_cast<int>(c));
  }
  const auto cost = [&](int ns, int c) {
    int n_unconnected = 0;
    int n_missed = 0;
    std::vector<int> targets;
    for (const int other : directions.neighbors(ns)) {
      const int pick = picks[static_cast<std::size_t>(other)];
      if (pick >= 0 && directions.unconnected_at(ns, c, other, pick)) ++n_unconnected;
      if (directions.at(other, c) == Reach::kFailed) ++n_missed;
      if (pick >= 0) targets.push_back(pick);
    }
    return std::make_tuple(n_unconnected, n_missed, -directions.n_reached_from(c, targets),
                           order[static_cast<std::size_t>(c)]);
  };
  bool changed = true;
  for (int round = 0; changed && round < kRounds; ++round) {
    changed = false;
    for (std::size_t ns = 0; ns < open.size(); ++ns) {
      if (open[ns].empty()) continue;
      const int n = static_cast<int>(ns);
      const int best =
          *std::min_element(open[ns].begin(), open[ns].end(), [&](int a, int b) { return cost(n, a) < cost(n, b); });
      changed = changed || best != picks[ns];
      picks[ns] = best;
    }
  }
  return picks;
}

Pairs unconnected_at(const Picks& picks, const ReachabilityMatrix& directions) {
  Pairs pairs;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    const int a = static_cast<int>(i);
    for (const int b : directions.neighbors(a)) {
      if (b <= a) continue;
      if (directions.unconnected_at(a, picks[i], b, picks[static_cast<std::size_t>(b)])) pairs.emplace_back(a, b);
    }
  }
  return pairs;
}

std::vector<std::string> one_way_warnings(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                                          const ReachabilityVotes& tally, const Picks& picks) {
  Failures failures;
  std::map<std::pair<int, int>, std::string> words;
  const auto name = [&](int host) { return hosts[static_cast<std::size_t>(host)].host; };
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const int to = static_cast<int>(h);
    const int pick = picks[static_cast<std::size_t>(tally.namespaces[h])];
    std::set<int> tried;
    for (const AttemptResult* a : tally.candidates[static_cast<std::size_t>(pick)].attempts) {
      const int from = a->attempt.from;
      if (candidates.tried[static_cast<std::size_t>(a->attempt.candidate)].host != to) continue;
      if (!tried.insert(from).second) continue;
      ++failures.n_tried_to[to];
      ++failures.n_tried_from[from];
      if (reached(*a)) continue;
      failures.to[to].insert(from);
      failures.from[from].insert(to);
      words[{from, to}] = outcome_words(a->result);
    }
  }
  std::vector<std::string> out;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const int host = static_cast<int>(h);
    // With two hosts either may be the cause; the one that is not reached is named, because opening a port fixes it.
    if (!failures.all_to(host)) continue;
    const std::set<int> from = failures.to[host];
    std::vector<std::string> names;
    for (const int f : from) names.push_back(name(f));
    const std::string address =
        candidates.tried[static_cast<std::size_t>(picks[static_cast<std::size_t>(tally.namespaces[h])])].address.text();
    const std::string text = name(host) + " accepts no connections from the other hosts (" + address + " " +
                             words[{*from.begin(), host}] + " from " + list_some(names, kHostsShown) +
                             "): " + kWhoNeedsBoth;
    out.push_back(text);
    for (const int f : from) failures.forget(f, host);
  }
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const int host = static_cast<int>(h);
    if (!failures.all_from(host)) continue;
    const std::set<int> to = failures.from[host];
    out.push_back(name(host) + " can't connect to the other hosts (" + words[{host, *to.begin()}] +
                  "): " + kWhoNeedsBoth);
    for (const int t : to) failures.forget(host, t);
  }
  std::vector<std::string> pairs;
  for (const auto& [from, targets] : failures.from) {
    for (const int to : targets) pairs.push_back(name(from) + " to " + name(to) + " (" + words[{from, to}] + ")");
  }
  if (!pairs.empty()) {
    out.push_back("no connection from " + list_some(pairs, kHostsShown) + ": " + kWhoNeedsBoth);
  }
  return out;
}

}  // namespace drun::netdetect
