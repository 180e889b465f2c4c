// Finds faulty hosts and pairs of hosts by the measurements of their links and those of others. Pure: data, and
// the function that derives it. link_findings.h puts it into words. docs/check.md has the thresholds.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "check/link_host.h"
#include "netdetect/link.h"
#include "netdetect/link_stats.h"

namespace drun::check {

// The directions by which a host or a pair is judged: those of the second pass, else those of the first.
using Evidence = std::vector<std::pair<netdetect::HostPair, netdetect::Edge>>;

// The median of the rates that were measured, bits/s; 0: none was.
double typical_rate(const Evidence& evidence);
// Share of all segments of these directions that were lost.
double loss_of(const Evidence& evidence);

// A link that loses segments is slow as well: then the loss is the fault.
enum class LinkFault : std::uint8_t { kNone, kLoss, kSlow, kAsymmetric };

// A host whose links to good hosts are bad.
struct HostVerdict {
  int host = 0;
  LinkFault fault = LinkFault::kNone;      // kNone: the host is only far
  bool slow_out = false, slow_in = false;  // in sending, in receiving
  bool lossy_out = false, lossy_in = false;
  bool far = false;       // its round trips are long
  bool again = false;     // judged by the second pass; else by the first
  Evidence out, in;       // directions to good hosts, from good hosts
  double usual_rate = 0;  // of healthy hosts in the same pass, bits/s
};

// A pair whose links are bad although those of both hosts with others are good, or the only pair that there is.
struct PairVerdict {
  netdetect::HostPair pair;
  LinkFault fault = LinkFault::kNone;  // kNone: the pair is only far
  bool alone = false;                  // there are no other hosts
  bool slow_there = false, slow_back = false;
  double loss_there = 0, loss_back = 0;  // 0: not lossy
  bool far = false;
  netdetect::Edge there, back;            // by which the rates are judged
  Evidence evidence;                      // both directions, by which the fault is judged
  double usual_rate = 0;                  // of healthy pairs, bits/s
  bool compared_with_each_other = false;  // the two directions, because there is nothing else to compare with
};

struct LinkVerdicts {
  std::vector<HostVerdict> hosts;
  std::vector<PairVerdict> pairs;
  // The host that is in all of several lossy pairs; these are not in `pairs` as lossy.
  std::optional<HostVerdict> shared_by_lossy_pairs;
  Evidence controls;        // pairs of good hosts in the second pass, to compare with
  double usual_rtt_us = 0;  // of these; 0: unknown
};

// A problem that only the first pass shows does not count, unless a host was not measured again and the first pass is
// clear: all its links are ten times slower than usual, or its paced streams lost much; or its connections broke off
// in the second pass.
LinkVerdicts judge_links(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report);

}  // namespace drun::check
