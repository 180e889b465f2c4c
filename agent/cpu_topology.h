// The cores and NUMA nodes of this machine, read from /sys. (hwloc reports more, but its static library needs udev
// and dlopen, which the static agent can't have.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun::agent {

struct Core {
  int package = 0;
  int node = 0;           // NUMA
  std::vector<int> cpus;  // its online hardware threads, in order
};

// Parses a CPU list of /sys, "0-3,8\n", into sorted numbers. Stops at the first malformed item.
std::vector<int> parse_cpu_list(std::string_view text);

// All online cores, sorted by package, NUMA node and lowest CPU: an index into the result is hwloc's logical core
// number. Assumes the simplest topology where /sys lacks information: each of `usable` is a core of its own, in one
// package and one node. `root` is prepended to every path that is read; "" except in tests.
std::vector<Core> read_cores(const std::string& root, const std::vector<int>& usable);

}  // namespace drun::agent
