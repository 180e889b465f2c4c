// One collective by libdrun, as a measurement calls it.
#pragma once

#include "bench/pattern.h"

namespace drun::bench {

// The two buffers of a rank; in place all happens in `recv`.
struct Buffers {
  char* send = nullptr;
  char* recv = nullptr;
  bool on_gpu = false;
};

// Where this rank's input lies, and its output begins.
const char* input(const Call& call, const Buffers& buffers, bool in_place);
char* output(const Call& call, const Buffers& buffers, bool in_place);

// Returns a drun_status; on a GPU once all is enqueued on the legacy default stream. Out of place a broadcast's root
// copies what it sends into its own receive buffer.
int perform(const Call& call, const Buffers& buffers, bool in_place);

}  // namespace drun::bench
