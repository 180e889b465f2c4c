#include "agent/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

namespace {

constexpr int kMaxCpus = 1 << 16;

bool has_word(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Finds our path in the version 1 hierarchy that has the controller `cpu`: a line "4:cpu,cpuacct:/path".
std::optional<std::string> cpu_path_of_version_1(std::string_view proc_cgroup) {
  for (const auto line : split(proc_cgroup, '\n')) {
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    if (has_word(line.substr(first + 1, second - first - 1), "cpu")) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

std::optional<double> quota_of_version_2(const std::string& directory) {
  const auto text = read_file(directory + "/cpu.max", 256);
  return text ? parse_cpu_max(*text) : std::nullopt;
}

std::optional<double> quota_of_version_1(const std::string& directory) {
  const auto quota = read_file(directory + "/cpu.cfs_quota_us", 256);
  const auto period = read_file(directory + "/cpu.cfs_period_us", 256);
  // "-1" means no quota; parse_cpu_max rejects it.
  return quota && period ? parse_cpu_max(quota->substr(0, quota->find('\n')) + " " + *period) : std::nullopt;
}

using QuotaOf = std::optional<double> (*)(const std::string& directory);

std::optional<double> lower(std::optional<double> a, std::optional<double> b) { return !a || (b && *b < *a) ? b : a; }

// Returns the lowest quota from `directory` up to `top`.
std::optional<double> lowest_quota(std::string directory, const std::string& top, QuotaOf quota_of) {
  std::optional<double> lowest;
  for (;;) {
    lowest = lower(lowest, quota_of(directory));
    const auto slash = directory.rfind('/');
    if (directory.size() <= top.size() || slash == std::string::npos) return lowest;
    directory.resize(slash);
  }
}

// Returns the lowest quota in one hierarchy. If none of its mounts shows our path, the path belongs to another cgroup
// namespace, and the roots of the mounts are all that we can see.
std::optional<double> quota_of_hierarchy(const std::string& root, const std::vector<CgroupMount>& mounts,
                                         const std::optional<std::string>& path, QuotaOf quota_of) {
  const auto top_of = [&root](const CgroupMount& mount) { return root + (mount.point == "/" ? "" : mount.point); };
  for (const auto& mount : mounts) {
    const auto below = path ? cgroup_directory(mount, *path) : std::nullopt;
    if (below) return lowest_quota(root + *below, top_of(mount), quota_of);
  }
  std::optional<double> lowest;
  for (const auto& mount : mounts) lowest = lower(lowest, quota_of(top_of(mount)));
  return lowest;
}

}  // namespace

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto words = split(text.substr(0, text.find('\n')), ' ');
  if (words.size() != 2) return std::nullopt;
  const auto quota = parse_number(words[0]), period = parse_number(words[1]);
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> cpu_quota(const CgroupFiles& files, const std::string& root) {
  const auto mounts_2 = cgroup2_mounts(files.mountinfo), mounts_1 = cgroup1_mounts(files.mountinfo, "cpu");
  return lower(quota_of_hierarchy(root, mounts_2, cgroup2_path(files.own), quota_of_version_2),
               quota_of_hierarchy(root, mounts_1, cpu_path_of_version_1(files.own), quota_of_version_1));
}

std::vector<int> cpus_of_affinity() {
  for (int n_cpus = 1024; n_cpus <= kMaxCpus; n_cpus *= 2) {  // the kernel refuses a mask that is too small for it
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(n_cpus));
    const std::size_t n_bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(n_cpus));
    const bool known = ::sched_getaffinity(0, n_bytes, set) == 0;
    std::vector<int> out;
    for (int cpu = 0; known && cpu < n_cpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), n_bytes, set)) out.push_back(cpu);
    }
    CPU_FREE(set);
    if (known) return out;
  }
  return {};
}

int usable_cpus(const CgroupFiles& files) {
  const int of_affinity = static_cast<int>(cpus_of_affinity().size());
  const auto quota = cpu_quota(files);
  const int of_quota = quota ? static_cast<int>(std::min(*quota, double{kMaxCpus})) : kMaxCpus;
  return std::max(1, of_affinity > 0 ? std::min(of_affinity, of_quota) : 1);
}

}  // namespace drun::agent
