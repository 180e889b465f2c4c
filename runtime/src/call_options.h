// What a program may say about one call, taken out of the C structure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/src/failure.h"

namespace drun::runtime {

namespace gpu {
class StreamWait;
}

// More, as 'never' may be written, is taken for this: 30 years, which a point in time can be apart from now.
inline constexpr std::int64_t kLongestMs = 1'000'000'000'000;

struct CallOptions {
  std::string name;                      // shown in errors; at most kNameBytes
  std::chrono::milliseconds timeout{0};  // 0: the communicator's
  double prescale = 1, postscale = 1;
  drun_request* request = nullptr;  // not null: the call is asynchronous
  drun_memory memory = DRUN_MEMORY_AUTO;
  void* stream = nullptr;            // of a device
  gpu::StreamWait* later = nullptr;  // not null: the stream waits for the call when the program asks for its request
  std::chrono::steady_clock::time_point made{};  // if the call is carried out later: when the program made it

  static constexpr std::size_t kNameBytes = 63;
};

// Into `result`, which has the defaults: what NULL means. `function` is whose call it is, for errors. The structure may
// be of an older or newer header.
Status read_call_options(const char* function, const drun_call_options* given, CallOptions& result);

}  // namespace drun::runtime
