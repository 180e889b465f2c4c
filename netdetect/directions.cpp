#include "netdetect/directions.h"

#include <algorithm>
#include <cstddef>

namespace drun::netdetect {

Directions::Directions(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, const Tally& tally)
    : hosts_(hosts),
      candidates_(candidates),
      namespaces_(tally.namespaces),
      at_(candidates.tried.size()),
      neighbours_(static_cast<std::size_t>(tally.n_namespaces)),
      left_(static_cast<std::size_t>(tally.n_namespaces)) {
  for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
    const int to = namespaces_[static_cast<std::size_t>(candidates.tried[c].host)];
    for (const AttemptResult* a : tally.candidates[c].attempts) {
      const int from = namespaces_[static_cast<std::size_t>(a->attempt.from)];
      Way& way = at_[c][from];
      if (way != Way::kFailed) way = reached(*a) ? Way::kReached : Way::kFailed;
      neighbours_[static_cast<std::size_t>(from)].insert(to);
      neighbours_[static_cast<std::size_t>(to)].insert(from);
      if (!reached(*a)) continue;
      const std::string source = parse_address(a->result.source).bytes;
      if (!source.empty()) left_[static_cast<std::size_t>(from)][static_cast<int>(c)].insert(source);
    }
    for (const auto& [from, way] : at_[c]) {
      Way& any = between_[{from, to}];
      any = std::max(any, way);
    }
  }
}

Way Directions::at(int from, int candidate) const {
  if (candidate < 0) return Way::kUntried;
  const auto& ways = at_[static_cast<std::size_t>(candidate)];
  const auto found = ways.find(from);
  return found == ways.end() ? Way::kUntried : found->second;
}

Way Directions::between(int from, int to) const {
  const auto found = between_.find({from, to});
  return found == between_.end() ? Way::kUntried : found->second;
}

bool Directions::unconnected_at(int a, int candidate_of_a, int b, int candidate_of_b) const {
  return never(at(a, candidate_of_b), at(b, candidate_of_a));
}

bool Directions::is_source(int candidate, const std::string& source) const {
  const Candidate& c = candidates_.tried[static_cast<std::size_t>(candidate)];
  if (c.address.bytes.size() != source.size()) return false;
  const auto& nic = hosts_[static_cast<std::size_t>(c.host)].interfaces[static_cast<std::size_t>(c.interface)];
  return std::any_of(nic.addresses.begin(), nic.addresses.end(),
                     [&](const Address& address) { return address.bytes == source; });
}

int Directions::n_reached_from(int candidate, const std::vector<int>& targets) const {
  const int host = candidates_.tried[static_cast<std::size_t>(candidate)].host;
  const auto& left = left_[static_cast<std::size_t>(namespaces_[static_cast<std::size_t>(host)])];
  int n = 0;
  for (const int target : targets) {
    const auto found = left.find(target);
    if (found == left.end()) continue;
    n += std::any_of(found->second.begin(), found->second.end(),
                     [&](const std::string& source) { return is_source(candidate, source); })
             ? 1
             : 0;
  }
  return n;
}

bool Directions::reaches_any_from(int candidate) const {
  const int host = candidates_.tried[static_cast<std::size_t>(candidate)].host;
  const auto& left = left_[static_cast<std::size_t>(namespaces_[static_cast<std::size_t>(host)])];
  return std::any_of(left.begin(), left.end(), [&](const auto& target) {
    return std::any_of(target.second.begin(), target.second.end(),
                       [&](const std::string& source) { return is_source(candidate, source); });
  });
}

}  // namespace drun::netdetect
