// What a program may say about one call, taken out of the C structure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/src/failure.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

namespace gpu {
class StreamWait;
}

// More, as 'never' may be written, is taken for this: 30 years, which a point in time can be apart from now.
inline constexpr std::int64_t kLongestMs = 1'000'000'000'000;

struct CallOptions {
  std::string name;                      // shown in errors; at most kNameBytes
  std::uint32_t names = 0;               // Operation::names; 0: this name is not the program's
  std::chrono::milliseconds timeout{0};  // 0: the communicator's
  double prescale = 1, postscale = 1;
  drun_request* request = nullptr;  // not null: the call is asynchronous
  drun_memory memory = DRUN_MEMORY_AUTO;
  void* stream = nullptr;            // of a device
  gpu::StreamWait* later = nullptr;  // not null: the stream waits for the call when the program asks for its request
  // The program's, which is compared with what other ranks call theirs.
  void give_name(std::string_view given);

  std::chrono::steady_clock::time_point made{};  // if the call is carried out later: when the program made it
};

// Into `result`, which has the defaults: what NULL means. `function` is whose call it is, for errors. The structure may
// be of an older or newer header.
Status read_call_options(const char* function, const drun_call_options* given, CallOptions& result);

}  // namespace drun::runtime
