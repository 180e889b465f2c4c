// memcpy for what may be large.
#pragma once

#include <cstddef>

namespace drun::runtime {

// The places do not overlap, and are not nullptr unless `n_bytes` is 0.
void copy_bytes(void* into, const void* from, std::size_t n_bytes);

}  // namespace drun::runtime
