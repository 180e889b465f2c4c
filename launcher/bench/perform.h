// One collective by libdrun, as a measurement calls it.
#pragma once

#include "launcher/bench/pattern.h"

namespace drun::bench {

// The two buffers of a rank; in place all happens in `recv`.
struct Buffers {
  char* send = nullptr;
  char* recv = nullptr;
};

// Where this rank's input lies, and its output begins.
const char* input(const Call& call, const Buffers& buffers, bool in_place);
char* output(const Call& call, const Buffers& buffers, bool in_place);

// Returns a drun_status. Out of place a broadcast's root copies what it sends into its own receive buffer.
int perform(const Call& call, const Buffers& buffers, bool in_place);

}  // namespace drun::bench
