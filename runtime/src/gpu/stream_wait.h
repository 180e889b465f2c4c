// What the program's stream waits for after a call of NCCL's: at once, or, for a call in the background, when the
// program asks for it. docs/gpu.md.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/src/call_options.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

// Of a request. One thread at a time; the queue of calls orders them.
class StreamWait {
 public:
  StreamWait() = default;
  ~StreamWait() { destroy(); }
  StreamWait(const StreamWait&) = delete;
  StreamWait& operator=(const StreamWait&) = delete;

  // The call is enqueued. `event`, which is ours from here on, comes at its end; the context is both's.
  void set(const Driver& driver, Context context, Stream stream, Event event);
  // Not while its stream, or `other` in its place, is being captured, which the event is not.
  bool is_possible(std::optional<Stream> other = {}) const;
  // What the stream gets from here on comes after the event. Once; kSuccess if there is nothing to wait for.
  DriverResult carry_out(std::optional<Stream> other = {});

 private:
  void destroy();

  const Driver* driver_ = nullptr;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  Event event_ = nullptr;
};

// The stream that a call was given.
struct UserStream {
  Stream stream = nullptr;
  StreamWait* later = nullptr;  // none: it waits at once
};

// CU_STREAM_PER_THREAD: of whichever thread says it.
inline Stream stream_of_thread() { return reinterpret_cast<Stream>(std::uintptr_t{2}); }
inline Stream stream_of(const CallOptions& options) { return static_cast<Stream>(options.stream); }
inline UserStream user_stream_of(const CallOptions& options) { return {stream_of(options), options.later}; }

}  // namespace drun::runtime::gpu
