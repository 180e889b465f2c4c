// Who connects to whom, as all attempts say together, by network namespace. Pure.
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

  // All hosts of namespace `from` that tried the candidate reached it.
  Way at(int from, int candidate) const;
  // At some address.
  Way between(int from, int to) const;
  // Both directions are known not to work, or the one that was tried, at whatever address.
  bool unconnected(int a, int b) const { return never(between(a, b), between(b, a)); }
  // The same at these candidates; a negative one is not known.
  bool unconnected_at(int a, int candidate_of_a, int b, int candidate_of_b) const;
  // Those that tried this namespace, or that it tried.
  const std::set<int>& neighbours(int of) const { return neighbours_[static_cast<std::size_t>(of)]; }
  // How many of `targets` (candidates) the namespace of `candidate` reached by packets that left with an address of the
  // candidate's own interface.
  int n_reached_from(int candidate, const std::vector<int>& targets) const;
  // The same, of any.
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
  std::vector<std::map<int, std::set<std::string>>> left_;  // by namespace: candidate reached, addresses it left with
};

}  // namespace drun::netdetect
