// Attributes bad directions of pairs: to a host if most of its links are bad, otherwise to the single link. Pure.
#pragma once

#include <set>
#include <vector>

#include "netdetect/link_stats.h"

namespace drun::check {

struct Attribution {
  std::set<int> senders;                // hosts whose sending is bad
  std::set<int> receivers;              // hosts whose receiving is bad
  std::set<netdetect::HostPair> pairs;  // bad directions that neither end explains

  bool blames(int host, bool sends) const { return (sends ? senders : receivers).contains(host); }
  bool host(int h) const { return senders.contains(h) || receivers.contains(h); }
  std::set<int> hosts() const;
};

// `bad` is a subset of `measured`. A host is faulty in sending if at least two, and at least two thirds, of its
// directions to hosts that are not faulty themselves are bad; likewise in receiving. The worst host comes first, so
// that its faults are not attributed to its peers.
// `doubtful` is a subset of `measured` without `bad`: directions that may be bad or good. They count as bad for a
// sender (receiver) that has a direction in `bad`, too; alone they make no host faulty.
Attribution attribute_links(const std::set<netdetect::HostPair>& measured, const std::set<netdetect::HostPair>& bad,
                            const std::set<netdetect::HostPair>& doubtful = {});

}  // namespace drun::check
