// How fast the ranks of one host can copy memory, all of them at once.
#pragma once

#include <cstddef>

#include "base/error.h"

namespace drun::bench {

// Collective. Bytes read and written per second by all ranks together, each in its best try: other work must not lower
// a bound. `n_bytes` matter: what fits into a cache is copied there.
Result<double> copy_speed(char* into, const char* from, std::size_t n_bytes);

}  // namespace drun::bench
