// Reachability between network namespaces, from the results of all attempts. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netdetect/reachability_votes.h"

namespace drun::netdetect {

enum class Reach : std::uint8_t { kUntried, kFailed, kReached };

class ReachabilityMatrix {
 public:
  ReachabilityMatrix(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                     const ReachabilityVotes& tally);

  // Reachability of a candidate: kReached if all hosts of namespace `from` that tried it reached it.
  Reach at(int from, int candidate) const;
  // The best reachability of any candidate of namespace `to`.
  Reach between(int from, int to) const;
  // True if neither direction works at any address, and at least one was tried.
  bool unconnected(int a, int b) const { return never(between(a, b), between(b, a)); }
  // The same at these candidates only; a negative index means unknown.
  bool unconnected_at(int a, int candidate_of_a, int b, int candidate_of_b) const;
  // The namespaces that tried this one, or that it tried.
  const std::set<int>& neighbors(int of) const { return neighbors_[static_cast<std::size_t>(of)]; }
  // Number of `targets` (candidates) that the namespace of `candidate` reached with a source address of the
  // candidate's own interface.
  int n_reached_from(int candidate, const std::vector<int>& targets) const;
  // True if it reached any candidate with such a source address.
  bool reaches_any_from(int candidate) const;

 private:
  static bool never(Reach there, Reach back) {
    return there != Reach::kReached && back != Reach::kReached && (there == Reach::kFailed || back == Reach::kFailed);
  }
  bool is_source(int candidate, const std::string& source) const;

  const std::vector<HostInterfaces>& hosts_;
  const Candidates& candidates_;
  std::vector<int> namespaces_;
  std::vector<std::map<int, Reach>> at_;                    // by candidate: from
  std::map<std::pair<int, int>, Reach> between_;            // from, to
  std::vector<std::set<int>> neighbors_;                    // by namespace
  std::vector<std::map<int, std::set<std::string>>> left_;  // by namespace: candidate reached, source addresses
};

}  // namespace drun::netdetect
