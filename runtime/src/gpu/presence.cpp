#include "runtime/src/gpu/presence.h"

#include <unistd.h>

namespace drun::runtime::gpu {
namespace {

// A device's cgroup may forbid it as well as the file's mode.
bool can_open(const std::string& path) { return ::access(path.c_str(), R_OK | W_OK) == 0; }
bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Any of nvidia0, nvidia1, ... may be in a container.
Presence check_devices(const std::string& folder) {
  constexpr int kMax = 256;
  Presence result = Presence::kNoDevice;
  for (int i = 0; i < kMax; ++i) {
    const std::string device = folder + "/nvidia" + std::to_string(i);
    if (can_open(device)) return Presence::kThere;
    if (is_there(device)) result = Presence::kForbidden;
  }
  return result;
}

}  // namespace

Presence find_gpu(const char* (*get_env)(const char*), const std::string& folder) {
  const auto value_of = [&](const char* name, const char* otherwise) {
    const char* const value = get_env(name);
    return std::string(value != nullptr ? value : otherwise);
  };
  const std::string told = value_of("DRUN_GPU", "");
  if (told == "1") return Presence::kThere;
  if (told == "0") return Presence::kDenied;
  const std::string visible = value_of("CUDA_VISIBLE_DEVICES", "all");
  if (visible.empty() || visible[0] == '-') return Presence::kHidden;
  if (can_open(folder + "/dxg")) return Presence::kThere;  // Windows Subsystem for Linux
  const std::string control = folder + "/nvidiactl";
  if (!is_there(control)) return Presence::kNoDriver;
  return can_open(control) ? check_devices(folder) : Presence::kForbidden;
}

const char* text_of(Presence presence) {
  switch (presence) {
    case Presence::kThere:
      return "a GPU";
    case Presence::kDenied:
      return "DRUN_GPU=0";
    case Presence::kHidden:
      return "CUDA_VISIBLE_DEVICES leaves none";
    case Presence::kNoDriver:
      return "no NVIDIA driver: /dev/nvidiactl is not there";
    case Presence::kForbidden:
      return "/dev/nvidiactl, or all of /dev/nvidia0 and its like, may not be opened by this process";
    case Presence::kNoDevice:
      return "the NVIDIA driver has no device: /dev/nvidia0 and its like are not there";
  }
  return "";
}

}  // namespace drun::runtime::gpu
