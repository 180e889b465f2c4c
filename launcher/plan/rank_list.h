// Parses rank lists such as `0,8-15`. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace drun::launcher {

// Returns, by rank, true if the rank is listed. Errors (kUsage, with `option` as the subject) name the first bad item;
// a rank that no worker has is an error.
Result<std::vector<bool>> parse_rank_list(const std::string& text, int n_ranks, const std::string& option);

// "0-6,8", of sorted ranks.
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace drun::launcher
