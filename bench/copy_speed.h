// Measures how fast the ranks of one host can copy memory, all of them at once.
#pragma once

#include <cstddef>

#include "base/error.h"

namespace drun::bench {

// Collective. Returns the bytes read and written per second by all ranks together, each in its best try, because
// other work must not lower a bound. The result depends on `n_bytes`: data that fits into a cache is copied there.
Result<double> copy_speed(char* into, const char* from, std::size_t n_bytes);

}  // namespace drun::bench
