// Findings on hosts, cables and paths from measured links: the verdicts of link_verdicts.h and link_limits.h in words.
// Pure. docs/check.md has the thresholds and every code.
#pragma once

#include <vector>

#include "check/finding.h"
#include "check/link_host.h"
#include "netdetect/link.h"

namespace drun::check {

std::vector<Finding> link_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report);

}  // namespace drun::check
