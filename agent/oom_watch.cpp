#include "agent/oom_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"

namespace drun::agent {

namespace {

struct Hierarchy {
  std::string mount_point;
  std::string root;  // the cgroup that is visible at the mount point
};

// Parses "36 35 0:30 ROOT MOUNT_POINT OPTIONS ... - TYPE SOURCE SUPER_OPTIONS".
// Returns all mounts: one may be hidden by a later mount, and another be visible.
std::vector<Hierarchy> find_mounts(std::string_view mountinfo, std::string_view type, std::string_view super_option) {
  std::vector<Hierarchy> out;
  for (const auto line : split(mountinfo, '\n')) {
    const auto words = split(line, ' ');
    std::size_t dash = 6;
    while (dash < words.size() && words[dash] != "-") ++dash;
    if (dash + 1 >= words.size() || words[dash + 1] != type) continue;
    if (!super_option.empty()) {
      bool has = false;
      if (dash + 3 < words.size()) {
        for (const auto option : split(words[dash + 3], ',')) has = has || option == super_option;
      }
      if (!has) continue;
    }
    out.push_back(Hierarchy{std::string(words[4]), std::string(words[3])});
  }
  return out;
}

void add_files(const Hierarchy& h, std::string path, const char* name, std::vector<std::string>& out) {
  if (h.root != "/" && starts_with(path, h.root)) path = path.substr(h.root.size());
  if (path == "/") path.clear();
  for (;;) {
    out.push_back(h.mount_point + path + "/" + name);
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) break;
    path.resize(slash);
  }
}

}  // namespace

std::vector<std::string> oom_counter_files(std::string_view cgroup, std::string_view mountinfo) {
  std::vector<std::string> out;
  for (const auto line : split(cgroup, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    const auto path_at = fields[0].size() + fields[1].size() + 2;
    const std::string path(line.substr(path_at));  // may contain colons itself
    if (fields[1].empty()) {
      for (const auto& mount : find_mounts(mountinfo, "cgroup2", "")) add_files(mount, path, "memory.events", out);
    }
    for (const auto controller : split(fields[1], ',')) {
      if (controller != "memory") continue;
      for (const auto& mount : find_mounts(mountinfo, "cgroup", "memory")) {
        add_files(mount, path, "memory.oom_control", out);
      }
    }
  }
  return out;
}

std::uint64_t oom_kills(std::string_view text) {
  for (const auto line : split(text, '\n')) {
    if (starts_with(line, "oom_kill ")) return parse_number(trim(line.substr(9))).value_or(0);
  }
  return 0;
}

OomWatch::OomWatch() : kernel_log_(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  const auto cgroup = read_file("/proc/self/cgroup");
  const auto mounts = read_file("/proc/self/mountinfo");
  if (cgroup && mounts) {
    for (auto& file : oom_counter_files(*cgroup, *mounts)) {
      const auto text = read_file(file);
      if (text) counters_.push_back(Counter{std::move(file), oom_kills(*text)});
    }
  }
  if (kernel_log_ && ::lseek(kernel_log_.get(), 0, SEEK_END) < 0) kernel_log_.reset();
}

std::string OomWatch::evidence(pid_t pid) {
  std::string out;
  for (auto& counter : counters_) {
    const auto text = read_file(counter.file);
    const std::uint64_t now = text ? oom_kills(*text) : 0;
    if (now <= counter.seen) continue;
    // The innermost cgroup whose count rose hit its limit, or lies within the one that did.
    if (out.empty()) {
      out = "the kernel's out-of-memory killer was at work (" + counter.file + ": oom_kill " +
            std::to_string(counter.seen) + " -> " + std::to_string(now) + ")";
    }
    counter.seen = now;
  }
  const std::string words = "Killed process " + std::to_string(pid) + " (";
  char record[8192];
  while (kernel_log_) {
    const ssize_t n = ::read(kernel_log_.get(), record, sizeof record);
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: records were overwritten meanwhile
    if (n <= 0) break;
    const std::string_view text(record, static_cast<std::size_t>(n));
    const auto at = text.find(words);
    if (at == std::string_view::npos) continue;
    const auto line = text.substr(at, text.find('\n', at) - at);
    out = "the kernel log: " + std::string(line.substr(0, 200));
  }
  return out;
}

}  // namespace drun::agent
