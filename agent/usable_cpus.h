// Finds the processors that the workers of this host may use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cgroup.h"

namespace drun::agent {

// Number of CPUs in our affinity mask, limited by the CPU quota of our cgroup; at least 1.
int usable_cpus(const CgroupFiles& files);
// The CPUs of our affinity mask, in order: those that are online and that our cgroup's cpuset and our own affinity
// leave. Empty: the kernel does not report them.
std::vector<int> cpus_of_affinity();

// The CPU quota in processors, for example 1.5: the lowest of our cgroup's and its ancestors', in versions 1 and 2.
// Nothing: there is none. `root` is prepended to every path that is read; "" except in tests.
std::optional<double> cpu_quota(const CgroupFiles& files, const std::string& root = "");
// Parses the text of cpu.max: "150000 100000" is 1.5; "max 100000" is no quota.
std::optional<double> parse_cpu_max(std::string_view text);

}  // namespace drun::agent
