// From bad directions of pairs to those at fault: a host, of which most links are bad, or the single links that no host
// explains. Pure.
#pragma once

#include <set>
#include <vector>

#include "netdetect/link_stats.h"

namespace drun::check {

struct Blame {
  std::set<int> senders;                // hosts that are bad in what they send
  std::set<int> receivers;              // hosts that are bad in what they receive
  std::set<netdetect::HostPair> pairs;  // bad directions that neither end explains

  bool blames(int host, bool sends) const { return (sends ? senders : receivers).contains(host); }
  bool host(int h) const { return senders.contains(h) || receivers.contains(h); }
  std::set<int> hosts() const;
};

// `bad` is a subset of `measured`. A host is at fault for what it sends if at least two, and two thirds, of its
// directions to hosts that are not at fault themselves are bad; likewise for what it receives. The worst comes first,
// so that a peer of theirs is not blamed for what they did.
// `doubtful`, a subset of `measured` without `bad`: what may be bad or good. It counts as bad for what a host sends
// (receives) if something of that is in `bad`; alone it makes nobody guilty.
Blame blame_links(const std::set<netdetect::HostPair>& measured, const std::set<netdetect::HostPair>& bad,
                  const std::set<netdetect::HostPair>& doubtful = {});

}  // namespace drun::check
