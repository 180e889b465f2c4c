// `0,8-15` as ranks. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace drun::launcher {

// By rank, whether it is listed. Errors (kUsage, with `option` as the subject) name the first bad item; ranks of no
// worker are among them.
Result<std::vector<bool>> parse_rank_list(const std::string& text, int n_ranks, const std::string& option);

// "0-6,8" of ranks in order.
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace drun::launcher
