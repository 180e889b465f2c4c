#include "check/vote.h"

#include <algorithm>

namespace drun::check {

Vote count_votes(const std::vector<Ballot>& ballots) {
  Vote vote;
  for (const auto& ballot : ballots) {
    const auto known = std::find_if(vote.groups.begin(), vote.groups.end(),
                                    [&](const Vote::Group& g) { return g.value == ballot.value; });
    auto& group = known == vote.groups.end() ? vote.groups.emplace_back() : *known;
    group.value = ballot.value;
    group.hosts.push_back(ballot.host);
  }
  std::stable_sort(vote.groups.begin(), vote.groups.end(),
                   [](const Vote::Group& a, const Vote::Group& b) { return a.hosts.size() > b.hosts.size(); });
  vote.tie = vote.groups.size() > 1 && vote.groups[0].hosts.size() == vote.groups[1].hosts.size();
  return vote;
}

}  // namespace drun::check
