// Decides which pairs of hosts are measured when, so that no host is in two measurements at the same time. Pure: the
// caller does the measurements.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "netdetect/rounds.h"

namespace drun::launcher {

// States of a pair: waiting -> running (begin) -> ended (end); or waiting -> skipped (begin).
class PairScheduler {
 public:
  // The order of the pairs is that of `rounds`, each of which a pair is in at most once, except that those in `late`
  // come after the other pairs of their hosts.
  PairScheduler(const std::vector<netdetect::Round>& rounds, const std::set<netdetect::HostPair>& late);

  // The pairs that begin now, because both of their hosts are free. Skips waiting pairs with a host in `skipped`.
  std::vector<netdetect::HostPair> begin(const std::set<int>& skipped);
  // The measurement of a pair that begin() returned has ended.
  void end(const netdetect::HostPair& pair);

  std::size_t n_pairs() const { return n_pairs_; }  // in all states
  std::size_t n_waiting() const { return waiting_.size() + late_.size(); }
  const std::set<int>& skipped_hosts() const { return skipped_hosts_; }  // because of which pairs were skipped

 private:
  bool leaves_queue(const netdetect::HostPair& pair, const std::set<int>& skipped,
                    std::vector<netdetect::HostPair>& begun);

  std::vector<netdetect::HostPair> waiting_, late_;
  std::set<int> idle_;  // hosts that are in no running measurement
  std::set<int> skipped_hosts_;
  std::size_t n_pairs_ = 0;
};

}  // namespace drun::launcher
