#include "netdetect/blame.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

namespace drun::netdetect {
namespace {

// The hosts that are still held innocent, and what fails among them.
class Innocents {
 public:
  Innocents(int n_hosts, const Candidates& candidates, const Tally& tally)
      : tally_(tally), hosts_(static_cast<std::size_t>(n_hosts)), n_failures_(candidates.tried.size(), 0) {
    std::map<std::pair<int, int>, bool> pairs;  // from, to: reached at some address
    for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
      const int to = candidates.tried[c].host;
      at(to).candidates.push_back(c);
      for (const AttemptResult* a : tally.candidates[c].attempts) {
        pairs[{a->attempt.from, to}] |= reached(*a);
        if (reached(*a)) continue;
        ++n_failures_[c];
        at(a->attempt.from).failed_at.push_back(c);
      }
    }
    for (const auto& [pair, ok] : pairs) {
      if (ok) continue;
      ++at(pair.first).n_failed_pairs;
      ++at(pair.second).n_failed_pairs;
      at(pair.first).failed_with.push_back(pair.second);
      at(pair.second).failed_with.push_back(pair.first);
    }
  }

  // The one to take out next; -1 when every one has a good candidate.
  int worst() const {
    int out = -1;
    std::tuple<bool, int, bool> out_weight;
    bool all_good = true;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if (hosts_[h].gone) continue;
      const bool lacks = !has_good(hosts_[h]);
      all_good = all_good && !lacks;
      // A host without any candidate is at fault for certain.
      const auto weight = std::make_tuple(hosts_[h].candidates.empty(), hosts_[h].n_failed_pairs, lacks);
      if (out >= 0 && weight <= out_weight) continue;
      out = static_cast<int>(h);
      out_weight = weight;
    }
    return all_good ? -1 : out;
  }

  void remove(int host) {
    at(host).gone = true;
    for (const std::size_t c : at(host).failed_at) --n_failures_[c];
    for (const int other : at(host).failed_with) --at(other).n_failed_pairs;
  }

 private:
  struct Host {
    bool gone = false;
    std::vector<std::size_t> candidates;  // its own
    std::vector<std::size_t> failed_at;   // others' that it did not reach
    std::vector<int> failed_with;         // once per direction in which no address was reached
    int n_failed_pairs = 0;               // of these, with hosts that are still in
  };

  Host& at(int host) { return hosts_[static_cast<std::size_t>(host)]; }

  bool has_good(const Host& host) const {
    return std::any_of(host.candidates.begin(), host.candidates.end(),
                       [this](std::size_t c) { return !tally_.candidates[c].attempts.empty() && n_failures_[c] == 0; });
  }

  const Tally& tally_;
  std::vector<Host> hosts_;
  std::vector<int> n_failures_;  // by candidate: attempts by hosts that are still in
};

}  // namespace

std::vector<int> find_guilty(int n_hosts, const Candidates& candidates, const Tally& tally) {
  Innocents innocents(n_hosts, candidates, tally);
  std::vector<int> guilty;
  while (guilty.size() * 2 <= static_cast<std::size_t>(n_hosts)) {
    const int worst = innocents.worst();
    if (worst < 0) break;
    guilty.push_back(worst);
    innocents.remove(worst);
  }
  return guilty;
}

}  // namespace drun::netdetect
