// One call of drun/gpu.h: finds the GPU of its memory, makes the GPU's context current, and launches kernels there.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/include/drun/drun.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

tl::unexpected<Failure> wrong_argument(const std::string& during, const std::string& what);

// Number of parts of `of` elements, the last one maybe shorter.
inline std::uint64_t parts(std::uint64_t n, std::uint64_t of) { return n / of + (n % of != 0 ? 1 : 0); }

// Work on the GPU that holds `memory`. On the stack of the call, which is named in errors; the destructor restores the
// context before. Does not wait for the work.
class Work {
 public:
  Work(const char* function, void* stream) : during_(function), stream_(static_cast<Stream>(stream)) {}

  // Must be called first. `what` names the argument in errors.
  Status begin(const void* memory, const char* what);
  // Launches a kernel with `n_parts` parts of work.
  Status launch(const std::string& kernel, const void* arguments, std::uint64_t n_parts);
  // The failure for an error of a function of the driver.
  tl::unexpected<Failure> failed(const char* function, DriverResult error) const;
  const Driver& driver() const { return *driver_; }
  Stream stream() const { return stream_; }
  const std::string& during() const { return during_; }

 private:
  std::string during_;
  Stream stream_;
  const Driver* driver_ = nullptr;
  Context context_ = nullptr;
  ContextScope scope_;
};

// Fails unless the type is f32 or f64.
Status check_wide(const Work& work, drun_dtype dtype);

}  // namespace drun::runtime::gpu
