#include "agent/gpu_nodes.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

namespace {

constexpr const char* kDriver = "/proc/driver/nvidia/gpus";
constexpr std::size_t kLongestFile = 64u << 10;

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> out;
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return out;
  while (const dirent* entry = ::readdir(entries)) {
    if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  }
  ::closedir(entries);
  std::sort(out.begin(), out.end());
  return out;
}

// Parses "GPU UUID: \t GPU-5cb2..." in the driver's file.
std::string uuid_in(std::string_view information) {
  for (const auto line : split(information, '\n')) {
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == "GPU UUID")
      return std::string(trim(line.substr(colon + 1)));
  }
  return "";
}

// `name` is a number, a UUID or the beginning of a UUID, as CUDA accepts them.
int node_of(std::string_view name, const std::vector<GpuNode>& gpus) {
  if (const auto number = parse_number(name)) return *number < gpus.size() ? gpus[*number].node : -1;
  if (!starts_with(name, "GPU-")) return -1;
  const auto gpu = std::find_if(gpus.begin(), gpus.end(), [name](const auto& g) { return starts_with(g.uuid, name); });
  return gpu == gpus.end() ? -1 : gpu->node;
}

// CUDA ignores everything after the first name that is not a GPU, as in "0,1,-1,2".
std::vector<std::string> visible_devices(std::string_view list, std::size_t n_gpus) {
  std::vector<std::string> out;
  for (const auto word : split(list, ',')) {
    const auto name = trim(word);
    const auto number = parse_number(name);
    if (number ? *number >= n_gpus : !starts_with(name, "GPU-") && !starts_with(name, "MIG-")) break;
    out.emplace_back(name);
  }
  return out;
}

}  // namespace

std::vector<GpuNode> read_gpu_nodes(const std::string& root) {
  const std::string driver = root + kDriver;
  std::vector<GpuNode> out;
  for (const auto& address : names_in(driver)) {  // "0000:1b:00.0"
    GpuNode gpu;
    gpu.uuid = uuid_in(read_file(driver + "/" + address + "/information", kLongestFile).value_or(""));
    const auto node = read_file(root + "/sys/bus/pci/devices/" + lower(address) + "/numa_node", kLongestFile);
    const auto number = node ? parse_number(node->substr(0, node->find('\n'))) : std::nullopt;  // "-1": unknown
    if (number) gpu.node = static_cast<int>(*number);
    out.push_back(std::move(gpu));
  }
  return out;
}

std::size_t count_gpus(const std::string& root) { return names_in(root + kDriver).size(); }

std::vector<int> nodes_of_workers(const std::vector<std::string>& named, const std::vector<GpuNode>& gpus,
                                  const std::map<std::string, std::string>& environment) {
  std::vector<std::string> visible;
  if (const auto list = environment.find("CUDA_VISIBLE_DEVICES"); list != environment.end()) {
    visible = visible_devices(list->second, gpus.size());
  } else {
    for (std::size_t i = 0; i < gpus.size(); ++i) visible.push_back(std::to_string(i));
  }
  const bool is_by_local_rank = visible.size() >= named.size();
  std::vector<int> out;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const std::string gpu = !named[i].empty() ? named[i] : is_by_local_rank ? visible[i] : "";
    out.push_back(node_of(gpu, gpus));
  }
  return out;
}

std::vector<std::string> missing_gpus(const std::vector<std::string>& named, const std::vector<GpuNode>& gpus) {
  const auto is_known = [](const GpuNode& gpu) {  // "GPU-????????-...": not yet
    return starts_with(gpu.uuid, "GPU-") && gpu.uuid.find('?') == std::string::npos;
  };
  const bool all_known = std::all_of(gpus.begin(), gpus.end(), is_known);
  std::vector<std::string> out;
  for (const auto& name : named) {
    const auto number = parse_number(name);
    const bool has_uuid =
        std::any_of(gpus.begin(), gpus.end(), [&](const auto& g) { return starts_with(g.uuid, name); });
    const bool is_missing = number ? *number >= gpus.size() : starts_with(name, "GPU-") && all_known && !has_uuid;
    if (is_missing && !gpus.empty()) out.push_back(name);
  }
  return out;
}

}  // namespace drun::agent
