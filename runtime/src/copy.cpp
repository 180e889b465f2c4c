#include "runtime/src/copy.h"

#include <algorithm>
#include <cstring>

namespace drun::runtime {
namespace {

// From 2112 bytes on glibc copies with `rep movsb`, which on AMD processors (Zen 3, Zen 4) is up to twenty times slower
// than its loops for some alignments of the two buffers (glibc bug 30994), among them those of large allocations and
// slots in shared memory. For shorter pieces glibc uses the loops.
constexpr std::size_t kShorter = 2048;

bool is_amd() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

}  // namespace

void copy_bytes(void* into, const void* from, std::size_t n_bytes) {
  static const std::size_t piece = is_amd() ? kShorter : static_cast<std::size_t>(-1);
  auto* to = static_cast<char*>(into);
  const auto* place = static_cast<const char*>(from);
  while (n_bytes > 0) {
    const std::size_t n = std::min(piece, n_bytes);
    std::memcpy(to, place, n);
    to += n;
    place += n;
    n_bytes -= n;
  }
}

}  // namespace drun::runtime
