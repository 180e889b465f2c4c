#include "bench/line_rate.h"

#include <dirent.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace drun::bench {

namespace {

constexpr int kMaxDepth = 4;
constexpr std::size_t kMaxFile = 4096;

std::vector<std::string> lower_interfaces(const std::string& directory) {
  std::vector<std::string> out;
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return out;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string name = entry->d_name;
    if (starts_with(name, "lower_")) out.push_back(name.substr(6));
  }
  ::closedir(entries);
  return out;
}

std::optional<std::uint64_t> rate_of(const std::string& sysfs, const std::string& name, int depth) {
  if (name.empty() || name.find('/') != std::string::npos || name[0] == '.') return std::nullopt;
  const std::string directory = sysfs + "/class/net/" + name;
  const bool is_device = ::access((directory + "/device").c_str(), F_OK) == 0;
  if (is_device || ::access((directory + "/bonding").c_str(), F_OK) == 0) {
    const auto text = read_file(directory + "/speed", kMaxFile);
    if (!text) return std::nullopt;  // a link that is down
    const auto megabits = parse_number(trim(split(*text, '\n')[0]));
    // -1, or that as an unsigned number, is the kernel's "unknown".
    if (!megabits || *megabits == 0 || *megabits >= 0x7fffffff) return std::nullopt;
    return *megabits * 1000000;
  }
  const auto lower = lower_interfaces(directory);
  if (lower.size() != 1 || depth >= kMaxDepth) return std::nullopt;
  return rate_of(sysfs, lower[0], depth + 1);
}

}  // namespace

std::optional<std::uint64_t> line_rate(const std::string& sysfs, const std::string& interface_name) {
  return rate_of(sysfs, interface_name, 0);
}

}  // namespace drun::bench
