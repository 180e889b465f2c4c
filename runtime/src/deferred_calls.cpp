#include "runtime/src/deferred_calls.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/stream_wait.h"
#include "runtime/src/runtime_state.h"

namespace drun::runtime {
namespace {

Status check_call(const char* function, drun_comm comm) {
  const Process& process = state().process;
  if (process.is_initialized() && !process.is_forked_child() && process.place_in(comm).rank >= 0) return {};
  return in_turn([&](Process& here) -> Status {
    auto communicator = here.communicator(function, comm);
    if (!communicator) return tl::unexpected<Failure>(communicator.error());
    return {};
  });
}

// Runs the calls on the queue's thread. Their requests are completed at the end in any case.
void submit(std::vector<LaterCall> calls, const std::shared_ptr<Request>& whole = nullptr) {
  RuntimeState& all = state();
  const auto shared = std::make_shared<const std::vector<LaterCall>>(std::move(calls));
  if (whole) all.queue.mark_submitted(*whole);
  for (const auto& call : *shared) {
    if (call.request) all.queue.mark_submitted(*call.request);
  }
  try {
    all.queue.submit([&all, shared, whole] {
      auto done = carry_out_all(all.process, all.queue, *shared);
      if (whole) all.queue.complete(*whole, std::move(done));
    });
  } catch (const std::exception& e) {
    for (const auto& call : *shared) {
      if (call.request) all.queue.complete(*call.request, failure(DRUN_ERROR_SYSTEM, e.what()));
    }
    throw;
  }
}

// Runs the calls of the outermost group.
Status run_group(std::vector<LaterCall> calls) {
  const auto has_request = [](const LaterCall& call) { return call.request != nullptr; };
  RuntimeState& all = state();
  if (std::none_of(calls.begin(), calls.end(), has_request)) {
    return in_turn([&](Process& process) { return carry_out_all(process, all.queue, calls); });
  }
  if (std::all_of(calls.begin(), calls.end(), has_request)) {
    submit(std::move(calls));
    return {};
  }
  const auto whole = std::make_shared<Request>();
  submit(std::move(calls), whole);
  return all.queue.wait(*whole);
}

}  // namespace

Status defer(LaterCall call) {
  if (auto ok = check_call(call.function, call.comm); !ok) return ok;
  OpenGroup& group = open_group();
  call.options.made = Clock::now();
  if (call.options.request != nullptr) {
    if (gpu::stream_of(call.options) == gpu::stream_of_thread() && call.options.memory != DRUN_MEMORY_HOST) {
      return failure(DRUN_ERROR_ARGUMENT, std::string(call.function) +
                                              ": the stream of a thread (cudaStreamPerThread) can't be that of a call "
                                              "with a request, which other threads work on");
    }
    call.request = std::make_shared<Request>();
    call.options.later = &call.request->stream_wait;
    *call.options.request = new drun_request_s{call.request};
    call.options.request = nullptr;  // it may be invalid by the time the call is carried out
  }
  if (group.is_open()) {
    group.calls.push_back(std::move(call));
  } else {
    submit({std::move(call)});
  }
  return {};
}

void start_group() {
  OpenGroup& group = open_group();
  group.begins.push_back(group.calls.size());
}

Status end_group() {
  OpenGroup& group = open_group();
  if (!group.is_open()) return failure(DRUN_ERROR_STATE, "drun_group_end: there was no drun_group_start");
  group.begins.pop_back();
  if (group.is_open() || group.calls.empty()) return {};
  return run_group(std::exchange(group.calls, {}));
}

Status cancel_group() {
  auto& group = open_group();
  if (!group.is_open()) return failure(DRUN_ERROR_STATE, "drun_group_cancel: there was no drun_group_start");
  const auto first = group.calls.begin() + static_cast<std::ptrdiff_t>(group.begins.back());
  auto& queue = state().queue;
  for (auto call = first; call != group.calls.end(); ++call) {
    // In a forked child the queue's lock may be held forever.
    if (!call->request || Process::is_forked_child()) continue;
    queue.mark_submitted(*call->request);
    queue.complete(*call->request,
                   failure(DRUN_ERROR_STATE, std::string(call->function) + ": its group was cancelled"));
  }
  group.calls.erase(first, group.calls.end());
  group.begins.pop_back();
  return {};
}

Status finish_request(const char* function, drun_request* request, std::optional<gpu::Stream> stream) {
  const std::string during = function;
  if (Process::is_forked_child()) {  // the request is the parent's; this process must not use the queue
    *request = nullptr;
    return failure(DRUN_ERROR_STATE, during + ": this is a forked child of the process that made the call");
  }
  CallQueue& queue = state().queue;
  const auto call = (*request)->call;
  auto result = queue.wait(*call);
  if (!queue.is_done(*call)) return result;
  if (!call->stream_wait.is_possible(stream)) {
    return failure(DRUN_ERROR_STATE, during + (stream ? ": the stream" : ": the call's stream") +
                                         " is being captured: wait for the call before that");
  }
  delete std::exchange(*request, nullptr);
  if (const auto error = call->stream_wait.carry_out(stream); result && error != gpu::kSuccess) {
    return gpu::driver_failure(*gpu::loaded_driver(), during, "cuStreamWaitEvent", error);
  }
  return result;
}

bool is_done(drun_request request) {
  return request == nullptr || Process::is_forked_child() || state().queue.is_done(*request->call);
}

}  // namespace drun::runtime
