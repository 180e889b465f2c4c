#include "netdetect/reachability_matrix.h"

#include <algorithm>
#include <cstddef>

namespace drun::netdetect {

ReachabilityMatrix::ReachabilityMatrix(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                                       const ReachabilityVotes& tally)
    : hosts_(hosts),
      candidates_(candidates),
      namespaces_(tally.namespaces),
      at_(candidates.tried.size()),
      neighbors_(static_cast<std::size_t>(tally.n_namespaces)),
      left_(static_cast<std::size_t>(tally.n_namespaces)) {
  for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
    const int to = namespaces_[static_cast<std::size_t>(candidates.tried[c].host)];
    for (const AttemptResult* a : tally.candidates[c].attempts) {
      const int from = namespaces_[static_cast<std::size_t>(a->attempt.from)];
      Reach& outcome = at_[c][from];
      if (outcome != Reach::kFailed) outcome = reached(*a) ? Reach::kReached : Reach::kFailed;
      neighbors_[static_cast<std::size_t>(from)].insert(to);
      neighbors_[static_cast<std::size_t>(to)].insert(from);
      if (!reached(*a)) continue;
      const std::string source = parse_address(a->result.source).bytes;
      if (!source.empty()) left_[static_cast<std::size_t>(from)][static_cast<int>(c)].insert(source);
    }
    for (const auto& [from, outcome] : at_[c]) {
      Reach& any = between_[{from, to}];
      any = std::max(any, outcome);
    }
  }
}

Reach ReachabilityMatrix::at(int from, int candidate) const {
  if (candidate < 0) return Reach::kUntried;
  const auto& ways = at_[static_cast<std::size_t>(candidate)];
  const auto found = ways.find(from);
  return found == ways.end() ? Reach::kUntried : found->second;
}

Reach ReachabilityMatrix::between(int from, int to) const {
  const auto found = between_.find({from, to});
  return found == between_.end() ? Reach::kUntried : found->second;
}

bool ReachabilityMatrix::unconnected_at(int a, int candidate_of_a, int b, int candidate_of_b) const {
  return never(at(a, candidate_of_b), at(b, candidate_of_a));
}

bool ReachabilityMatrix::is_source(int candidate, const std::string& source) const {
  const Candidate& c = candidates_.tried[static_cast<std::size_t>(candidate)];
  if (c.address.bytes.size() != source.size()) return false;
  const auto& nic = hosts_[static_cast<std::size_t>(c.host)].interfaces[static_cast<std::size_t>(c.interface)];
  return std::any_of(nic.addresses.begin(), nic.addresses.end(),
                     [&](const Address& address) { return address.bytes == source; });
}

int ReachabilityMatrix::n_reached_from(int candidate, const std::vector<int>& targets) const {
  const int host = candidates_.tried[static_cast<std::size_t>(candidate)].host;
  const auto& left = left_[static_cast<std::size_t>(namespaces_[static_cast<std::size_t>(host)])];
  int n = 0;
  for (const int target : targets) {
    const auto found = left.find(target);
    if (found == left.end()) continue;
    n += std::any_of(found->second.begin(), found->second.end(),
                     [&](const std::string& source) { return is_source(candidate, source); })
             ? 1
             : 0;
  }
  return n;
}

bool ReachabilityMatrix::reaches_any_from(int candidate) const {
  const int host = candidates_.tried[static_cast<std::size_t>(candidate)].host;
  const auto& left = left_[static_cast<std::size_t>(namespaces_[static_cast<std::size_t>(host)])];
  return std::any_of(left.begin(), left.end(), [&](const auto& target) {
    return std::any_of(target.second.begin(), target.second.end(),
                       [&](const std::string& source) { return is_source(candidate, source); });
  });
}

}  // namespace drun::netdetect
