#include <algorithm>
#include <set>

#include "check/host_findings.h"

namespace drun::check {

namespace {

constexpr std::int64_t kForeignWarnMib = 850, kForeignFailMib = 2048;
constexpr std::int64_t kSmiWarnMs = 1000, kSmiFailMs = 5000;
constexpr std::int64_t kRecentXidS = 2 * 60 * 60;

// Bits of NVML's clocks event reasons. Idle, application clocks and the like are harmless.
struct Reason {
  std::uint64_t bit;
  const char* words;
};
constexpr Reason kSlowdowns[] = {
    {0x08, "hardware slowdown"}, {0x20, "too hot (software)"}, {0x40, "too hot (hardware)"}, {0x80, "power brake"}};
constexpr std::uint64_t kPowerCap = 0x04;

// After these the GPU needs a reset, or the machine an inspection. 13, 31, 43 and 45 are caused by programs.
constexpr int kFatalXids[] = {48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 95, 119, 120};
constexpr int kProgramXids[] = {13, 31, 43, 45};

template <std::size_t N>
bool among(const int (&list)[N], int number) {
  return std::find(std::begin(list), std::end(list), number) != std::end(list);
}

std::string gpu_name(const control::GpuFacts& gpu) { return "GPU " + std::to_string(gpu.index); }

std::string gpus_text(const std::vector<int>& indices) {
  std::vector<std::string> words;
  for (const int i : indices) words.push_back(std::to_string(i));
  return (words.size() == 1 ? "GPU " : "GPUs ") + join(words, ", ");
}

void find_foreign_memory(const control::HostFacts& f, int host, FindingList& out) {
  std::vector<int> used;
  std::int64_t worst = 0;
  std::vector<std::string> details;
  for (const auto& gpu : f.gpus) {
    if (gpu.memory_used_mib < kForeignWarnMib) continue;
    used.push_back(gpu.index);
    worst = std::max(worst, gpu.memory_used_mib);
    std::string line = gpu_name(gpu) + ": " + std::to_string(gpu.memory_used_mib) + " of " +
                       std::to_string(gpu.memory_total_mib) + " MiB";
    for (const auto& p : gpu.processes) {
      line += ", pid " + std::to_string(p.pid) + " " + p.name;
      if (p.used_mib >= 0) line += " (" + std::to_string(p.used_mib) + " MiB)";
    }
    details.push_back(std::move(line));
  }
  if (used.empty()) return;
  out.add(worst >= kForeignFailMib ? Severity::kFailure : Severity::kWarning, "gpu-memory-used", host,
          "up to " + std::to_string(worst) + " MiB of the memory of " + gpus_text(used) + " are in use by others",
          "nvidia-smi", std::move(details));
}

void find_errors(const control::HostFacts& f, int host, FindingList& out) {
  for (const auto& gpu : f.gpus) {
    if (gpu.ecc_uncorrected > 0) {
      out.add(Severity::kFailure, "gpu-ecc", host,
              gpu_name(gpu) + " has had " +
                  plural(static_cast<std::size_t>(gpu.ecc_uncorrected), "uncorrected ECC error") +
                  " since its driver was loaded",
              "nvidia-smi -q -d ECC,ROW_REMAPPER -i " + std::to_string(gpu.index));
    }
    if (gpu.remap_failed || gpu.remap_pending) {
      out.add(gpu.remap_failed ? Severity::kFailure : Severity::kWarning, "gpu-row-remap", host,
              gpu.remap_failed ? gpu_name(gpu) + " could not remap a broken row of its memory: it has to be replaced"
                               : gpu_name(gpu) + " has a broken row of memory that a reset will remap",
              gpu.remap_failed ? "nvidia-smi -q -d ROW_REMAPPER -i " + std::to_string(gpu.index)
                               : "nvidia-smi --gpu-reset -i " + std::to_string(gpu.index));
    }
    std::vector<std::string> reasons;
    for (const auto& reason : kSlowdowns) {
      if ((gpu.throttle_reasons & reason.bit) != 0) reasons.emplace_back(reason.words);
    }
    const std::string poll = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER -i " + std::to_string(gpu.index);
    if (!reasons.empty()) {
      out.add(Severity::kWarning, "gpu-throttled", host, gpu_name(gpu) + " is slowed down: " + join(reasons, ", "),
              poll);
    } else if ((gpu.throttle_reasons & kPowerCap) != 0) {
      out.add(Severity::kNote, "gpu-throttled", host, gpu_name(gpu) + " is at its power limit", poll);
    }
  }
}

void find_xids(const control::HostFacts& f, int host, FindingList& out) {
  // One finding per GPU and number, with the latest line of the log.
  std::set<std::pair<std::string, int>> told;
  for (auto it = f.xids.rbegin(); it != f.xids.rend(); ++it) {
    const control::XidFacts& xid = *it;
    if (!told.emplace(xid.device, xid.number).second) continue;
    const bool recent = xid.age_s <= kRecentXidS;
    Severity severity = recent ? Severity::kWarning : Severity::kNote;
    if (among(kFatalXids, xid.number)) severity = recent ? Severity::kFailure : Severity::kWarning;
    if (among(kProgramXids, xid.number)) severity = Severity::kNote;
    out.add(severity, "gpu-xid", host,
            "the kernel's log has Xid " + std::to_string(xid.number) + " of the GPU at " + xid.device + ", " +
                std::to_string(xid.age_s / 60) + " min ago",
            "dmesg | grep Xid", {xid.text});
  }
}

}  // namespace

void find_gpu_trouble(const std::vector<ExaminedHost>& hosts, FindingList& out) {
  bool driver = false;
  std::set<std::pair<int, int>> widths;
  for (const auto& host : hosts) {
    if (host.facts == nullptr) continue;
    const control::HostFacts& f = *host.facts;
    driver = driver || !f.gpus.empty() || f.versions.count("driver") > 0;
    driver = driver || (f.has_nvidia_smi && (f.nvidia_smi_late || f.nvidia_smi_problem.empty()));
    for (const auto& gpu : host.facts->gpus) widths.emplace(gpu.pcie_width, gpu.pcie_width_max);
  }
  const bool widths_differ = widths.size() > 1;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].facts == nullptr) continue;
    const control::HostFacts& f = *hosts[i].facts;
    const int host = static_cast<int>(i);
    if (!f.nvidia_smi_problem.empty()) {
      // Without a driver on any host, GPUs are not meant to be used; a timeout below kSmiFailMs proves little.
      const bool waited = !f.nvidia_smi_late || f.nvidia_smi_ms >= kSmiFailMs;
      const Severity other = driver || f.has_nvidia_smi ? Severity::kWarning : Severity::kNote;
      out.add(driver && waited ? Severity::kFailure : other, "nvidia-smi-failed", host,
              "nvidia-smi: " + f.nvidia_smi_problem, "dmesg | grep -i nvrm; nvidia-smi");
    } else {
      if (f.nvidia_smi_ms > kSmiWarnMs) {
        out.add(f.nvidia_smi_ms > kSmiFailMs ? Severity::kFailure : Severity::kWarning, "nvidia-smi-slow", host,
                "nvidia-smi took " + std::to_string(f.nvidia_smi_ms) + " ms: a GPU that hangs, or no persistence mode",
                "nvidia-smi -pm 1; time nvidia-smi -L");
      }
      const int n = static_cast<int>(f.gpus.size());
      if (driver && n < hosts[i].slots) {
        out.add(Severity::kFailure, "gpus-fewer", host,
                "has " + (n == 0 ? std::string("no GPU") : plural(static_cast<std::size_t>(n), "GPU")) + " for " +
                    plural(static_cast<std::size_t>(hosts[i].slots), "slot"),
                f.has_nvidia_smi ? "nvidia-smi -L; lspci | grep -i nvidia" : "lspci | grep -i nvidia");
      }
    }
    find_foreign_memory(f, host, out);
    find_errors(f, host, out);
    for (const auto& gpu : f.gpus) {
      if (gpu.pcie_width <= 0 || gpu.pcie_width >= gpu.pcie_width_max) continue;
      // If all GPUs of all hosts are alike, these machines are built that way.
      out.add(widths_differ ? Severity::kWarning : Severity::kNote, "gpu-pcie-width", host,
              gpu_name(gpu) + " uses " + std::to_string(gpu.pcie_width) + " of " + std::to_string(gpu.pcie_width_max) +
                  " PCIe lanes",
              "nvidia-smi -q -i " + std::to_string(gpu.index) + " | grep -A4 'Link Width'");
    }
    find_xids(f, host, out);
  }
}

}  // namespace drun::check
