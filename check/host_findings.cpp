#include "check/host_findings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "check/vote.h"

namespace drun::check {

namespace {

constexpr std::int64_t kClockWarnMs = 1000;

// A property that hosts should have in common. A host without a value has no vote.
struct Common {
  std::string what;  // its name in sentences
  const char* code;
  Severity severity;
  std::string command;
};

// Reports the minority, with both values. On a tie, lists all hosts and calls none of them wrong.
void vote_on(const Common& common, const std::vector<std::optional<std::string>>& values, FindingList& out) {
  std::vector<Ballot> ballots;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]) ballots.push_back({static_cast<int>(i), *values[i]});
  }
  const Vote vote = count_votes(ballots);
  if (vote.unanimous()) return;
  Finding f;
  f.severity = common.severity;
  f.code = common.code;
  f.command = common.command;
  for (const auto& group : vote.groups) f.details.push_back(group.value + ": " + out.hosts_text(group.hosts));
  if (vote.tie) {
    for (const auto& ballot : ballots) f.hosts.push_back(ballot.host);
    f.text = common.what + " differs: " + join(f.details, "; ");
    out.add_shared(std::move(f));
    return;
  }
  const auto& most = vote.groups.front();
  for (std::size_t g = 1; g < vote.groups.size(); ++g) {
    Finding one = f;
    one.hosts = vote.groups[g].hosts;
    one.text = common.what + " is " + vote.groups[g].value + ", on " + plural(most.hosts.size(), "other host") + " " +
               most.value;
    out.add_shared(std::move(one));
  }
}

struct Versioned {
  const char* name;  // in HostFacts::versions
  const char* what;
  const char* code;
  Severity severity;
  bool absence_counts;  // "not there" is a value like others
  const char* command;
};

// A kernel's patch level hardly ever matters; the versions of libraries and drivers that a program uses do.
constexpr Versioned kVersions[] = {
    {"kernel", "the kernel", "versions-differ", Severity::kNote, false, "uname -r"},
    {"glibc", "glibc", "versions-differ", Severity::kWarning, false, "getconf GNU_LIBC_VERSION"},
    {"driver", "the NVIDIA driver", "versions-differ", Severity::kWarning, true, "cat /proc/driver/nvidia/version"},
    {"cuda", "CUDA", "versions-differ", Severity::kWarning, true, "cat /usr/local/cuda/version.json"},
    {"nccl", "NCCL", "versions-differ", Severity::kWarning, true, "ldconfig -p | grep nccl"},
    {"libdrun", "libdrun", "versions-differ", Severity::kWarning, true, "ldconfig -p | grep drun"},
    {"python", "python3", "versions-differ", Severity::kWarning, true, "python3 --version"},
    {"torch", "torch", "versions-differ", Severity::kWarning, true, "python3 -m pip show torch"},
    {"jax", "jax", "versions-differ", Severity::kWarning, true, "python3 -m pip show jax"},
    {"jaxlib", "jaxlib", "versions-differ", Severity::kWarning, true, "python3 -m pip show jaxlib"},
    {"tensorflow", "tensorflow", "versions-differ", Severity::kWarning, true, "python3 -m pip show tensorflow"},
    {"numpy", "numpy", "versions-differ", Severity::kWarning, true, "python3 -m pip show numpy"},
    {"nccl-of-python", "NCCL in python3's packages", "versions-differ", Severity::kWarning, true,
     "python3 -m pip list | grep nccl"},
    {"ofed", "OFED", "versions-differ", Severity::kWarning, true, "ofed_info -s"},
    {"governor", "the CPU governor", "governor-differs", Severity::kWarning, false,
     "sort /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor | uniq -c"},
    {"command", "the content of the command's file", "command-differs", Severity::kWarning, false, "sha256sum"},
    {"script", "the content of the script", "command-differs", Severity::kWarning, true, "sha256sum"},
};

void find_difference(const Versioned& version, const std::vector<ExaminedHost>& hosts, const std::string& script,
                     FindingList& out) {
  std::vector<std::optional<std::string>> values(hosts.size());
  bool anywhere = false;
  std::string file;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const control::HostFacts* facts = hosts[i].facts;
    if (facts == nullptr || facts->unknown.count(version.name) > 0) continue;
    if (file.empty()) file = facts->command;
    const auto found = facts->versions.find(version.name);
    if (found != facts->versions.end()) {
      anywhere = true;
      // The beginning of a hash is enough.
      const bool hash = std::string_view(version.code) == "command-differs";
      values[i] = hash ? found->second.substr(0, 8) : found->second;
    } else if (version.absence_counts) {
      values[i] = "not there";
    }
  }
  if (!anywhere) return;
  Common common{version.what, version.code, version.severity, version.command};
  if (std::string_view(version.name) == "script" && !script.empty()) file = script;
  if (common.command == "sha256sum") common.command += " " + shell_quote(file);
  vote_on(common, values, out);
}

// "8 x NVIDIA H100"; for different models "4 x A, 4 x B".
std::string gpu_text(const control::HostFacts& facts) {
  std::map<std::string, int> models;
  for (const auto& gpu : facts.gpus) ++models[gpu.name];
  std::vector<std::string> parts;
  for (const auto& [name, n] : models) parts.push_back(std::to_string(n) + " x " + name);
  return parts.empty() ? "none" : join(parts, ", ");
}

const std::string* value_of(const std::map<std::string, std::string>& map, const std::string& name) {
  const auto found = map.find(name);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

std::string mib_text(std::int64_t mib) {
  constexpr std::int64_t kGiB = 1024;  // in MiB
  if (mib < kGiB) return std::to_string(mib) + " MiB";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(mib) / 1024.0);
  return text;
}

void find_drift(const std::vector<ExaminedHost>& hosts, const HostQuestion& question, FindingList& out) {
  for (const auto& version : kVersions) find_difference(version, hosts, question.script, out);
  std::set<std::string> boards;
  for (const auto& host : hosts) {
    if (host.facts == nullptr) continue;
    for (const auto& [name, value] : host.facts->versions) {
      if (starts_with(name, "firmware ")) boards.insert(name);
    }
  }
  // A host without that board has no vote on its firmware.
  std::vector<std::optional<std::string>> values(hosts.size());
  for (const auto& board : boards) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      values[i].reset();
      const std::string* v = hosts[i].facts == nullptr ? nullptr : value_of(hosts[i].facts->versions, board);
      if (v != nullptr) values[i] = *v;
    }
    vote_on({"the " + board, "versions-differ", Severity::kWarning, "cat /sys/class/infiniband/*/fw_ver"}, values, out);
  }
  const auto each = [&](auto value) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      values[i].reset();
      if (hosts[i].facts != nullptr) values[i] = value(*hosts[i].facts);
    }
  };
  using Value = std::optional<std::string>;
  each([](const control::HostFacts& f) { return f.cpu.empty() ? Value() : Value(f.cpu); });
  vote_on({"the processor", "hardware-differs", Severity::kNote, "lscpu"}, values, out);
  each([](const control::HostFacts& f) {
    return f.n_cpus <= 0 ? Value() : Value(plural(static_cast<std::size_t>(f.n_cpus), "core"));
  });
  vote_on({"the number of cores that may be used", "hardware-differs", Severity::kNote, "nproc"}, values, out);
  // A slower GPU model sets the pace. If nvidia-smi failed, the GPUs are unknown.
  each([](const control::HostFacts& f) { return f.nvidia_smi_problem.empty() ? Value(gpu_text(f)) : Value(); });
  vote_on({"the set of GPUs", "hardware-differs", Severity::kWarning, "nvidia-smi -L"}, values, out);
  // Memory sizes within 5 % count as equal.
  std::vector<std::int64_t> sizes;
  for (const auto& host : hosts) {
    if (host.facts != nullptr && host.facts->memory_total_mib > 0) sizes.push_back(host.facts->memory_total_mib);
  }
  if (sizes.size() > 2) {
    std::sort(sizes.begin(), sizes.end());
    const std::int64_t median = sizes[sizes.size() / 2];
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (hosts[i].facts == nullptr || hosts[i].facts->memory_total_mib <= 0) continue;
      const std::int64_t own = hosts[i].facts->memory_total_mib;
      if (own * 100 >= median * 95) continue;
      out.add(Severity::kNote, "hardware-differs", static_cast<int>(i),
              "has " + mib_text(own) + " of memory, the median is " + mib_text(median), "free -h");
    }
  }
}

void find_clocks(const std::vector<ExaminedHost>& hosts, FindingList& out) {
  struct Clock {
    int host;
    std::int64_t ms;
  };
  std::vector<Clock> clocks;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].clock_offset_ms) clocks.push_back({static_cast<int>(i), *hosts[i].clock_offset_ms});
  }
  if (clocks.size() < 2) return;
  std::sort(clocks.begin(), clocks.end(), [](const Clock& a, const Clock& b) { return a.ms < b.ms; });
  const std::string command = "timedatectl timesync-status || chronyc tracking";
  // The clocks that agree: the longest run in which each clock is near the first one.
  std::size_t best = 0, best_size = 0;
  bool tie = false;
  for (std::size_t a = 0; a < clocks.size(); ++a) {
    std::size_t b = a;
    while (b < clocks.size() && clocks[b].ms - clocks[a].ms <= kClockWarnMs) ++b;
    if (b - a == best_size && clocks[a].ms - clocks[best].ms > kClockWarnMs) tie = true;
    if (b - a > best_size) {
      best = a;
      best_size = b - a;
      tie = false;
    }
  }
  if (best_size == clocks.size()) return;
  if (tie) {
    Finding f;
    f.severity = Severity::kWarning;
    f.code = "clock-off";
    for (const auto& c : clocks) {
      f.hosts.push_back(c.host);
      f.details.push_back(hosts[static_cast<std::size_t>(c.host)].name + ": " + (c.ms < 0 ? "-" : "+") +
                          time_text(std::chrono::milliseconds(std::llabs(c.ms))) + " against drun's own clock");
    }
    std::sort(f.hosts.begin(), f.hosts.end());
    f.text =
        "the clocks are up to " + time_text(std::chrono::milliseconds(clocks.back().ms - clocks.front().ms)) + " apart";
    f.command = command;
    out.add_shared(std::move(f));
    return;
  }
  const std::int64_t normal = clocks[best + best_size / 2].ms;
  for (const auto& c : clocks) {
    const std::int64_t off = c.ms - normal;
    if (std::llabs(off) <= kClockWarnMs) continue;
    out.add(Severity::kWarning, "clock-off", c.host,
            "its clock is " + time_text(std::chrono::milliseconds(std::llabs(off))) +
                (off > 0 ? " ahead of" : " behind") + " that of " + plural(best_size, "other host"),
            command);
  }
}

std::vector<Finding> host_findings(const std::vector<ExaminedHost>& hosts, const HostQuestion& question) {
  std::vector<std::string> names;
  for (const auto& host : hosts) names.push_back(host.name);
  FindingList out(std::move(names));
  find_gpu_trouble(hosts, out);
  find_limits(hosts, question, out);
  find_nic_trouble(hosts, out);
  find_clocks(hosts, out);
  find_drift(hosts, question, out);
  find_settings(hosts, question, out);
  return out.take();
}

}  // namespace drun::check
