#include "check/link_attribution.h"

#include <map>
#include <optional>
#include <tuple>

namespace drun::check {
namespace {

struct Count {
  int n_bad = 0, n_doubtful = 0, n = 0;

  int n_wrong() const { return n_bad == 0 ? 0 : n_bad + n_doubtful; }
};

}  // namespace

std::set<int> Attribution::hosts() const {
  std::set<int> out = senders;
  out.insert(receivers.begin(), receivers.end());
  return out;
}

Attribution attribute_links(const std::set<netdetect::HostPair>& measured, const std::set<netdetect::HostPair>& bad,
                            const std::set<netdetect::HostPair>& doubtful) {
  Attribution out;
  const auto explained = [&](const netdetect::HostPair& pair) {
    return out.senders.contains(pair.first) || out.receivers.contains(pair.second);
  };
  for (;;) {
    std::map<std::pair<int, bool>, Count> counts;  // by host and direction; true: it sends
    for (const netdetect::HostPair& pair : measured) {
      if (explained(pair)) continue;
      for (Count* count : {&counts[{pair.first, true}], &counts[{pair.second, false}]}) {
        count->n += 1;
        count->n_bad += bad.contains(pair) ? 1 : 0;
        count->n_doubtful += doubtful.contains(pair) ? 1 : 0;
      }
    }
    std::optional<std::pair<int, bool>> worst;
    Count of_worst;
    for (const auto& [side, count] : counts) {
      const int n_wrong = count.n_wrong(), most = of_worst.n_wrong();
      if (n_wrong < 2 || 3 * n_wrong < 2 * count.n) continue;
      const int left = n_wrong * of_worst.n, right = most * count.n;  // shares, compared without division
      if (!worst || left > right || (left == right && n_wrong > most)) {
        worst = side;
        of_worst = count;
      }
    }
    if (!worst) break;
    (worst->second ? out.senders : out.receivers).insert(worst->first);
  }
  for (const netdetect::HostPair& pair : bad) {
    if (!explained(pair)) out.pairs.insert(pair);
  }
  return out;
}

}  // namespace drun::check
