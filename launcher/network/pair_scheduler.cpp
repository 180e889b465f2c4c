#include "launcher/network/pair_scheduler.h"

namespace drun::launcher {

using netdetect::HostPair;

PairScheduler::PairScheduler(const std::vector<netdetect::Round>& rounds, const std::set<HostPair>& late) {
  for (const auto& round : rounds) {
    for (const HostPair& pair : round) {
      (late.contains(pair) ? late_ : waiting_).push_back(pair);
      idle_.insert({pair.first, pair.second});
    }
  }
  n_pairs_ = n_waiting();
}

std::vector<HostPair> PairScheduler::begin(const std::set<int>& skipped) {
  std::vector<HostPair> begun;
  std::erase_if(waiting_, [&](const HostPair& pair) { return leaves_queue(pair, skipped, begun); });
  std::set<int> wanted;  // by pairs that are measured first
  for (const auto& [a, b] : waiting_) wanted.insert({a, b});
  std::erase_if(late_, [&](const HostPair& pair) {
    return !wanted.contains(pair.first) && !wanted.contains(pair.second) && leaves_queue(pair, skipped, begun);
  });
  return begun;
}

// Begins or skips a waiting pair; false: it goes on waiting.
bool PairScheduler::leaves_queue(const HostPair& pair, const std::set<int>& skipped, std::vector<HostPair>& begun) {
  const auto [a, b] = pair;
  const int host = skipped.contains(a) ? a : b;
  if (skipped.contains(host)) {
    skipped_hosts_.insert(host);
    return true;
  }
  if (!idle_.contains(a) || !idle_.contains(b)) return false;
  idle_.erase(a);
  idle_.erase(b);
  begun.push_back(pair);
  return true;
}

void PairScheduler::end(const HostPair& pair) { idle_.insert({pair.first, pair.second}); }

}  // namespace drun::launcher
