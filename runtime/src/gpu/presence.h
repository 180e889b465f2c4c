// Whether this process may have a GPU, without a look at the driver, which costs memory and time that a job on
// processors should not pay.
#pragma once

#include <string>

namespace drun::runtime::gpu {

enum class Presence : unsigned char {
  kThere,
  kDenied,     // DRUN_GPU=0
  kHidden,     // CUDA_VISIBLE_DEVICES leaves none
  kNoDriver,   // of NVIDIA's, in this host's or container's /dev
  kForbidden,  // to this user, or this container
  kNoDevice,   // there is a driver
};
// Of a number that another process has sent.
inline Presence presence_of(int number) {
  return number >= 0 && number <= static_cast<int>(Presence::kNoDevice) ? static_cast<Presence>(number)
                                                                        : Presence::kNoDriver;
}

// DRUN_GPU=0 or 1 is an answer; else it is what CUDA_VISIBLE_DEVICES and the devices in `folder` say.
Presence look_for_gpu(const char* (*get_env)(const char*), const std::string& folder = "/dev");

// Why there is none: "no NVIDIA driver: /dev/nvidiactl is not there". Of another rank, perhaps.
const char* text_of(Presence presence);

}  // namespace drun::runtime::gpu
