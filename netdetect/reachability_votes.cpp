#include "netdetect/reachability_votes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace drun::netdetect {

ReachabilityVotes tally_results(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                                const std::vector<AttemptResult>& results) {
  ReachabilityVotes tally;
  tally.namespaces = number_namespaces(hosts);
  for (const int number : tally.namespaces) tally.n_namespaces = std::max(tally.n_namespaces, number + 1);
  tally.candidates.resize(candidates.tried.size());

  const auto namespace_of = [&](int host) { return tally.namespaces[static_cast<std::size_t>(host)]; };
  std::map<std::pair<int, std::string>, std::vector<const AttemptResult*>> by_address;
  const auto key = [&](const Candidate& c) { return std::make_pair(namespace_of(c.host), c.address.bytes); };
  for (const auto& result : results) {
    const auto c = static_cast<std::size_t>(result.attempt.candidate);
    const auto from = static_cast<std::size_t>(result.attempt.from);
    if (c >= candidates.tried.size() || from >= hosts.size()) continue;
    const Candidate& candidate = candidates.tried[c];
    if (namespace_of(result.attempt.from) == namespace_of(candidate.host)) continue;
    by_address[key(candidate)].push_back(&result);
  }

  for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
    const auto found = by_address.find(key(candidates.tried[c]));
    if (found == by_address.end()) continue;
    CandidateVotes& out = tally.candidates[c];
    out.attempts = found->second;
    out.good = std::all_of(out.attempts.begin(), out.attempts.end(), [](const auto* a) { return reached(*a); });
    std::vector<std::uint32_t> times;
    for (const auto* attempt : out.attempts) {
      if (reached(*attempt)) times.push_back(attempt->result.micros);
    }
    if (times.empty()) continue;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    out.median_micros = *middle;
  }
  return tally;
}

}  // namespace drun::netdetect
