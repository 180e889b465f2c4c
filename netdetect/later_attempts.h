// Plans the later rounds of the probe from what the earlier ones found. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netdetect/choose.h"

namespace drun::netdetect {

// The last result of each attempt, by Attempt::from and Attempt::candidate.
using AttemptResults = std::map<std::pair<int, int>, AttemptResult>;

enum class Unanswered {
  kAll,
  kAtReachedAddresses,  // another host reached the address
  kInReachedNetworks,   // a host reached an address of the same network; with a prefix of /32 as the one above
};

class LaterAttempts {
 public:
  // Both must outlive this.
  LaterAttempts(const AttemptResults& results, const Candidates& candidates);

  // Attempts that timed out, or got no valid proof in time: a segment may have been lost.
  std::vector<Attempt> unanswered(Unanswered which) const;
  // For plans that had only a part of all pairs: the other direction of pairs that failed, and, if `anomalies` are at
  // most kFullPlanHosts, all pairs of these, because any two hosts of a job must be able to connect, and those of each
  // with 4 other hosts: the few that tried it may be at fault themselves.
  std::vector<Attempt> untried(const std::vector<int>& anomalies) const;

 private:
  const Candidate& candidate(int index) const { return candidates_.tried[static_cast<std::size_t>(index)]; }
  bool is_meant(int index, Unanswered which) const;
  bool is_one_namespace(int a, int b) const;
  std::vector<int> second_opinions(int to, const std::set<int>& anomalies) const;

  const AttemptResults& results_;
  const Candidates& candidates_;
  std::set<int> addresses_;                    // candidates that were reached
  std::set<std::string> networks_;             // their networks, as text
  std::set<std::pair<int, int>> tried_, met_;  // hosts: from, to
};

}  // namespace drun::netdetect
