#include "netdetect/later_attempts.h"

#include "netdetect/network.h"
#include "netdetect/reachability_votes.h"

namespace drun::netdetect {

namespace {
constexpr std::size_t kSecondOpinions = 4;
}

LaterAttempts::LaterAttempts(const AttemptResults& results, const Candidates& candidates)
    : results_(results), candidates_(candidates) {
  for (const auto& [key, result] : results) {
    const auto [from, index] = key;
    const Candidate& at = candidate(index);
    tried_.emplace(from, at.host);
    if (!reached(result)) continue;
    met_.emplace(from, at.host);
    if (addresses_.insert(index).second) networks_.insert(network_text(at.address));
  }
}

std::vector<Attempt> LaterAttempts::unanswered(Unanswered which) const {
  std::vector<Attempt> out;
  for (const auto& [key, result] : results_) {
    const ProbeOutcome outcome = result.result.outcome;
    if (outcome != ProbeOutcome::kTimedOut && outcome != ProbeOutcome::kWrongPeer) continue;
    if (is_meant(key.second, which)) out.push_back(result.attempt);
  }
  return out;
}

bool LaterAttempts::is_meant(int index, Unanswered which) const {
  if (which == Unanswered::kAtReachedAddresses) return addresses_.count(index) > 0;
  if (which == Unanswered::kInReachedNetworks) return networks_.count(network_text(candidate(index).address)) > 0;
  return true;
}

std::vector<Attempt> LaterAttempts::untried(const std::vector<int>& anomalies) const {
  std::set<std::pair<int, int>> wanted;
  for (const auto& [from, to] : tried_) {
    if (met_.count({from, to}) == 0) wanted.emplace(to, from);
  }
  if (anomalies.size() <= kFullPlanHosts) {
    for (const int from : anomalies) {
      for (const int to : anomalies) wanted.emplace(from, to);
    }
    const std::set<int> known(anomalies.begin(), anomalies.end());
    for (const int to : known) {
      for (const int from : second_opinions(to, known)) {
        wanted.emplace(from, to);
        wanted.emplace(to, from);  // one direction is enough for them
      }
    }
  }
  std::vector<Attempt> out;
  for (const auto& [from, to] : wanted) {
    if (tried_.count({from, to}) > 0 || is_one_namespace(from, to)) continue;
    for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
      if (candidates_.tried[c].host == to) out.push_back({from, static_cast<int>(c)});
    }
  }
  return out;
}

// Up to kSecondOpinions hosts that have not tried `to`, from the one on that is farthest from it in the ring.
std::vector<int> LaterAttempts::second_opinions(int to, const std::set<int>& anomalies) const {
  const int n = static_cast<int>(candidates_.namespaces.size());
  std::vector<int> out;
  for (int i = 0; i < n && out.size() < kSecondOpinions; ++i) {
    const int from = (to + n / 2 + i) % n;
    if (anomalies.count(from) == 0 && tried_.count({from, to}) == 0 && !is_one_namespace(from, to)) out.push_back(from);
  }
  return out;
}

bool LaterAttempts::is_one_namespace(int a, int b) const {
  return candidates_.namespaces[static_cast<std::size_t>(a)] == candidates_.namespaces[static_cast<std::size_t>(b)];
}

}  // namespace drun::netdetect
