// What all attempts say together about each candidate. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "netdetect/choose.h"

namespace drun::netdetect {

struct CandidateTally {
  std::vector<const AttemptResult*> attempts;  // by its peers; into the results that were tallied
  bool good = false;                           // tried, and reached by every one
  std::uint32_t median_micros = 0;             // of those that reached it
};

struct Tally {
  std::vector<CandidateTally> candidates;  // by candidate
  std::vector<int> namespaces;             // by host
  int n_namespaces = 0;
};

// Hosts of one network namespace have the same addresses: what is known of one's counts for the others'. `results`
// must outlive the tally. Results that name no host or candidate are ignored.
Tally tally_results(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                    const std::vector<AttemptResult>& results);

inline bool reached(const AttemptResult& result) { return result.result.outcome == ProbeOutcome::kReached; }

}  // namespace drun::netdetect
