#include "netdetect/link_blame.h"

#include <map>
#include <optional>
#include <tuple>

namespace drun::netdetect {
namespace {

struct Count {
  int n_bad = 0, n = 0;
};

}  // namespace

std::set<int> Blame::hosts() const {
  std::set<int> out = senders;
  out.insert(receivers.begin(), receivers.end());
  return out;
}

Blame blame_links(const std::set<HostPair>& measured, const std::set<HostPair>& bad) {
  Blame out;
  const auto explained = [&](const HostPair& pair) {
    return out.senders.contains(pair.first) || out.receivers.contains(pair.second);
  };
  for (;;) {
    std::map<std::pair<int, bool>, Count> counts;  // by host, and whether it is what it sends
    for (const HostPair& pair : measured) {
      if (explained(pair)) continue;
      const int n_bad = bad.contains(pair) ? 1 : 0;
      for (Count* count : {&counts[{pair.first, true}], &counts[{pair.second, false}]}) {
        count->n += 1;
        count->n_bad += n_bad;
      }
    }
    std::optional<std::pair<int, bool>> worst;
    Count of_worst;
    for (const auto& [side, count] : counts) {
      if (count.n_bad < 2 || 3 * count.n_bad < 2 * count.n) continue;
      const int left = count.n_bad * of_worst.n, right = of_worst.n_bad * count.n;  // shares, compared without division
      if (!worst || left > right || (left == right && count.n_bad > of_worst.n_bad)) {
        worst = side;
        of_worst = count;
      }
    }
    if (!worst) break;
    (worst->second ? out.senders : out.receivers).insert(worst->first);
  }
  for (const HostPair& pair : bad) {
    if (!explained(pair)) out.pairs.insert(pair);
  }
  return out;
}

}  // namespace drun::netdetect
