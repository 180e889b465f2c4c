#include "tests/fakes/cuda/kernels.h"

#include <map>
#include <string>

namespace drun::runtime::gpu {
namespace {

std::map<std::string, EmulatedKernel>& kernels() {
  static auto* const all = new std::map<std::string, EmulatedKernel>;
  return *all;
}

}  // namespace

bool register_kernel(const char* name, EmulatedKernel kernel) { return kernels().emplace(name, kernel).second; }

const EmulatedKernel* find_kernel(const char* name) {
  const auto found = kernels().find(name);
  return found == kernels().end() ? nullptr : &found->second;
}

}  // namespace drun::runtime::gpu

#include "runtime/src/gpu/kernels/kernels.cu"
