// The hosts and tasks of a Slurm job, from its environment. Private to launcher/plan/allocation.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/plan/allocation.h"

namespace drun::launcher {

// Returns nothing outside a Slurm job.
Result<std::optional<Allocation>> slurm_allocation(const Environment& env);

// Parses counts of tasks or processors by node, as Slurm writes them: "2(x3),1" is 2, 2, 2, 1. Returns nothing if the
// text is malformed.
std::optional<std::vector<int>> parse_slurm_counts(std::string_view text);

}  // namespace drun::launcher
