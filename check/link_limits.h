// Findings on links that need no comparison with other links: nominal speeds, signs of a wrong negotiation, MTUs, and
// rates with all hosts at once. Pure. Parts of link_findings().
#pragma once

#include <set>
#include <string>
#include <vector>

#include "check/finding.h"
#include "check/link_host.h"
#include "netdetect/link.h"

namespace drun::check {

// 10 or 100 if a rate is typical of a link that was negotiated at 10 or 100 Mb/s; else 0.
int negotiated_mbps(double bits_per_second);
// "; a link that was negotiated at 100 Mb/s does that"; "" if negotiated_mbps() is 0.
std::string negotiated_words(double bits_per_second);

// link-not-measured: the hosts reach each other, but no data came through. `lossy`: hosts that are known to lose
// frames, which explains why a single connection of theirs may be late.
std::vector<Finding> unmeasured_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report,
                                         const std::set<int>& lossy);
// link-slow (as 10 or 100 Mb/s), link-below-nominal; not for hosts in `named`, which already have a finding about rates
// or loss, nor for those whose only measured peer may be the reason.
std::vector<Finding> rate_limit_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report,
                                         const std::set<int>& named);
// mtu-mismatch, mtu-path.
std::vector<Finding> mtu_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report);
// link-oversubscribed, more-streams: not between containers of one machine, whose processor carries their links.
std::vector<Finding> sharing_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report,
                                      const std::set<int>& named);

}  // namespace drun::check
