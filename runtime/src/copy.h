// memcpy for data that may be large.
#pragma once

#include <cstddef>

namespace drun::runtime {

// The buffers must not overlap, and may be null only if `n_bytes` is 0.
void copy_bytes(void* into, const void* from, std::size_t n_bytes);

}  // namespace drun::runtime
