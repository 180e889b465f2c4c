#include "agent/facts_text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/text.h"

namespace drun::agent {

namespace {

constexpr std::size_t kMaxGpus = 64, kMaxProcesses = 64;  // processes per GPU
constexpr std::size_t kMaxSlaves = 64;
constexpr std::size_t kMaxLines = 64, kLongestLine = 256;
constexpr std::size_t kMaxAddresses = 32;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (const auto word : split(line, ' ')) {
    if (const auto w = trim(word); !w.empty()) out.push_back(w);
  }
  return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (const auto line : split(text, '\n')) {
    if (const auto l = trim(line); !l.empty()) out.push_back(l);
  }
  return out;
}

std::vector<std::string_view> columns(std::string_view line) {
  std::vector<std::string_view> out;
  for (const auto column : split(line, ',')) out.push_back(trim(column));
  return out;
}

// "[N/A]", "[Not Supported]", "[Insufficient Permissions]" are -1.
std::int64_t number_or_unknown(std::string_view text) {
  const auto n = parse_number(text);
  return n && *n <= INT64_MAX ? static_cast<std::int64_t>(*n) : -1;
}

bool is_yes(std::string_view text) { return text == "Yes" || (parse_number(text).value_or(0) > 0); }

control::GpuFacts* find_gpu(std::vector<control::GpuFacts>& gpus, std::string_view uuid) {
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const auto& g) { return g.uuid == uuid; });
  return found == gpus.end() ? nullptr : &*found;
}

}  // namespace

std::string first_version(std::string_view text) {
  for (const auto line : lines_of(text)) {
    for (const auto word : words_of(line)) {
      const bool plain = std::all_of(word.begin(), word.end(), [](char c) { return is_digit(c) || c == '.'; });
      if (plain && is_digit(word.front()) && is_digit(word.back()) && word.find('.') != std::string_view::npos) {
        return std::string(word.substr(0, 64));
      }
    }
  }
  return "";
}

std::string cuda_version(std::string_view json) {
  const auto quoted_after = [&](std::string_view key, std::size_t from) -> std::size_t {
    const auto at = json.find(key, from);
    return at == std::string_view::npos ? at : at + key.size();
  };
  const auto cuda = quoted_after("\"cuda\"", 0);
  if (cuda == std::string_view::npos) return "";
  const auto version = quoted_after("\"version\"", cuda);
  if (version == std::string_view::npos) return "";
  const auto open = json.find('"', version);
  const auto close = open == std::string_view::npos ? open : json.find('"', open + 1);
  if (close == std::string_view::npos) return "";
  return std::string(json.substr(open + 1, std::min<std::size_t>(close - open - 1, 64)));
}

std::map<std::string, std::string> parse_versions(std::string_view text) {
  std::map<std::string, std::string> out;
  for (const auto line : lines_of(text)) {
    const auto words = words_of(line);
    if (words.size() != 2 || words[0].size() > 64 || out.size() >= kMaxLines) continue;
    out[std::string(words[0])] = std::string(words[1].substr(0, 64));
  }
  return out;
}

std::int64_t meminfo_mib(std::string_view meminfo, std::string_view name) {
  for (const auto line : lines_of(meminfo)) {
    const auto words = words_of(line);
    if (words.size() >= 2 && words[0].size() == name.size() + 1 && starts_with(words[0], name)) {
      const auto kib = parse_number(words[1]);
      return kib ? static_cast<std::int64_t>(*kib >> 10) : -1;
    }
  }
  return -1;
}

std::string cpu_model(std::string_view cpuinfo) {
  for (const auto line : lines_of(cpuinfo)) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto key = trim(line.substr(0, colon));
    if (key == "model name" || key == "CPU part") return std::string(trim(line.substr(colon + 1)).substr(0, 128));
  }
  return "";
}

std::optional<std::vector<control::GpuFacts>> parse_gpus(std::string_view csv) {
  std::vector<control::GpuFacts> out;
  for (const auto line : lines_of(csv)) {
    const auto c = columns(line);
    if (line == "No devices were found") continue;
    if (c.size() < 8 || !parse_number(c[0]) || !starts_with(c[1], "GPU-")) return std::nullopt;
    control::GpuFacts gpu;
    gpu.index = static_cast<std::int32_t>(number_or_unknown(c[0]));
    gpu.uuid = c[1];
    gpu.name = c[2];
    gpu.memory_total_mib = number_or_unknown(c[3]);
    gpu.memory_used_mib = number_or_unknown(c[4]);
    gpu.pcie_width = static_cast<std::int32_t>(number_or_unknown(c[5]));
    gpu.pcie_width_max = static_cast<std::int32_t>(number_or_unknown(c[6]));
    gpu.ecc_uncorrected = number_or_unknown(c[7]);
    if (c.size() > 8 && starts_with(c[8], "0x")) {
      gpu.throttle_reasons = std::strtoull(std::string(c[8]).c_str(), nullptr, 16);
    }
    if (out.size() < kMaxGpus) out.push_back(std::move(gpu));
  }
  return out;
}

void add_gpu_processes(std::string_view csv, std::vector<control::GpuFacts>& gpus) {
  for (const auto line : lines_of(csv)) {
    const auto c = columns(line);
    if (c.size() < 4) continue;
    control::GpuFacts* gpu = find_gpu(gpus, c[0]);
    const auto pid = parse_number(c[1]);
    if (gpu == nullptr || !pid || gpu->processes.size() >= kMaxProcesses) continue;
    control::GpuProcess process;
    process.pid = static_cast<std::int32_t>(*pid);
    // A command line may hold commas: the name is what lies between the pid and the last column.
    std::string name(c[2]);
    for (std::size_t i = 3; i + 1 < c.size(); ++i) name += "," + std::string(c[i]);
    process.name = name.substr(0, kLongestLine);
    process.used_mib = number_or_unknown(c.back());
    gpu->processes.push_back(std::move(process));
  }
}

void add_row_remaps(std::string_view csv, std::vector<control::GpuFacts>& gpus) {
  for (const auto line : lines_of(csv)) {
    const auto c = columns(line);
    control::GpuFacts* gpu = c.size() < 3 ? nullptr : find_gpu(gpus, c[0]);
    if (gpu == nullptr) continue;
    gpu->remap_pending = is_yes(c[1]);
    gpu->remap_failed = is_yes(c[2]);
  }
}

void add_xids(std::string_view records, std::int64_t now_us, std::vector<control::XidFacts>& xids) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  for (const auto line : lines_of(records)) {
    const auto at = line.find(kMark);
    const auto semicolon = line.find(';');
    if (at == std::string_view::npos || semicolon == std::string_view::npos || semicolon > at) continue;
    const auto head = split(line.substr(0, semicolon), ',');
    const auto close = line.find("): ", at);
    if (head.size() < 3 || close == std::string_view::npos) continue;
    control::XidFacts xid;
    xid.device = line.substr(at + kMark.size(), std::min<std::size_t>(close - at - kMark.size(), 32));
    std::size_t end = close + 3;
    while (end < line.size() && is_digit(line[end])) ++end;
    xid.number = static_cast<std::int32_t>(parse_number(line.substr(close + 3, end - close - 3)).value_or(0));
    const auto when_us = std::max<std::int64_t>(0, number_or_unknown(head[2]));
    xid.age_s = std::max<std::int64_t>(0, (now_us - when_us) / 1'000'000);
    xid.text = line.substr(at, kLongestLine);
    if (xids.size() >= kMaxXids) xids.erase(xids.begin());
    xids.push_back(std::move(xid));
  }
}

control::BondFacts parse_bond(const std::string& name, std::string_view text) {
  control::BondFacts bond;
  bond.name = name;
  for (const auto line : lines_of(text)) {
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const auto key = line.substr(0, colon);
    const auto value = trim(line.substr(colon + 2));
    if (key == "Bonding Mode") bond.mode = value;
    if (key == "Slave Interface" && bond.slaves.size() < kMaxSlaves) bond.slaves.emplace_back().name = value;
    if (bond.slaves.empty()) continue;
    if (key == "MII Status") bond.slaves.back().up = value == "up";
    if (key == "Speed") {
      bond.slaves.back().speed_mbps =
          static_cast<std::int32_t>(parse_number(value.substr(0, value.find(' '))).value_or(0));
    }
  }
  return bond;
}

std::vector<std::string> parse_ahosts(std::string_view text) {
  std::vector<std::string> out;
  for (const auto line : lines_of(text)) {
    std::string address(line.substr(0, line.find(' ')));
    const bool known = std::find(out.begin(), out.end(), address) != out.end();
    const bool digits = address.find_first_not_of("0123456789abcdefABCDEF.:") == std::string::npos;
    if (!known && digits && out.size() < kMaxAddresses) out.push_back(std::move(address));
  }
  return out;
}

std::vector<std::string> conf_lines(std::string_view text) {
  std::vector<std::string> out;
  for (const auto line : lines_of(text)) {
    if (line.front() != '#' && out.size() < kMaxLines) out.emplace_back(line.substr(0, kLongestLine));
  }
  return out;
}

std::string library_version(std::string_view file_name, std::string_view stem) {
  if (!starts_with(file_name, stem)) return "";
  const auto version = file_name.substr(stem.size());
  const bool plain = std::all_of(version.begin(), version.end(), [](char c) { return is_digit(c) || c == '.'; });
  // "libnccl.so.2" is the symbolic link.
  return plain && version.find('.') != std::string_view::npos ? std::string(version) : "";
}

control::DiskFacts parse_file_system(const std::string& path, std::string_view text) {
  control::DiskFacts out;
  out.path = path;
  for (const auto line : lines_of(text)) {
    const auto words = words_of(line);
    if (line == "writable") out.writable = true;
    if (words.size() != 3) continue;
    const auto block = parse_number(words[0]), size = parse_number(words[1]), free = parse_number(words[2]);
    if (!block || !size || !free) continue;
    const auto mib = [&](std::uint64_t blocks) {
      return static_cast<std::int64_t>(static_cast<double>(blocks) * static_cast<double>(*block) / (1 << 20));
    };
    out.size_mib = mib(*size);
    out.free_mib = mib(*free);
  }
  return out;
}

std::int64_t rdma_rate_mbps(std::string_view rate) {
  const std::string number(rate.substr(0, rate.find(' ')));
  char* end = nullptr;
  const double gbps = std::strtod(number.c_str(), &end);
  return end == number.c_str() || gbps < 0 || gbps > 1e6 ? -1 : static_cast<std::int64_t>(gbps * 1000);
}

bool gid_is_ipv4(std::string_view gid) { return starts_with(gid, "0000:0000:0000:0000:0000:ffff:"); }

}  // namespace drun::agent
