// Reachability between network namespaces, from the results of all attempts. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netdetect/tally.h"

namespace drun::netdetect {

enum class Way : std::uint8_t { kUntried, kFailed, kReached };

class Directions {
 public:
  Directions(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, const Tally& tally);

  // Reachability of a candidate: kReached if all hosts of namespace `from` that tried it reached it.
  Way at(int from, int candidate) const;
  // The best reachability of any candidate of namespace `to`.
  Way between(int from, int to) const;
  // True if neither direction works at any address, and at least one was tried.
  bool unconnected(int a, int b) const { return never(between(a, b), between(b, a)); }
  // The same at these candidates only; a negative index means unknown.
  bool unconnected_at(int a, int candidate_of_a, int b, int candidate_of_b) const;
  // The namespaces that tried this one, or that it tried.
  const std::set<int>& neighbours(int of) const { return neighbours_[static_cast<std::size_t>(of)]; }
  // Number of `targets` (candidates) that the namespace of `candidate` reached with a source address of the
  // candidate's own interface.
  int n_reached_from(int candidate, const std::vector<int>& targets) const;
  // True if it reached any candidate with such a source address.
  bool reaches_any_from(int candidate) const;

 private:
  static bool never(Way there, Way back) {
    return there != Way::kReached && back != Way::kReached && (there == Way::kFailed || back == Way::kFailed);
  }
  bool is_source(int candidate, const std::string& source) const;

  const std::vector<HostInterfaces>& hosts_;
  const Candidates& candidates_;
  std::vector<int> namespaces_;
  std::vector<std::map<int, Way>> at_;                      // by candidate: from
  std::map<std::pair<int, int>, Way> between_;              // from, to
  std::vector<std::set<int>> neighbours_;                   // by namespace
  std::vector<std::map<int, std::set<std::string>>> left_;  // by namespace: candidate reached, source addresses
};

}  // namespace drun::netdetect
