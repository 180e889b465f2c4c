// Combines the results of all attempts by candidate. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "netdetect/choose.h"

namespace drun::netdetect {

struct CandidateVotes {
  std::vector<const AttemptResult*> attempts;  // by its peers; point into the tallied results
  bool good = false;                           // tried, and every attempt reached it
  std::uint32_t median_micros = 0;             // of the attempts that reached it
};

struct ReachabilityVotes {
  std::vector<CandidateVotes> candidates;  // by candidate
  std::vector<int> namespaces;             // by host
  int n_namespaces = 0;
};

// Hosts of one network namespace have the same addresses, so a result for one of them counts for all. `results` must
// outlive the tally. Ignores results without a valid host or candidate.
ReachabilityVotes tally_results(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                                const std::vector<AttemptResult>& results);

inline bool reached(const AttemptResult& result) { return result.result.outcome == ProbeOutcome::kReached; }

}  // namespace drun::netdetect
