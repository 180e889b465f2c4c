// Findings of `drun check` on interfaces: which one each host got and why, and which poll usable but are not. Pure.
#pragma once

#include <vector>

#include "check/finding.h"
#include "netdetect/choose_subset.h"
#include "netdetect/duplicates.h"
#include "netdetect/reachability_votes.h"

namespace drun::check {

std::vector<Finding> interface_findings(const std::vector<netdetect::HostInterfaces>& hosts,
                                        const netdetect::Candidates& candidates,
                                        const netdetect::ReachabilityVotes& tally, const netdetect::PartialChoice& most,
                                        const std::vector<netdetect::SharedAddress>& shared,
                                        const std::vector<int>& gone);

}  // namespace drun::check
