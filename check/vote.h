// Majority vote: the value that most hosts have, and the hosts with another value. Pure.
#pragma once

#include <string>
#include <vector>

namespace drun::check {

struct Ballot {
  int host = 0;
  std::string value;
};

struct Vote {
  struct Group {
    std::string value;
    std::vector<int> hosts;
  };
  std::vector<Group> groups;  // most hosts first; equal ones in the order of their first hosts
  bool tie = false;           // no group is larger than all others: no host is known to be wrong
  bool unanimous() const { return groups.size() <= 1; }
};

Vote count_votes(const std::vector<Ballot>& ballots);

}  // namespace drun::check
