// Calls one collective of libdrun for a measurement.
#pragma once

#include "bench/pattern.h"

namespace drun::bench {

// The two buffers of a rank; in-place calls use only `recv`.
struct Buffers {
  char* send = nullptr;
  char* recv = nullptr;
  bool on_gpu = false;
};

// The beginning of this rank's input, and of its output.
const char* input(const Call& call, const Buffers& buffers, bool in_place);
char* output(const Call& call, const Buffers& buffers, bool in_place);

// Returns a drun_status; on a GPU when all work is enqueued on the legacy default stream. In an out-of-place
// broadcast the root copies its input into its own receive buffer.
int perform(const Call& call, const Buffers& buffers, bool in_place);

}  // namespace drun::bench
