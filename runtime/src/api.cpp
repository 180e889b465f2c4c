// The C functions. They run each call in its turn, turn values into status codes, and keep the last error of each
// thread. No exception leaves them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/include/drun/drun.h"
#include "runtime/include/drun/gpu.h"
#include "runtime/src/call_group.h"
#include "runtime/src/deferred_calls.h"
#include "runtime/src/gpu/allocations.h"
#include "runtime/src/gpu/nccl_library.h"
#include "runtime/src/gpu/nccl_memory.h"
#include "runtime/src/last_error.h"
#include "runtime/src/per_rank.h"
#include "runtime/src/process.h"
#include "runtime/src/runtime_state.h"
#include "runtime/src/synchronize.h"

namespace drun::runtime {
namespace {

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
    return defer(std::move(call_later));
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
    *done = drun::runtime::is_done(*request) ? 1 : 0;
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
    drun::runtime::start_group();
    return {};
  });
}
int drun_group_end(void) {
  return drun::runtime::caught([] { return drun::runtime::end_group(); });
}
int drun_group_cancel(void) {
  return drun::runtime::caught([] { return drun::runtime::cancel_group(); });
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

int drun_kv_delete(const char* key, int* existed) {
  return drun::runtime::guarded([&](Process& process) -> Status {
    if (key == nullptr || *key == '\0') return failure(DRUN_ERROR_ARGUMENT, "drun_kv_delete: no key");
    const auto deleted = process.kv_delete(key);
    if (!deleted) return tl::unexpected<drun::runtime::Failure>(deleted.error());
    if (existed != nullptr) *existed = *deleted ? 1 : 0;
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
