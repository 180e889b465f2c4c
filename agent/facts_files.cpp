// The facts that come from files and system calls alone.
#include <fcntl.h>
#include <sodium.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "agent/command_check.h"
#include "agent/facts.h"
#include "agent/facts_text.h"
#include "agent/usable_cpus.h"
#include "base/fd.h"
#include "base/text.h"

extern char** environ;

namespace drun::agent {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHashBytes = 16;

constexpr std::size_t kMaxFile = 1u << 20;
constexpr std::size_t kMaxEntries = 4096;  // of a folder
constexpr std::size_t kMaxVariables = 256, kLongestValue = 4096;
constexpr int kMaxRecords = 100000;  // of the kernel's log, which has 16 MiB at most
constexpr auto kLogTime = std::chrono::milliseconds(500);

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code ec;
  fs::directory_iterator it(folder, ec);
  while (!ec && it != fs::directory_iterator() && out.size() < kMaxEntries) {
    out.push_back(it->path().filename().string());
    it.increment(ec);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string text_of(const std::string& path) { return read_file(path, kMaxFile).value_or(""); }

std::string word_of(const std::string& path) {
  const std::string text = text_of(path);
  return std::string(trim(std::string_view(text).substr(0, text.find('\n'))));
}

// The newest version in the first directory that has any.
std::string library_in(const std::vector<std::string>& folders, std::string_view stem) {
  for (const auto& folder : folders) {
    std::string found;
    for (const auto& name : names_in(folder)) {
      if (std::string version = library_version(name, stem); !version.empty()) found = std::move(version);
    }
    if (!found.empty()) return found;
  }
  return "";
}

std::int64_t soft_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return -1;
  const bool unlimited = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > INT64_MAX;
  return unlimited ? control::HostFacts::kUnlimited : static_cast<std::int64_t>(limit.rlim_cur);
}

std::int64_t now_ns(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

std::string below(const std::string& folder, const std::string& path) {
  return path.empty() || path[0] == '/' || folder.empty() ? path : folder + "/" + path;
}

// The hash of the file's contents, in hex; nothing if it can't be read to its end.
std::optional<std::string> hash_of(const Fd& file) {
  std::string piece(256u << 10, '\0');
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, kHashBytes);
  for (;;) {
    const ssize_t n = ::read(file.get(), piece.data(), piece.size());
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(piece.data()),
                              static_cast<unsigned long long>(n));
  }
  std::string digest(kHashBytes, '\0');
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(digest.data()), digest.size());
  return hex(digest);
}

void set_version(control::HostFacts& facts, const std::string& name, std::string value) {
  if (!value.empty()) facts.versions[name] = std::move(value);
}

}  // namespace

void read_library_versions(const FactsRoot& root, control::HostFacts& facts) {
  set_version(facts, "cuda", cuda_version(text_of(root.at("/usr/local/cuda/version.json"))));
  std::vector<std::string> folders;
  for (const char* usual : {"/usr/local/lib", "/usr/local/nccl/lib", "/usr/local/cuda/lib64", "/usr/lib64",
                            "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"}) {
    folders.push_back(root.at(usual));
  }
  set_version(facts, "nccl", library_in(folders, "libnccl.so."));
  set_version(facts, "libdrun", library_in(folders, "libdrun.so."));
}

void read_versions(const FactsRoot& root, control::HostFacts& facts) {
  utsname names{};
  ::uname(&names);
  set_version(facts, "kernel", names.release);
  set_version(facts, "driver", first_version(text_of(root.at("/proc/driver/nvidia/version"))));
  // One word if all CPUs have the same governor.
  std::set<std::string> governors;
  const std::string cpus = root.at("/sys/devices/system/cpu");
  for (const auto& name : names_in(cpus)) {
    if (!starts_with(name, "cpu")) continue;
    if (auto governor = word_of(cpus + "/" + name + "/cpufreq/scaling_governor"); !governor.empty()) {
      governors.insert(std::move(governor));
    }
  }
  set_version(facts, "governor", join({governors.begin(), governors.end()}, " and "));
  std::map<std::string, std::set<std::string>> firmware;
  const std::string rdma = root.at("/sys/class/infiniband");
  for (const auto& device : names_in(rdma)) {
    const std::string version = word_of(rdma + "/" + device + "/fw_ver");
    const std::string board = word_of(rdma + "/" + device + "/board_id");
    if (!version.empty()) firmware["firmware " + (board.empty() ? device : board)].insert(version);
  }
  for (const auto& [name, versions] : firmware) {
    set_version(facts, name, join({versions.begin(), versions.end()}, " and "));
  }
}

void read_machine(const FactsRoot& root, control::HostFacts& facts) {
  utsname names{};
  ::uname(&names);
  facts.host_name = names.nodename;
  if (const char* path = std::getenv("PATH")) facts.path = path;
  facts.cpu = cpu_model(text_of(root.at("/proc/cpuinfo")).substr(0, 8192));
  facts.n_cpus = usable_cpus(read_cgroup_files());
  const std::string meminfo = text_of(root.at("/proc/meminfo"));
  facts.memory_total_mib = meminfo_mib(meminfo, "MemTotal");
  facts.memory_available_mib = meminfo_mib(meminfo, "MemAvailable");
  for (const char* path : {"/tmp", "/dev/shm"}) {
    struct statvfs s {};
    control::DiskFacts disk;
    disk.path = path;
    if (::statvfs(path, &s) == 0) {
      const auto mib = [&](std::uint64_t blocks) {
        return static_cast<std::int64_t>(static_cast<double>(blocks) * static_cast<double>(s.f_frsize) / (1 << 20));
      };
      disk.size_mib = mib(s.f_blocks);
      disk.free_mib = mib(s.f_bavail);
      disk.writable = ::access(path, W_OK) == 0;
    }
    facts.disks.push_back(std::move(disk));
  }
}

void read_limits(control::HostFacts& facts) {
  facts.memlock_bytes = soft_limit(RLIMIT_MEMLOCK);
  facts.processes = soft_limit(RLIMIT_NPROC);
  const std::size_t files = open_file_limit_at_start();
  facts.open_files = files > INT64_MAX ? control::HostFacts::kUnlimited : static_cast<std::int64_t>(files);
}

void read_kernel_log(const FactsRoot& root, control::HostFacts& facts) {
  const Fd log(::open(root.at("/dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) return;
  const std::int64_t now_us = now_ns(CLOCK_MONOTONIC) / 1000;
  const Deadline end = Clock::now() + kLogTime;
  std::string record(8192, '\0');
  for (int i = 0; i < kMaxRecords && Clock::now() < end; ++i) {
    const ssize_t n = ::read(log.get(), record.data(), record.size());
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: records were overwritten meanwhile
    if (n < 0 && errno != EAGAIN) return;
    facts.kernel_log_readable = true;
    if (n <= 0) return;
    add_xids(std::string_view(record).substr(0, static_cast<std::size_t>(n)), now_us, facts.xids);
  }
}

void read_nccl_conf(const FactsRoot& root, control::HostFacts& facts) {
  std::vector<std::string> files = {"/etc/nccl.conf"};
  if (const char* home = std::getenv("HOME")) files.push_back(std::string(home) + "/.nccl.conf");
  if (const char* named = std::getenv("NCCL_CONF_FILE")) files.emplace_back(named);
  for (const auto& file : files) {
    auto lines = conf_lines(text_of(root.at(file)));
    if (!lines.empty()) facts.nccl_conf[file] = std::move(lines);
  }
}

void read_variables(const std::vector<std::string>& patterns, control::HostFacts& facts) {
  for (char** e = environ; *e != nullptr && facts.variables.size() < kMaxVariables; ++e) {
    const std::string_view entry(*e);
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(entry.substr(0, equals));
    const bool asked =
        std::any_of(patterns.begin(), patterns.end(), [&](const auto& p) { return glob_match(p, name); });
    if (asked) facts.variables[name] = std::string(entry.substr(equals + 1, kLongestValue));
  }
}

void read_clocks(control::HostFacts& facts) {
  // Another process may run between two readings: take the closest pair of a few.
  std::int64_t gap = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t before = now_ns(CLOCK_MONOTONIC), wall = now_ns(CLOCK_REALTIME), after = now_ns(CLOCK_MONOTONIC);
    if (after - before >= gap) continue;
    gap = after - before;
    facts.monotonic_ns = before + gap / 2;
    facts.realtime_ns = wall;
  }
}

void hash_command(const control::AskFacts& asked, const std::map<std::string, std::string>& environment,
                  const ReportStep& report, control::HostFacts& facts) {
  const std::string& word = asked.argv.front();
  const std::string argv0 = word.find('/') == std::string::npos ? word : below(asked.working_directory, word);
  const auto command = find_command(argv0, environment, asked.working_directory, report);
  std::map<std::string, std::string> files;
  if (command) {
    facts.command = *command;
    files["command"] = *command;
  } else {
    facts.command_problem = command.error().cause;
  }
  for (std::size_t i = 1; i < asked.argv.size() && files.count("script") == 0; ++i) {
    const std::string path = below(asked.working_directory, asked.argv[i]);
    report(path);
    struct stat s {};
    if (!asked.argv[i].empty() && ::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode)) files["script"] = path;
  }
  for (const auto& [name, path] : files) {
    report(path);
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto hash = fd ? hash_of(fd) : std::nullopt;
    if (hash) {
      facts.versions[name] = *hash;
    } else {
      facts.unknown[name] = path + " can't be read";
    }
  }
}

}  // namespace drun::agent
