// The kernels of this build, loaded into the contexts that use them. docs/gpu.md.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

// The kernels of one context. Thread-safe.
class KernelModule {
 public:
  // Loads the kernels once for the life of the process; the context must be current. DRUN_ERROR_UNSUPPORTED: this build
  // has no kernels, or none for that GPU.
  static Outcome<KernelModule*> of(const Driver& driver, Context context, const std::string& during);

  // Enqueues a kernel; the context must be current. Reads `arguments` before it returns. Launches a block per part of
  // work, but at most as many blocks as the GPU runs at once.
  Status launch(const std::string& kernel, const void* arguments, std::uint64_t n_parts, Stream stream,
                const std::string& during);

 private:
  struct Kernel {
    Function function = nullptr;
    std::uint64_t max_blocks = 1;
  };
  explicit KernelModule(const Driver& driver) : driver_(driver) {}
  Status load(const std::string& during);
  Outcome<Kernel> find(const std::string& name, const std::string& during);

  const Driver& driver_;
  Module module_ = nullptr;
  int n_multiprocessors_ = 1;
  std::mutex mutex_;
  std::map<std::string, Kernel> kernels_;
};

}  // namespace drun::runtime::gpu
