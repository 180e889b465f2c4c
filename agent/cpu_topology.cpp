#include "agent/cpu_topology.h"

#include <dirent.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

namespace {

constexpr std::uint64_t kMaxCpus = 1u << 16;
constexpr std::size_t kLongestFile = 64u << 10;

std::string first_line(const std::string& path) {
  const auto text = read_file(path, kLongestFile);
  return text ? text->substr(0, text->find('\n')) : "";
}

std::vector<int> cpus_in(const std::string& path) { return parse_cpu_list(first_line(path)); }

// The numbers in the entries "node0", "node8", ... of a directory.
std::vector<int> nodes_in(const std::string& directory) {
  std::vector<int> out;
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return out;
  constexpr std::string_view kPrefix = "node";
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (!starts_with(name, kPrefix)) continue;
    const auto number = parse_number(name.substr(kPrefix.size()));
    if (number && *number < kMaxCpus) out.push_back(static_cast<int>(*number));
  }
  ::closedir(entries);
  return out;
}

std::map<int, int> node_of_cpu(const std::string& root) {
  const std::string directory = root + "/sys/devices/system/node";
  std::map<int, int> out;
  for (const int node : nodes_in(directory)) {
    for (const int cpu : cpus_in(directory + "/node" + std::to_string(node) + "/cpulist")) out[cpu] = node;
  }
  return out;
}

// The online CPUs of the core that `cpu` belongs to. Kernels before 5.2 have only the second file.
std::vector<int> siblings(const std::string& topology, int cpu, const std::vector<int>& online) {
  std::vector<int> out = cpus_in(topology + "/core_cpus_list");
  if (out.empty()) out = cpus_in(topology + "/thread_siblings_list");
  const auto is_offline = [&online](int c) { return !std::binary_search(online.begin(), online.end(), c); };
  out.erase(std::remove_if(out.begin(), out.end(), is_offline), out.end());
  if (!std::binary_search(out.begin(), out.end(), cpu)) out = {cpu};
  return out;
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> out;
  for (const auto item : split(trim(text.substr(0, text.find('\n'))), ',')) {
    const auto dash = item.find('-');
    const auto first = parse_number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(item.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMaxCpus || out.size() >= kMaxCpus) break;
    for (auto cpu = *first; cpu <= *last; ++cpu) out.push_back(static_cast<int>(cpu));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Core> read_cores(const std::string& root, const std::vector<int>& usable) {
  const std::string directory = root + "/sys/devices/system/cpu";
  std::vector<int> online = cpus_in(directory + "/online");
  if (!std::includes(online.begin(), online.end(), usable.begin(), usable.end())) online = usable;
  const auto nodes = node_of_cpu(root);
  std::vector<Core> out;
  for (const int cpu : online) {
    const std::string topology = directory + "/cpu" + std::to_string(cpu) + "/topology";
    Core core;
    core.cpus = siblings(topology, cpu, online);
    if (core.cpus.front() != cpu) continue;                                            // added with its first thread
    const auto package = parse_number(first_line(topology + "/physical_package_id"));  // -1 in some virtual machines
    core.package = static_cast<int>(package.value_or(0));
    const auto node = nodes.find(cpu);
    core.node = node == nodes.end() ? 0 : node->second;
    out.push_back(std::move(core));
  }
  std::stable_sort(out.begin(), out.end(), [](const Core& a, const Core& b) {
    return std::tie(a.package, a.node, a.cpus.front()) < std::tie(b.package, b.node, b.cpus.front());
  });
  return out;
}

}  // namespace drun::agent
