// The cores and NUMA nodes of this machine, as /sys tells them. (hwloc would say more; its static library needs udev
// and dlopen, which the static agent can't have.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun::agent {

struct Core {
  int package = 0;
  int node = 0;           // NUMA
  std::vector<int> cpus;  // its hardware threads that are online, in order
};

// "0-3,8\n" of /sys as numbers, in order. What is malformed ends the list.
std::vector<int> parse_cpu_list(std::string_view text);

// All cores that are online, by package, NUMA node and lowest CPU: an index into them is hwloc's logical number of a
// core. What /sys does not tell is taken for the simplest: each of `usable` a core of its own, one package, one node.
// `root` stands before every path that is read: "" but for tests.
std::vector<Core> read_cores(const std::string& root, const std::vector<int>& usable);

}  // namespace drun::agent
