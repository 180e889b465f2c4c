// What most hosts have, and which have something else. Pure.
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
  std::vector<Group> groups;  // most hosts first; of equals, the one whose host came first
  bool tie = false;           // no group is larger than all others: nobody can be blamed
  bool unanimous() const { return groups.size() <= 1; }
};

Vote count_votes(const std::vector<Ballot>& ballots);

}  // namespace drun::check
