// Checks if this process may have a GPU without loading the driver, which costs memory and time that a job on
// processors should not pay.
#pragma once

#include <string>

namespace drun::runtime::gpu {

enum class Presence : unsigned char {
  kThere,
  kDenied,     // DRUN_GPU=0
  kHidden,     // CUDA_VISIBLE_DEVICES leaves none
  kNoDriver,   // no NVIDIA driver in the /dev of this host or container
  kForbidden,  // this user or this container may not open it
  kNoDevice,   // a driver, but no device
};
// Converts a number that another process has sent.
inline Presence presence_of(int number) {
  return number >= 0 && number <= static_cast<int>(Presence::kNoDevice) ? static_cast<Presence>(number)
                                                                        : Presence::kNoDriver;
}

// Follows DRUN_GPU=0 or 1; otherwise checks CUDA_VISIBLE_DEVICES and the devices in `folder`.
Presence find_gpu(const char* (*get_env)(const char*), const std::string& folder = "/dev");

// The reason why a rank, perhaps another one, has no GPU: "no NVIDIA driver: /dev/nvidiactl is not there".
const char* text_of(Presence presence);

}  // namespace drun::runtime::gpu
