// The C functions. They run each call in its turn, turn values into status codes, and keep the last error of each
// thread. No exception leaves them.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.h"
#include "base/stall_watch.h"
#include "runtime/include/drun/drun.h"
#include "runtime/include/drun/gpu.h"
#include "runtime/src/call_deadline.h"
#include "runtime/src/call_group.h"
#include "runtime/src/call_queue.h"
#include "runtime/src/gpu/allocations.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/nccl_library.h"
#include "runtime/src/gpu/nccl_memory.h"
#include "runtime/src/last_error.h"
#include "runtime/src/process.h"

struct drun_request_s {
  std::shared_ptr<drun::runtime::Request> call;
};

namespace drun::runtime {
namespace {

// Interval at which the calls under way on GPUs are polled if no call is being made.
constexpr std::chrono::milliseconds kPollGpus{50};

struct State {
  CallQueue queue;
  Process process;
  pid_t looks = -1;    // process of the thread that polls GPUs; a forked child has none
  std::mutex looking;  // held by that thread while it polls
  const std::shared_ptr<std::atomic<std::int64_t>> stopped_ns = std::make_shared<std::atomic<std::int64_t>>(0);
  bool is_over = false;  // the process ends, and the driver with it

  State() {
    process.on_gpu([this] { begin_polling(); }, stopped_ns);
  }
  // Starts the polling thread. Called in turn.
  void begin_polling() {
    if (looks == ::getpid()) return;
    // Runs before the driver's own exit handler, which was registered first.
    static const int registered = std::atexit([] { stop_polling(); });
    (void)registered;
    const BlockedSignals blocked;
    std::thread([this] { poll(); }).detach();
    looks = ::getpid();
  }

 private:
  static void stop_polling();
  void poll() {
    ::pthread_setname_np(::pthread_self(), "drun-gpu");
    StallWatch stops(kPollGpus);
    for (;;) {
      std::this_thread::sleep_for(kPollGpus);
      *stopped_ns += std::chrono::nanoseconds(stops.poll()).count();
      const std::lock_guard<std::mutex> lock(looking);
      if (is_over) return;
      queue.try_run([&] {
        try {
          process.poll();
        } catch (const std::exception&) {  // out of memory: the next poll tries again
        }
      });
    }
  }
};

// Never destroyed: a process that exits without drun_finalize just exits, and its peers see its connections close.
State& state() {
  static State* const instance = new State;
  return *instance;
}

void State::stop_polling() {
  State& all = state();
  if (all.looks != ::getpid()) return;  // in a forked child the lock may be held forever
  const std::lock_guard<std::mutex> lock(all.looking);
  all.is_over = true;
}

// The open groups of this thread.
struct OpenGroup {
  std::vector<LaterCall> calls;
  std::vector<std::size_t> begins;  // index of the first call of each open group, from the outermost in
  bool is_open() const { return !begins.empty(); }
};
OpenGroup& open_group() {
  thread_local OpenGroup group;
  return group;
}

// Runs `f` in its turn. A forked child's calls fail at once, because the turn may have been taken when it was forked.
template <typename F>
Status in_turn(F f) {
  State& all = state();
  if (all.process.is_forked_child()) return f(all.process);
  return all.queue.run([&] { return f(all.process); });
}

template <typename F>
int guarded(F f) noexcept {
  return caught([&] { return in_turn(f); });
}

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
  State& all = state();
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

Status later(LaterCall call) {
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

bool is_later(const drun_call_options* options) {
  return open_group().is_open() ||
         (options != nullptr && options->struct_size >= sizeof(drun_call_options) && options->request != nullptr);
}

// Runs a collective on the communicator `comm`. `f` holds what it needs by value. `describe` adds what a group must
// know of the call.
template <typename F, typename Describe>
int collective(const char* function, drun_comm comm, const drun_call_options* options, F f,
               Describe describe) noexcept {
  return caught([&]() -> Status {
    CallOptions call;
    if (auto ok = read_call_options(function, options, call); !ok) return ok;
    if (!open_group().is_open() && call.request == nullptr) {
      return in_turn([&](Process& process) { return carry_out(process, function, comm, call, f); });
    }
    LaterCall call_later{function, comm, std::move(call), f, {}, {}, {}};
    describe(call_later);
    return later(std::move(call_later));
  });
}
template <typename F>
int collective(const char* function, drun_comm comm, const drun_call_options* options, F f) noexcept {
  return collective(function, comm, options, std::move(f), [](LaterCall&) {});
}

// Runs a call that can be neither part of a group nor asynchronous: f(process, communicator, options).
template <typename F>
Status at_once(const std::string& function, drun_comm comm, const drun_call_options* options, const F& f) {
  if (open_group().is_open()) return failure(DRUN_ERROR_STATE, function + ": it can't be part of a group");
  CallOptions call;
  if (auto ok = read_call_options(function.c_str(), options, call); !ok) return ok;
  if (call.request != nullptr) {
    return failure(DRUN_ERROR_ARGUMENT, function + ": it is never asynchronous, but options.request is set");
  }
  return in_turn([&](Process& process) {
    return carry_out(process, function.c_str(), comm, call,
                     [&](Communicator& all, const CallOptions& given) { return f(process, all, given); });
  });
}

// An array with a number per rank. Copies it for a deferred call, because the caller may change it after making the
// call.
class PerRank {
 public:
  PerRank(const std::size_t* given, drun_comm comm, const drun_call_options* options) noexcept : given_(given) {
    try {
      if (given == nullptr || !is_later(options)) return;
      const int size = state().process.place_in(comm).size;
      if (size < 0) return;
      kept_ = std::make_shared<const std::vector<std::size_t>>(given, given + size);
    } catch (const std::bad_alloc&) {
      no_memory_ = true;
    }
  }
  const std::size_t* get() const {
    if (no_memory_) throw std::bad_alloc();  // thrown here, where it fails the call
    return kept_ ? kept_->data() : given_;
  }

 private:
  const std::size_t* given_;
  std::shared_ptr<const std::vector<std::size_t>> kept_;
  bool no_memory_ = false;
};

// Runs the calls asynchronously if every call has a request; otherwise blocks until all are done.
Status end_group(std::vector<LaterCall> calls) {
  const auto has_request = [](const LaterCall& call) { return call.request != nullptr; };
  State& all = state();
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

// Waits for the call, frees the request, and returns the call's result. `stream`, if given, waits in place of the
// call's stream.
Status finish_request(const char* function, drun_request* request, std::optional<gpu::Stream> stream = {}) {
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

// Waits until the stream is done or the job is known to have failed. Polls for failures periodically, if no call has
// its turn, and at the end, because NCCL's work ends when it is aborted.
Status synchronize(gpu::Stream stream, std::chrono::milliseconds timeout) {
  const char* const during = "drun_synchronize";
  Operation wait;
  wait.timeout = timeout;
  std::string under_way;
  gpu::Context ours = nullptr;
  const auto poll = [&](Process& process) -> Status {
    auto all = process.communicator(during);
    if (!all) return tl::unexpected<Failure>(all.error());
    if (wait.timeout.count() == 0) wait.timeout = (*all)->job_context().timeouts.op;
    auto looked = (*all)->poll_for_failure();
    under_way = (*all)->under_way();
    ours = (*all)->gpu_context();
    return looked;
  };
  wait.clock.began();
  const gpu::Driver* const driver = gpu::loaded_driver();
  if (auto ok = in_turn(poll); !ok || driver == nullptr) return ok;
  gpu::Context current = nullptr;
  gpu::ContextScope scope;
  if (driver->context_current(&current) != gpu::kSuccess || current == nullptr) {  // no context, as in a new thread
    if (ours == nullptr && stream == nullptr) return {};
    if (ours != nullptr) (void)scope.enter(*driver, ours);
  }
  if (gpu::is_captured(*driver, stream)) {
    return failure(DRUN_ERROR_STATE, std::string(during) + ": the stream is being captured");
  }

  CallQueue& queue = state().queue;
  Status seen;
  CallDeadline call_deadline;
  auto looked = Clock::now();
  const auto go_on = [&] {
    const auto now = Clock::now();
    if (now - looked >= kPollGpus) {
      looked = now;
      queue.try_run([&] { seen = poll(state().process); });
    }
    return seen && call_deadline.left(wait).count() > 0;
  };
  const auto error = gpu::wait_for_stream(*driver, stream, go_on);
  if (!seen) return seen;
  if (auto ok = in_turn(poll); !ok) return ok;
  if (error == gpu::kNotReady) {
    return failure(DRUN_ERROR_TIMEOUT, std::string(during) + ": the stream still has work after " +
                                           in_words(wait.timeout) +
                                           (under_way.empty() ? "" : "; under way over NCCL: " + under_way));
  }
  if (error != gpu::kSuccess) return gpu::driver_failure(*driver, during, "cuStreamQuery", error);
  return {};
}

int place_of(const char* function, drun_comm comm, int Process::Place::*which) noexcept {
  int value = -1;
  caught([&]() -> Status {
    const Process& process = state().process;
    value = process.place_in(comm).*which;
    if (value >= 0) return {};
    if (!process.is_initialized()) {
      return failure(DRUN_ERROR_STATE, std::string(function) + ": drun_init was not called");
    }
    return failure(DRUN_ERROR_ARGUMENT, std::string(function) + ": there is no such communicator");
  });
  return value;
}

}  // namespace
}  // namespace drun::runtime

using drun::runtime::CallOptions;
using drun::runtime::collective;
using drun::runtime::Communicator;
using drun::runtime::failure;
using drun::runtime::LaterCall;
using drun::runtime::OpKind;
using drun::runtime::PerRank;
using drun::runtime::place_of;
using drun::runtime::Process;
using drun::runtime::Status;
using Place = drun::runtime::Process::Place;

extern "C" {

int drun_init(const drun_init_options* options) {
  return drun::runtime::guarded([&](Process& process) { return process.init(options); });
}
int drun_finalize(void) {
  return drun::runtime::guarded([](Process& process) { return process.finalize(); });
}
int drun_is_initialized(void) {
  bool initialized = false;
  drun::runtime::caught([&]() -> Status {
    initialized = drun::runtime::state().process.is_initialized();
    return {};
  });
  return initialized ? 1 : 0;
}

int drun_rank(void) { return place_of("drun_rank", DRUN_COMM_WORLD, &Place::rank); }
int drun_size(void) { return place_of("drun_size", DRUN_COMM_WORLD, &Place::size); }
int drun_local_rank(void) { return place_of("drun_local_rank", DRUN_COMM_LOCAL, &Place::rank); }
int drun_local_size(void) { return place_of("drun_local_size", DRUN_COMM_LOCAL, &Place::size); }
int drun_cross_rank(void) { return place_of("drun_cross_rank", DRUN_COMM_CROSS, &Place::rank); }
int drun_cross_size(void) { return place_of("drun_cross_size", DRUN_COMM_CROSS, &Place::size); }
int drun_is_homogeneous(void) { return place_of("drun_is_homogeneous", DRUN_COMM_WORLD, &Place::homogeneous); }
int drun_comm_rank(drun_comm comm) { return place_of("drun_comm_rank", comm, &Place::rank); }
int drun_comm_size(drun_comm comm) { return place_of("drun_comm_size", comm, &Place::size); }

int drun_comm_split(drun_comm comm, int color, int key, drun_comm* result, const drun_call_options* options) {
  return drun::runtime::caught([&]() -> Status {
    if (result == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_comm_split: result is a null pointer");
    *result = DRUN_COMM_NONE;
    return drun::runtime::at_once("drun_comm_split", comm, options,
                                  [&](Process& process, Communicator& parent, const CallOptions& call) -> Status {
                                    auto made = process.split(parent, color, key, call);
                                    if (!made) return tl::unexpected<drun::runtime::Failure>(made.error());
                                    *result = *made;
                                    return {};
                                  });
  });
}

int drun_register(void* memory, size_t n_bytes, drun_comm comm, const drun_call_options* options) {
  return drun::runtime::caught([&] {
    return drun::runtime::at_once("drun_register", comm, options,
                                  [&](Process&, Communicator& all, const CallOptions& call) {
                                    return all.register_memory(memory, n_bytes, call);
                                  });
  });
}

int drun_deregister(void* memory) {
  if (!drun::runtime::gpu::is_registered(memory, 1)) return DRUN_OK;
  return drun::runtime::guarded([&](Process& process) { return process.deregister(memory, 1, "drun_deregister"); });
}

int drun_free(void* memory) {
  namespace gpu = drun::runtime::gpu;
  return drun::runtime::caught([&]() -> Status {
    const std::size_t n_bytes = gpu::allocations().size_of(memory);
    Status deregistered;
    if (gpu::is_registered(memory, n_bytes)) {
      deregistered =
          drun::runtime::in_turn([&](Process& process) { return process.deregister(memory, n_bytes, "drun_free"); });
    }
    auto freed = gpu::allocations().give_back(memory);
    return deregistered ? freed : deregistered;
  });
}

int drun_comm_free(drun_comm* comm) {
  return drun::runtime::guarded([&](Process& process) -> Status {
    if (comm == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_comm_free: comm is a null pointer");
    if (*comm == DRUN_COMM_NONE) return {};
    auto freed = process.free(*comm);
    if (freed) *comm = DRUN_COMM_NONE;
    return freed;
  });
}

int drun_allreduce(const void* send, void* recv, size_t count, drun_dtype dtype, drun_op op, drun_comm comm,
                   const drun_call_options* options) {
  return collective(
      "drun_allreduce", comm, options,
      [=](Communicator& all, const CallOptions& call) { return all.allreduce(send, recv, count, dtype, op, call); },
      [&](LaterCall& later) {
        later.allreduce = {{send, recv, count}, dtype, op};
      });
}
int drun_broadcast(void* data, size_t count, drun_dtype dtype, int root, drun_comm comm,
                   const drun_call_options* options) {
  return collective("drun_broadcast", comm, options, [=](Communicator& all, const CallOptions& call) {
    return all.broadcast(data, count, dtype, root, call);
  });
}
int drun_reduce(const void* send, void* recv, size_t count, drun_dtype dtype, drun_op op, int root, drun_comm comm,
                const drun_call_options* options) {
  return collective("drun_reduce", comm, options, [=](Communicator& all, const CallOptions& call) {
    return all.reduce(send, recv, count, dtype, op, root, call);
  });
}
int drun_reduce_scatter(const void* send, void* recv, size_t recv_count, drun_dtype dtype, drun_op op, drun_comm comm,
                        const drun_call_options* options) {
  return collective("drun_reduce_scatter", comm, options, [=](Communicator& all, const CallOptions& call) {
    return all.reduce_scatter(send, recv, recv_count, dtype, op, call);
  });
}
int drun_allgather(const void* send, void* recv, size_t count, drun_dtype dtype, drun_comm comm,
                   const drun_call_options* options) {
  return collective("drun_allgather", comm, options, [=](Communicator& all, const CallOptions& call) {
    return all.allgather(send, recv, count, dtype, call);
  });
}
int drun_allgatherv(const void* send, size_t send_count, void* recv, const size_t* recv_counts,
                    const size_t* recv_offsets, drun_dtype dtype, drun_comm comm, const drun_call_options* options) {
  return collective("drun_allgatherv", comm, options,
                    [=, counts = PerRank(recv_counts, comm, options), offsets = PerRank(recv_offsets, comm, options)](
                        Communicator& all, const CallOptions& call) {
                      return all.allgatherv(send, send_count, recv, counts.get(), offsets.get(), dtype, call);
                    });
}
int drun_gather(const void* send, void* recv, size_t count, drun_dtype dtype, int root, drun_comm comm,
                const drun_call_options* options) {
  return collective("drun_gather", comm, options, [=](Communicator& all, const CallOptions& call) {
    return all.gather(send, recv, count, dtype, root, call);
  });
}
int drun_scatter(const void* send, void* recv, size_t count, drun_dtype dtype, int root, drun_comm comm,
                 const drun_call_options* options) {
  return collective("drun_scatter", comm, options, [=](Communicator& all, const CallOptions& call) {
    return all.scatter(send, recv, count, dtype, root, call);
  });
}
int drun_alltoall(const void* send, void* recv, size_t count, drun_dtype dtype, drun_comm comm,
                  const drun_call_options* options) {
  return collective("drun_alltoall", comm, options, [=](Communicator& all, const CallOptions& call) {
    return all.alltoall(send, recv, count, dtype, call);
  });
}
int drun_alltoallv(const void* send, const size_t* send_counts, const size_t* send_offsets, void* recv,
                   const size_t* recv_counts, const size_t* recv_offsets, drun_dtype dtype, drun_comm comm,
                   const drun_call_options* options) {
  return collective("drun_alltoallv", comm, options,
                    [=, to = PerRank(send_counts, comm, options), to_at = PerRank(send_offsets, comm, options),
                     from = PerRank(recv_counts, comm, options),
                     from_at = PerRank(recv_offsets, comm, options)](Communicator& all, const CallOptions& call) {
                      return all.alltoallv(send, to.get(), to_at.get(), recv, from.get(), from_at.get(), dtype, call);
                    });
}
int drun_send(const void* data, size_t count, drun_dtype dtype, int peer, drun_comm comm,
              const drun_call_options* options) {
  return collective(
      "drun_send", comm, options,
      [=](Communicator& all, const CallOptions& call) { return all.send(data, count, dtype, peer, call); },
      [&](LaterCall& later) { later.transfer = {OpKind::kSend, const_cast<void*>(data), count, dtype, peer, {}}; });
}
int drun_recv(void* data, size_t count, drun_dtype dtype, int peer, drun_comm comm, const drun_call_options* options) {
  return collective(
      "drun_recv", comm, options,
      [=](Communicator& all, const CallOptions& call) { return all.recv(data, count, dtype, peer, call); },
      [&](LaterCall& later) { later.transfer = {OpKind::kRecv, data, count, dtype, peer, {}}; });
}
int drun_barrier(drun_comm comm, const drun_call_options* options) {
  return collective("drun_barrier", comm, options,
                    [](Communicator& all, const CallOptions& call) { return all.barrier(call); });
}

int drun_wait(drun_request* request) {
  return drun::runtime::caught([&]() -> Status {
    if (request == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_wait: request is a null pointer");
    if (*request == nullptr) return {};
    return drun::runtime::finish_request("drun_wait", request);
  });
}

int drun_test(drun_request* request, int* done) {
  return drun::runtime::caught([&]() -> Status {
    if (request == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_test: request is a null pointer");
    if (done == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_test: done is a null pointer");
    *done = *request == nullptr || Process::is_forked_child() || drun::runtime::state().queue.is_done(*(*request)->call)
                ? 1
                : 0;
    if (*done == 0 || *request == nullptr) return {};
    return drun::runtime::finish_request("drun_test", request);
  });
}

int drun_wait_stream(drun_request* request, void* stream) {
  return drun::runtime::caught([&]() -> Status {
    if (request == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_wait_stream: request is a null pointer");
    if (*request == nullptr) return {};
    return drun::runtime::finish_request("drun_wait_stream", request, static_cast<drun::runtime::gpu::Stream>(stream));
  });
}

int drun_synchronize(void* stream, int64_t timeout_ms) {
  return drun::runtime::caught([&]() -> Status {
    if (timeout_ms < 0) return failure(DRUN_ERROR_ARGUMENT, "drun_synchronize: the timeout is negative");
    const std::chrono::milliseconds timeout(std::min(timeout_ms, drun::runtime::kLongestMs));
    return drun::runtime::synchronize(static_cast<drun::runtime::gpu::Stream>(stream), timeout);
  });
}

int drun_group_start(void) {
  return drun::runtime::caught([]() -> Status {
    auto& group = drun::runtime::open_group();
    group.begins.push_back(group.calls.size());
    return {};
  });
}

int drun_group_end(void) {
  return drun::runtime::caught([]() -> Status {
    auto& group = drun::runtime::open_group();
    if (!group.is_open()) return failure(DRUN_ERROR_STATE, "drun_group_end: there was no drun_group_start");
    group.begins.pop_back();
    if (group.is_open() || group.calls.empty()) return {};
    return drun::runtime::end_group(std::exchange(group.calls, {}));
  });
}

int drun_group_cancel(void) {
  return drun::runtime::caught([]() -> Status {
    auto& group = drun::runtime::open_group();
    if (!group.is_open()) return failure(DRUN_ERROR_STATE, "drun_group_cancel: there was no drun_group_start");
    const auto first = group.calls.begin() + static_cast<std::ptrdiff_t>(group.begins.back());
    auto& queue = drun::runtime::state().queue;
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
  });
}

int drun_kv_set(const char* key, const void* value, size_t n_bytes) {
  return drun::runtime::guarded([&](Process& process) -> Status {
    if (key == nullptr || *key == '\0') return failure(DRUN_ERROR_ARGUMENT, "drun_kv_set: no key");
    if (value == nullptr && n_bytes > 0) return failure(DRUN_ERROR_ARGUMENT, "drun_kv_set: value is a null pointer");
    return process.kv_set(key, n_bytes > 0 ? std::string(static_cast<const char*>(value), n_bytes) : std::string());
  });
}

int drun_kv_get(const char* key, void* value, size_t* n_bytes, int64_t timeout_ms) {
  return drun::runtime::guarded([&](Process& process) -> Status {
    if (key == nullptr || *key == '\0') return failure(DRUN_ERROR_ARGUMENT, "drun_kv_get: no key");
    if (n_bytes == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_kv_get: n_bytes is a null pointer");
    if (value == nullptr && *n_bytes > 0) return failure(DRUN_ERROR_ARGUMENT, "drun_kv_get: value is a null pointer");
    if (timeout_ms < 0) return failure(DRUN_ERROR_ARGUMENT, "drun_kv_get: the timeout is negative");
    auto found = process.kv_get(key, std::chrono::milliseconds(timeout_ms));
    if (!found) return tl::unexpected<drun::runtime::Failure>(found.error());
    const size_t room = *n_bytes;
    *n_bytes = found->size();
    if (found->size() > room) {
      return failure(DRUN_ERROR_TRUNCATED, std::string("drun_kv_get '") + key + "': the value has " +
                                               std::to_string(found->size()) + " bytes, there is room for " +
                                               std::to_string(room));
    }
    found->copy(static_cast<char*>(value), found->size());
    return {};
  });
}

int drun_abort(const char* why) {
  return drun::runtime::caught([&] {
    // Called before the turn, which a collective in another thread may hold until it is woken.
    drun::runtime::state().process.interrupt();
    return drun::runtime::in_turn([&](Process& process) { return process.abort(why != nullptr ? why : ""); });
  });
}

const char* drun_last_error(void) { return drun::runtime::last_error().text.c_str(); }
int drun_last_error_rank(void) { return drun::runtime::last_error().rank; }
const char* drun_last_error_host(void) { return drun::runtime::last_error().host.c_str(); }
int drun_nccl_version(int* version, const char** path) {
  return drun::runtime::caught([&]() -> drun::runtime::Status {
    if (version == nullptr) {
      return drun::runtime::failure(DRUN_ERROR_ARGUMENT, "drun_nccl_version: version is NULL");
    }
    std::string why_not;
    const auto* const nccl = drun::runtime::gpu::load_nccl(why_not);
    if (nccl == nullptr) return drun::runtime::failure(DRUN_ERROR_UNSUPPORTED, "there is no NCCL: " + why_not);
    *version = nccl->version;
    if (path != nullptr) *path = nccl->path.c_str();
    return {};
  });
}

const char* drun_version(void) { return DRUN_VERSION; }

}  // extern "C"
