#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "check/host_findings.h"

namespace drun::check {

namespace {

constexpr std::int64_t kMinMemoryMib = 512;
constexpr std::int64_t kMinShmMib = 1024;
constexpr std::int64_t kMinDiskMib = 1024, kMinTmpMib = 256;
constexpr std::int64_t kMinOpenFiles = 1024;
constexpr std::int64_t kMemlockWarn = 32LL << 30, kMemlockFail = 64LL << 20;  // bytes

// Limits of the user's processes. `n_ranks`: of the whole job.
void find_process_limits(const control::HostFacts& f, int slots, std::int64_t n_ranks, int host, FindingList& out) {
  const bool rdma =
      std::any_of(f.rdma.begin(), f.rdma.end(), [](const control::RdmaPort& p) { return p.state == "ACTIVE"; });
  if (rdma && f.memlock_bytes >= 0 && f.memlock_bytes < kMemlockWarn) {
    out.add(f.memlock_bytes < kMemlockFail ? Severity::kFailure : Severity::kWarning, "memlock-low", host,
            "may lock " + mib_text(f.memlock_bytes >> 20) + " of memory; RDMA needs all of its buffers locked",
            "ulimit -l; echo '* - memlock unlimited' > /etc/security/limits.d/90-memlock.conf");
  }
  // Connections, and descriptors that data loaders pass; a job of many ranks needs more.
  const std::int64_t files = std::max(kMinOpenFiles, 128 + 8 * n_ranks);
  if (f.open_files >= 0 && f.open_files < files) {
    out.add(Severity::kWarning, "open-files-low", host,
            "a process may open " + std::to_string(f.open_files) + " files; " +
                plural(static_cast<std::size_t>(n_ranks), "rank") + " can need " + std::to_string(files),
            "ulimit -n; echo '* - nofile 1048576' > /etc/security/limits.d/90-nofile.conf");
  }
  const std::int64_t processes = 256 + 256 * static_cast<std::int64_t>(slots);
  if (f.processes >= 0 && f.processes < processes) {
    out.add(Severity::kWarning, "processes-low", host,
            "the user may run " + plural(static_cast<std::size_t>(f.processes), "thread") + "; " +
                plural(static_cast<std::size_t>(slots), "slot") + " can need " + std::to_string(processes),
            "ulimit -u; echo '* - nproc 65536' > /etc/security/limits.d/90-nproc.conf");
  }
  if (f.memory_available_mib >= 0 && f.memory_available_mib < kMinMemoryMib) {
    out.add(Severity::kWarning, "memory-low", host,
            "has " + mib_text(f.memory_available_mib) + " of " + mib_text(f.memory_total_mib) + " of memory left",
            "free -h");
  }
}

void find_shared_memory(const control::DiskFacts& disk, int slots, int host, FindingList& out) {
  if (slots <= 1 || disk.free_mib >= kMinShmMib) return;
  const bool small = disk.size_mib < kMinShmMib;
  out.add(Severity::kWarning, "shm-small", host,
          "/dev/shm has " +
              (small ? mib_text(disk.size_mib) : mib_text(disk.free_mib) + " of " + mib_text(disk.size_mib) + " left") +
              "; NCCL and data loaders of several ranks need more",
          small ? "mount -o remount,size=8G /dev/shm" : "ls -lS /dev/shm | head");
}

// `has_command`: a job is about to run, in the working directory that is among the disks.
void find_disk_limits(const control::DiskFacts& disk, int slots, bool has_command, int host, FindingList& out) {
  const bool shm = disk.path == "/dev/shm", tmp = disk.path == "/tmp";
  if (disk.size_mib < 0) {
    if (shm || tmp) {
      out.add(Severity::kWarning, "disk-full", host, "there is no " + disk.path, "ls -ld " + disk.path);
    } else if (has_command) {
      out.add(Severity::kFailure, "directory-missing", host, "has no working directory " + disk.path,
              "mkdir -p " + shell_quote(disk.path));
    }
    return;
  }
  if (shm) {
    find_shared_memory(disk, slots, host, out);
    return;
  }
  if (!disk.writable && tmp) out.add(Severity::kFailure, "disk-full", host, "/tmp can't be written to", "ls -ld /tmp");
  if (!disk.writable && !tmp && has_command) {
    out.add(Severity::kNote, "disk-full", host, disk.path + " can't be written to", "ls -ld " + shell_quote(disk.path));
  }
  if (disk.writable && disk.free_mib < (tmp ? kMinTmpMib : kMinDiskMib)) {
    out.add(Severity::kWarning, "disk-full", host,
            disk.path + " has " + mib_text(disk.free_mib) + " of " + mib_text(disk.size_mib) + " left",
            "df -h " + shell_quote(disk.path));
  }
}

void find_command_problem(const control::HostFacts& f, const std::string& login, int host, FindingList& out) {
  if (f.command_problem.empty()) return;
  out.add(
      Severity::kFailure, "command-missing", host, f.command_problem,
      f.command.empty() ? login.empty() ? "echo $PATH" : login + " 'echo $PATH'" : "ls -l " + shell_quote(f.command),
      {"the PATH of a login without a terminal: " + f.path});
}

void find_unknown_facts(const control::HostFacts& f, const std::string& login, int host, FindingList& out) {
  std::vector<std::string> missing;
  for (const auto& [name, why] : f.unknown) {
    if (name != "working directory") {
      missing.push_back(name + ": " + why);
      continue;
    }
    out.add(Severity::kFailure, "facts-missing", host,
            "the working directory does not respond (is its file server down?): " + why, "mount | grep -w nfs");
  }
  if (!missing.empty()) {
    out.add(Severity::kNote, "facts-missing", host, "some things could not be found out",
            login.empty() ? "uptime" : "time " + login + " true", std::move(missing));
  }
}

}  // namespace

void find_limits(const std::vector<ExaminedHost>& hosts, const HostQuestion& question, FindingList& out) {
  std::int64_t n_ranks = 0;
  for (const auto& host : hosts) n_ranks += host.slots;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].facts == nullptr) continue;
    const control::HostFacts& f = *hosts[i].facts;
    const int host = static_cast<int>(i);
    find_process_limits(f, hosts[i].slots, n_ranks, host, out);
    for (const auto& disk : f.disks) find_disk_limits(disk, hosts[i].slots, question.has_command, host, out);
    if (question.has_command) find_command_problem(f, hosts[i].login, host, out);
    find_unknown_facts(f, hosts[i].login, host, out);
  }
}

}  // namespace drun::check
