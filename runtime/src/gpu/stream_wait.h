// Makes the program's stream wait for a call of NCCL's: at once, or, for an asynchronous call, when the program waits
// for its request. docs/gpu.md.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/src/call_options.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

// The wait of a request. One thread at a time, as the queue of calls ensures.
class StreamWait {
 public:
  StreamWait() = default;
  ~StreamWait() { destroy(); }
  StreamWait(const StreamWait&) = delete;
  StreamWait& operator=(const StreamWait&) = delete;

  // The call is enqueued. Takes over `event`, which is reached at the call's end; the context is that of stream and
  // event.
  void set(const Driver& driver, Context context, Stream stream, Event event);
  // False while the stream, or `other` in its place, is being captured: the event is not part of the capture.
  bool is_possible(std::optional<Stream> other = {}) const;
  // Orders work that the stream gets from here on after the event. Call once; kSuccess if there is nothing to wait for.
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
  StreamWait* later = nullptr;  // nullptr: the stream waits at once
};

// CU_STREAM_PER_THREAD: the default stream of the calling thread.
inline Stream stream_of_thread() { return reinterpret_cast<Stream>(std::uintptr_t{2}); }
inline Stream stream_of(const CallOptions& options) { return static_cast<Stream>(options.stream); }
inline UserStream user_stream_of(const CallOptions& options) { return {stream_of(options), options.later}; }

}  // namespace drun::runtime::gpu
