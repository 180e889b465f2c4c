// Findings on links that need no comparison with other links: what the interface promises, what a wrong negotiation
// looks like, MTUs, and what all hosts at once can do. Pure. Parts of link_findings().
#pragma once

#include <set>
#include <string>
#include <vector>

#include "check/link_findings.h"

namespace drun::check {

// 10 or 100 if a rate looks like what a link that was negotiated at 10 or 100 Mb/s carries; else 0.
int negotiated_mbps(double bits_per_second);
// "; a link that was negotiated at 100 Mb/s does that"; "" if it does not look so.
std::string negotiated_words(double bits_per_second);

// link-not-measured: the hosts reach each other, and yet no data came through. `lossy`: hosts that are known to lose
// frames, which is why a single connection of theirs may come too late.
std::vector<Finding> unmeasured_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report,
                                         const std::set<int>& lossy);
// link-slow (as 10 or 100 Mb/s), link-below-nominal; not for hosts in `named`, whose links have a finding already.
std::vector<Finding> rate_limit_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report,
                                         const std::set<int>& named);
// mtu-mismatch, mtu-path.
std::vector<Finding> mtu_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report);
// link-oversubscribed, more-streams: not between containers of one machine, whose links are its processor.
std::vector<Finding> sharing_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report,
                                      const std::set<int>& named);

}  // namespace drun::check
