// The C functions: one lock, values to status codes, the last error of each thread. No exception leaves them.
#include <exception>
#include <mutex>
#include <new>

#include "runtime/include/drun/drun.h"
#include "runtime/src/process.h"

namespace drun::runtime {
namespace {

thread_local Failure last_error{DRUN_OK, "", -1, ""};

struct State {
  std::mutex mutex;
  Process process;
};

// Never destroyed: a process that exits without drun_finalize just goes, and the others see its connections close.
State& state() {
  static State* const instance = new State;
  return *instance;
}

int report(const Status& status) {
  if (status) return DRUN_OK;
  last_error = status.error();
  return last_error.status;
}

template <typename F>
int guarded(F f) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(state().mutex);
    return report(f(state().process));
  } catch (const std::bad_alloc&) {
    return report(failure(DRUN_ERROR_SYSTEM, "out of memory"));
  } catch (const std::exception& e) {
    return report(failure(DRUN_ERROR_INTERNAL, e.what()));
  }
}

// A collective on the communicator that `comm` names.
template <typename F>
int collective(const char* function, drun_comm comm, const drun_call_options* options, F f) noexcept {
  return guarded([&](Process& process) -> Status {
    auto communicator = process.communicator(function);
    if (!communicator) return tl::unexpected<Failure>(communicator.error());
    if (comm != DRUN_COMM_WORLD) {
      return failure(DRUN_ERROR_ARGUMENT,
                     std::string(function) + ": unknown communicator, only DRUN_COMM_WORLD is known");
    }
    auto call = read_call_options(function, options);
    if (!call) return tl::unexpected<Failure>(call.error());
    try {
      return f(**communicator, *call);
    } catch (const std::exception& e) {  // out of memory, that is: the others are in the middle of the call
      return (*communicator)
          ->fail(
              Failure{DRUN_ERROR_SYSTEM, std::string(function) + ": " + e.what(), (*communicator)->world().rank(), {}});
    }
  });
}

template <typename F>
int of_world(const char* function, F f) noexcept {
  int value = -1;
  guarded([&](Process& process) -> Status {
    if (process.world() == nullptr)
      return failure(DRUN_ERROR_STATE, std::string(function) + ": drun_init was not called");
    value = f(process.world()->client->welcome());
    return {};
  });
  return value;
}

}  // namespace
}  // namespace drun::runtime

using drun::runtime::CallOptions;
using drun::runtime::collective;
using drun::runtime::Communicator;
using drun::runtime::failure;
using drun::runtime::Process;
using drun::runtime::Status;
using Welcome = drun::rendezvous::Welcome;

extern "C" {

int drun_init(const drun_init_options* options) {
  return drun::runtime::guarded([&](Process& process) { return process.init(options); });
}
int drun_finalize(void) {
  return drun::runtime::guarded([](Process& process) { return process.finalize(); });
}
int drun_is_initialized(void) {
  bool initialized = false;
  drun::runtime::guarded([&](Process& process) -> Status {
    initialized = process.is_initialized();
    return {};
  });
  return initialized ? 1 : 0;
}

int drun_rank(void) {
  return drun::runtime::of_world("drun_rank", [](const Welcome& job) { return job.rank; });
}
int drun_size(void) {
  return drun::runtime::of_world("drun_size", [](const Welcome& job) { return job.size; });
}
int drun_local_rank(void) {
  return drun::runtime::of_world("drun_local_rank", [](const Welcome& job) { return job.local_rank; });
}
int drun_local_size(void) {
  return drun::runtime::of_world("drun_local_size", [](const Welcome& job) { return job.local_size; });
}
int drun_cross_rank(void) {
  return drun::runtime::of_world("drun_cross_rank", [](const Welcome& job) { return job.cross_rank; });
}
int drun_cross_size(void) {
  return drun::runtime::of_world("drun_cross_size", [](const Welcome& job) { return job.cross_size; });
}

int drun_allreduce(const void* send, void* recv, size_t count, drun_dtype dtype, drun_op op, drun_comm comm,
                   const drun_call_options* options) {
  return collective("drun_allreduce", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.allreduce(send, recv, count, dtype, op, call);
  });
}
int drun_broadcast(void* data, size_t count, drun_dtype dtype, int root, drun_comm comm,
                   const drun_call_options* options) {
  return collective("drun_broadcast", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.broadcast(data, count, dtype, root, call);
  });
}
int drun_reduce(const void* send, void* recv, size_t count, drun_dtype dtype, drun_op op, int root, drun_comm comm,
                const drun_call_options* options) {
  return collective("drun_reduce", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.reduce(send, recv, count, dtype, op, root, call);
  });
}
int drun_reduce_scatter(const void* send, void* recv, size_t recv_count, drun_dtype dtype, drun_op op, drun_comm comm,
                        const drun_call_options* options) {
  return collective("drun_reduce_scatter", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.reduce_scatter(send, recv, recv_count, dtype, op, call);
  });
}
int drun_allgather(const void* send, void* recv, size_t count, drun_dtype dtype, drun_comm comm,
                   const drun_call_options* options) {
  return collective("drun_allgather", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.allgather(send, recv, count, dtype, call);
  });
}
int drun_allgatherv(const void* send, size_t send_count, void* recv, const size_t* recv_counts,
                    const size_t* recv_offsets, drun_dtype dtype, drun_comm comm, const drun_call_options* options) {
  return collective("drun_allgatherv", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.allgatherv(send, send_count, recv, recv_counts, recv_offsets, dtype, call);
  });
}
int drun_gather(const void* send, void* recv, size_t count, drun_dtype dtype, int root, drun_comm comm,
                const drun_call_options* options) {
  return collective("drun_gather", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.gather(send, recv, count, dtype, root, call);
  });
}
int drun_scatter(const void* send, void* recv, size_t count, drun_dtype dtype, int root, drun_comm comm,
                 const drun_call_options* options) {
  return collective("drun_scatter", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.scatter(send, recv, count, dtype, root, call);
  });
}
int drun_alltoall(const void* send, void* recv, size_t count, drun_dtype dtype, drun_comm comm,
                  const drun_call_options* options) {
  return collective("drun_alltoall", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.alltoall(send, recv, count, dtype, call);
  });
}
int drun_alltoallv(const void* send, const size_t* send_counts, const size_t* send_offsets, void* recv,
                   const size_t* recv_counts, const size_t* recv_offsets, drun_dtype dtype, drun_comm comm,
                   const drun_call_options* options) {
  return collective("drun_alltoallv", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.alltoallv(send, send_counts, send_offsets, recv, recv_counts, recv_offsets, dtype, call);
  });
}
int drun_send(const void* data, size_t count, drun_dtype dtype, int peer, drun_comm comm,
              const drun_call_options* options) {
  return collective("drun_send", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.send(data, count, dtype, peer, call);
  });
}
int drun_recv(void* data, size_t count, drun_dtype dtype, int peer, drun_comm comm, const drun_call_options* options) {
  return collective("drun_recv", comm, options, [&](Communicator& all, const CallOptions& call) {
    return all.recv(data, count, dtype, peer, call);
  });
}
int drun_barrier(drun_comm comm, const drun_call_options* options) {
  return collective("drun_barrier", comm, options,
                    [](Communicator& all, const CallOptions& call) { return all.barrier(call); });
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
  // Before the lock, which a collective in another thread may hold until it is woken.
  drun::runtime::state().process.interrupt();
  return drun::runtime::guarded([&](Process& process) { return process.abort(why != nullptr ? why : ""); });
}

const char* drun_last_error(void) { return drun::runtime::last_error.text.c_str(); }
int drun_last_error_rank(void) { return drun::runtime::last_error.rank; }
const char* drun_last_error_host(void) { return drun::runtime::last_error.host.c_str(); }
const char* drun_version(void) { return DRUN_VERSION; }

}  // extern "C"
