// Calls that are carried out after the C function has returned: those with a request, and those between
// drun_group_start and drun_group_end. call_group.h carries them out.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/include/drun/drun.h"
#include "runtime/src/call_group.h"
#include "runtime/src/call_queue.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/driver.h"

struct drun_request_s {
  std::shared_ptr<drun::runtime::Request> call;
};

namespace drun::runtime {

// The open groups of a thread, which owns this.
struct OpenGroup {
  std::vector<LaterCall> calls;
  std::vector<std::size_t> begins;  // index of the first call of each open group, from the outermost in
  bool is_open() const { return !begins.empty(); }
};
inline OpenGroup& open_group() {
  thread_local OpenGroup group;
  return group;
}

// True if a call with these options is deferred.
inline bool is_later(const drun_call_options* options) {
  constexpr std::size_t kEnd = offsetof(drun_call_options, request) + sizeof(drun_call_options::request);
  return open_group().is_open() || (options != nullptr && options->struct_size >= kEnd && options->request != nullptr);
}

// Adds the call to the thread's open group, or submits it. Makes its request.
Status defer(LaterCall call);

void start_group();
// Ends the innermost group. If it was the outermost, runs its calls asynchronously if every call has a request;
// otherwise blocks until all are done.
Status end_group();
// Forgets the calls of the innermost group, and fails their requests.
Status cancel_group();

// Waits for the call, frees the request, and returns the call's result. `stream`, if given, waits in place of the
// call's stream. `function` names the caller in errors.
Status finish_request(const char* function, drun_request* request, std::optional<gpu::Stream> stream = {});
// True if drun_wait would not block.
bool is_done(drun_request request);

}  // namespace drun::runtime
