#include "agent/oom_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"

namespace drun::agent {

namespace {

// The file of that name in the cgroup of that path and in those above it.
std::vector<std::string> files_of(const CgroupMount& mount, const std::string& path, const char* name) {
  std::vector<std::string> out;
  // Without our path, as in a container, the mounted part alone is visible.
  std::string directory = cgroup_directory(mount, path).value_or(mount.point);
  for (;;) {
    out.push_back(directory + "/" + name);
    const auto slash = directory.rfind('/');
    if (directory.size() <= mount.point.size() || slash == std::string::npos) return out;
    directory.resize(slash);
  }
}

}  // namespace

std::vector<std::vector<std::string>> oom_counter_files(const CgroupFiles& files) {
  std::vector<std::vector<std::string>> out;
  for (const auto line : split(files.own, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    const auto path_at = fields[0].size() + fields[1].size() + 2;
    const std::string path(line.substr(path_at));  // may contain colons itself
    if (fields[1].empty()) {
      for (const auto& mount : cgroup2_mounts(files.mountinfo)) out.push_back(files_of(mount, path, "memory.events"));
    }
    for (const auto controller : split(fields[1], ',')) {
      if (controller != "memory") continue;
      for (const auto& mount : cgroup1_mounts(files.mountinfo, "memory")) {
        out.push_back(files_of(mount, path, "memory.oom_control"));
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

OomWatch::OomWatch(const CgroupFiles& files) : kernel_log_(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  for (auto& mount : oom_counter_files(files)) {
    for (auto& file : mount) {
      const auto text = read_file(file);
      if (!text) continue;
      counters_.push_back(Counter{std::move(file), oom_kills(*text)});
      break;
    }
  }
  if (kernel_log_ && ::lseek(kernel_log_.get(), 0, SEEK_END) < 0) kernel_log_.reset();
}

void OomWatch::read_kernel_log() {
  constexpr std::string_view kWords = "Killed process ";
  char record[8192];
  while (kernel_log_) {
    const ssize_t n = ::read(kernel_log_.get(), record, sizeof record);
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: records were overwritten meanwhile
    if (n <= 0) return;
    const std::string_view text(record, static_cast<std::size_t>(n));
    const auto at = text.find(kWords);
    if (at == std::string_view::npos) continue;
    const auto line = text.substr(at, text.find('\n', at) - at);
    const auto number = line.substr(kWords.size());
    const auto pid = parse_number(number.substr(0, number.find(' ')));
    if (pid) killed_[static_cast<pid_t>(*pid)] = line.substr(0, 200);
  }
}

std::string OomWatch::evidence(pid_t pid) {
  read_kernel_log();
  std::string out;
  for (auto& counter : counters_) {
    const auto text = read_file(counter.file);
    const std::uint64_t now = text ? oom_kills(*text) : 0;
    if (now <= counter.explained) continue;
    if (out.empty()) {
      out = "the kernel's out-of-memory killer was at work (" + counter.file + ": oom_kill " +
            std::to_string(counter.explained) + " -> " + std::to_string(now) + ")";
    }
    ++counter.explained;
  }
  if (const auto line = killed_.extract(pid)) out = "the kernel log: " + line.mapped();
  return out;
}

}  // namespace drun::agent
