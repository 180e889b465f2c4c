// Watchdog for blocking NCCL and driver calls: a call that exceeds its limit ends the process with status 75 and an
// error, so that the process does not hang while it holds a GPU.
#pragma once

#include <chrono>
#include <string>

namespace drun::runtime::gpu {

// Allows the function `limit` between construction and destruction, without the time for which the process was stopped.
// Then ends the process with status 75 after a line on stderr: "drun: error: WHO: FUNCTION has not come back for 10 s:
// ending this process". Thread-safe.
class HangGuard {
 public:
  HangGuard(const std::string& who, const char* function, std::chrono::milliseconds limit);
  ~HangGuard();
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;

 private:
  unsigned long long number_;
};

}  // namespace drun::runtime::gpu
