// The hosts of a job of LSF, PBS, Grid Engine or OAR. Most of these schedulers list them in a file that the environment
// names. Private to launcher/plan/allocation.cpp.
#pragma once

#include <optional>

#include "launcher/plan/allocation.h"

namespace drun::launcher {

// Each returns nothing outside a job of its scheduler.
Result<std::optional<Allocation>> lsf_allocation(const Environment& env, const ReadFile& read);
Result<std::optional<Allocation>> pbs_allocation(const Environment& env, const ReadFile& read);
Result<std::optional<Allocation>> grid_engine_allocation(const Environment& env, const ReadFile& read);
Result<std::optional<Allocation>> oar_allocation(const Environment& env, const ReadFile& read);

}  // namespace drun::launcher
