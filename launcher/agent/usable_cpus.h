// How many processors the workers of this host may use at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace drun::agent {

// Those that the scheduler lets us on, but not more than the CPU quota of our cgroup allows; at least 1.
int usable_cpus();

// In processors, 1.5 say: the lowest of our cgroup's and of those above it, of versions 1 and 2. Nothing: there is
// none. `root` stands before every path that is read: "" but for tests.
std::optional<double> cpu_quota(const std::string& root);
// Parses the text of cpu.max: "150000 100000" is 1.5; "max 100000" is no quota.
std::optional<double> parse_cpu_max(std::string_view text);

}  // namespace drun::agent
