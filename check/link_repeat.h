// Plans the second pass: which pairs of hosts are measured again. Pure. docs/check.md, step 5.
#pragma once

#include <utility>
#include <vector>

#include "check/link_host.h"
#include "netdetect/link.h"

namespace drun::check {

// The pairs to measure again, one at a time, in this order, so that verdicts name hosts: anomalies with hosts that
// look good, and good hosts with each other, to compare with. A pair between two good hosts that looks bad comes
// twice. Empty: nothing looks bad. `also`: pairs to include in any case (from a baseline). At most `limit` pairs;
// negative: twice the number of hosts. The first pairs are useful without the rest.
std::vector<std::pair<int, int>> pairs_to_repeat(const std::vector<LinkHost>& hosts,
                                                 const std::vector<netdetect::Link>& first_pass,
                                                 const std::vector<std::pair<int, int>>& also = {}, int limit = -1);

}  // namespace drun::check
