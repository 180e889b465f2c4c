// How many processors the workers of this host may use at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun::agent {

// Those that the scheduler lets us on, but not more than the CPU quota of our cgroup allows; at least 1.
int usable_cpus();
// Their numbers, in order: those that are online, and that the cpuset of our cgroup and our own affinity leave us.
// Empty: the kernel does not tell.
std::vector<int> cpus_of_affinity();

// In processors, 1.5 say: the lowest of our cgroup's and of those above it, of versions 1 and 2. Nothing: there is
// none. `root` stands before every path that is read: "" but for tests.
std::optional<double> cpu_quota(const std::string& root);
// Parses the text of cpu.max: "150000 100000" is 1.5; "max 100000" is no quota.
std::optional<double> parse_cpu_max(std::string_view text);

}  // namespace drun::agent
