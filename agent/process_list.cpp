#include "agent/process_list.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "agent/cgroup.h"
#include "base/clean_text.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/wording.h"

namespace drun::agent {

namespace {

constexpr std::size_t kCommandLimit = 1024;
constexpr std::size_t kMaxJobId = 64;

bool is_job_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxJobId && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
}

// True if the agent of that process made its socket's folder on this host and didn't remove it: agents that end in
// order do. An agent may see other mounts than we do (a private /tmp of sshd's session or of a service), but its
// workers see what it does.
bool has_agent_folder(pid_t pid, const JobOfProcess& mark) {
  const auto folder = mark.agent_socket.substr(0, mark.agent_socket.rfind('/'));
  struct stat s {};
  return (::lstat(folder.c_str(), &s) == 0 || ::lstat((proc_file(pid, "root") + folder).c_str(), &s) == 0) &&
         S_ISDIR(s.st_mode);
}

JobOfProcess mark_of(pid_t pid) {
  JobOfProcess mark;
  if (const auto environment = read_file(proc_file(pid, "environ"))) mark = parse_environment(*environment);
  if (!mark.job_id.empty() && (mark.agent_socket.empty() || has_agent_folder(pid, mark))) return mark;
  mark = JobOfProcess();
  if (const auto cgroup = read_file(proc_file(pid, "cgroup"))) {
    if (const auto path = cgroup2_path(*cgroup)) mark.job_id = job_of_cgroup(*path);
  }
  return mark;
}

std::optional<Process> look_at(pid_t pid, std::optional<std::uint32_t> uid) {
  auto stat = stat_of(pid);
  const auto status = read_file(proc_file(pid, "status"));
  if (!stat || !status) return std::nullopt;
  const auto real_uid = parse_real_uid(*status);
  if (!real_uid) return std::nullopt;
  Process p;
  p.stat = std::move(*stat);
  p.uid = *real_uid;
  if (p.stat.over || (uid && *uid != p.uid)) return p;
  p.mark = mark_of(pid);
  const auto cmdline = read_file(proc_file(pid, "cmdline"));
  p.command = printable_command(cmdline ? std::string_view(*cmdline) : std::string_view(), p.stat.name, kCommandLimit);
  return p;
}

}  // namespace

std::optional<std::uint32_t> parse_real_uid(std::string_view status) {
  for (const auto line : split(status, '\n')) {
    if (!starts_with(line, "Uid:")) continue;
    const auto ids = split(trim(line.substr(4)), '\t');
    const auto uid = parse_number(trim(ids[0]));
    if (!uid || *uid > UINT32_MAX) return std::nullopt;
    return static_cast<std::uint32_t>(*uid);
  }
  return std::nullopt;
}

JobOfProcess parse_environment(std::string_view environment) {
  constexpr std::string_view kJob = "DRUN_JOB_ID=";
  constexpr std::string_view kRank = "DRUN_RANK=";
  constexpr std::string_view kAgent = "DRUN_AGENT=";
  JobOfProcess mark;
  for (const auto entry : split(environment, '\0')) {
    if (starts_with(entry, kJob) && mark.job_id.empty()) {
      const auto id = entry.substr(kJob.size());
      if (is_job_id(id)) mark.job_id = std::string(id);
    } else if (starts_with(entry, kRank)) {
      const auto rank = parse_number(entry.substr(kRank.size()));
      if (rank && *rank <= 1u << 24) mark.rank = static_cast<int>(*rank);
    } else if (starts_with(entry, kAgent)) {
      mark.agent_socket = std::string(entry.substr(kAgent.size()));
    }
  }
  return mark.job_id.empty() ? JobOfProcess() : mark;
}

std::string printable_command(std::string_view cmdline, const std::string& name, std::size_t limit) {
  while (!cmdline.empty() && cmdline.back() == '\0') cmdline.remove_suffix(1);
  std::string out = cmdline.empty() ? "[" + name + "]" : std::string(cmdline);
  std::replace(out.begin(), out.end(), '\0', ' ');
  return clean_line(cut_text(out, limit));
}

std::string proc_file(pid_t pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

void for_each_pid(const std::function<bool(pid_t)>& visit) {
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return;
  while (const dirent* entry = ::readdir(proc)) {
    const auto number = parse_number(entry->d_name);
    if (number && !visit(static_cast<pid_t>(*number))) break;
  }
  ::closedir(proc);
}

ProcessList list_processes(std::optional<std::uint32_t> uid) {
  ProcessList out;
  for_each_pid([&](pid_t pid) {
    if (auto process = look_at(pid, uid)) out.emplace(pid, std::move(*process));
    return true;
  });
  constexpr int kPasses = 5;
  for (int pass = 0; pass < kPasses; ++pass) {
    std::vector<pid_t> orphans;
    for (const auto& [pid, p] : out) {
      if (p.stat.parent > 0 && out.count(p.stat.parent) == 0) orphans.push_back(pid);
    }
    bool changed = false;
    for (const pid_t pid : orphans) {
      const pid_t before = out.at(pid).stat.parent;
      auto again = look_at(pid, uid);
      if (!again) {
        out.erase(pid);
        changed = true;
        continue;
      }
      changed = changed || again->stat.parent != before;
      const pid_t parent = again->stat.parent;
      out[pid] = std::move(*again);
      if (parent <= 0 || out.count(parent) > 0) continue;
      if (auto found = look_at(parent, uid)) {
        out.emplace(parent, std::move(*found));
        changed = true;
      }
    }
    if (!changed) break;
  }
  return out;
}

std::uint64_t ticks_per_second() {
  const long ticks = ::sysconf(_SC_CLK_TCK);
  return ticks > 0 ? static_cast<std::uint64_t>(ticks) : 100;
}

std::uint64_t now_in_ticks() {
  timespec now{};  // the clock of the kernel's start times
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto ticks = ticks_per_second();
  return static_cast<std::uint64_t>(now.tv_sec) * ticks +
         static_cast<std::uint64_t>(now.tv_nsec) * ticks / 1'000'000'000;
}

}  // namespace drun::agent
