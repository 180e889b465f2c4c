// A function of another library's that must come back: if it does not, the process ends with a word about it. A process
// that holds a GPU and does nothing is what must not be.
#pragma once

#include <chrono>
#include <string>

namespace drun::runtime::gpu {

// From its construction to its destruction the function may take so long; then the process ends with status 75, after a
// line on stderr: "drun: error: WHO: FUNCTION has not come back for 10 s: ending this process". Any thread.
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
