// The options of one call, taken out of the C structure.
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

// Maximum timeout, to which larger values, such as for "never", are clamped: 30 years, which can still be added to the
// current time.
inline constexpr std::int64_t kLongestMs = 1'000'000'000'000;

struct CallOptions {
  std::string name;                      // shown in errors; at most kNameBytes
  std::uint32_t names = 0;               // Operation::names; 0: not a name given by the program
  std::chrono::milliseconds timeout{0};  // 0: the timeout of the communicator
  double prescale = 1, postscale = 1;
  drun_request* request = nullptr;  // not null: the call is asynchronous
  drun_memory memory = DRUN_MEMORY_AUTO;
  void* stream = nullptr;            // a device stream
  gpu::StreamWait* later = nullptr;  // not null: the stream waits for the call once the request is waited for
  // Sets the program's name of the call, which is compared with the name on other ranks.
  void give_name(std::string_view given);

  std::chrono::steady_clock::time_point made{};  // time at which the program made the call, if it is carried out later
};

// Reads `given` into `result`, which holds the defaults; NULL leaves them. `function` names the caller in errors. The
// structure may be of an older or newer header.
Status read_call_options(const char* function, const drun_call_options* given, CallOptions& result);

}  // namespace drun::runtime
