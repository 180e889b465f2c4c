// The C++ layer over drun.h: header only, C++17. A failure is thrown as drun::Error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "drun/drun.h"

namespace drun {
// An inline namespace gives the header its own symbols, so that they are never taken for those inside a static libdrun.
inline namespace v0 {

class Error : public std::runtime_error {
 public:
  Error(int code_in, const char* text, int rank_in, const char* host_in)
      : std::runtime_error(text), code(code_in), rank(rank_in), host(host_in) {}
  int code;          // a drun_status
  int rank;          // the rank at fault; -1: none or unknown
  std::string host;  // its host
};

// Throws the latest failure of this thread unless `status` is DRUN_OK.
inline void check(int status) {
  if (status != DRUN_OK) throw Error(status, drun_last_error(), drun_last_error_rank(), drun_last_error_host());
}

template <typename T>
constexpr drun_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DRUN_FLOAT32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DRUN_FLOAT64;
  } else {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>, "drun has no element type for this");
    static_assert(sizeof(T) != 2, "drun has no 16-bit integers");
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? DRUN_INT8 : DRUN_UINT8;
    if constexpr (sizeof(T) == 4) return is_signed ? DRUN_INT32 : DRUN_UINT32;
    return is_signed ? DRUN_INT64 : DRUN_UINT64;
  }
}

struct Options {
  std::chrono::milliseconds init_timeout{0};  // 0: the default
  std::chrono::milliseconds op_timeout{0};
};

// Handle of an asynchronous call. The buffers of the call must stay valid until it is complete. The destructor waits
// for that, and drops its status.
class Request {
 public:
  Request() = default;
  ~Request() { drun_wait(&request_); }
  Request(Request&& other) noexcept : request_(std::exchange(other.request_, nullptr)) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      drun_wait(&request_);
      request_ = std::exchange(other.request_, nullptr);
    }
    return *this;
  }

  // Blocks until the call is complete; throws if it failed. Returns at once without a call. See drun_wait.
  void wait() { check(drun_wait(&request_)); }
  // As wait(), but makes `stream` wait for a call on memory of a GPU; see drun_wait_stream.
  void wait_stream(void* stream) { check(drun_wait_stream(&request_, stream)); }
  // True if the call is complete; throws if it failed. See drun_test.
  bool test() {
    int done = 0;
    check(drun_test(&request_, &done));
    return done != 0;
  }
  // The place where a new call stores its handle. Waits for the earlier call, and throws if that failed.
  drun_request* for_call() {
    wait();
    return &request_;
  }

 private:
  drun_request request_ = nullptr;
};

// Blocks until a stream of a GPU has completed its work; throws the failure of a call in it. A timeout of 0 means the
// default. See drun_synchronize.
inline void synchronize(void* stream, std::chrono::milliseconds timeout = {}) {
  check(drun_synchronize(stream, timeout.count()));
}

// The calls that this thread makes during the life of a Group begin together in end(), which throws the first failure
// of those without a request. Without end(), the destructor begins them and drops failures; if an exception destroys
// the group, the calls are canceled, because their buffers may be gone.
class Group {
 public:
  Group() {
    check(drun_group_start());
    ++n_open();
  }
  ~Group() {
    if (!open_) return;
    --n_open();
    if (std::uncaught_exceptions() > n_exceptions_) {
      drun_group_cancel();
    } else {
      drun_group_end();
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void end() {
    open_ = false;
    --n_open();
    check(drun_group_end());
  }
  // The calling thread's.
  static bool is_open() { return n_open() > 0; }

 private:
  static int& n_open() {
    thread_local int n = 0;
    return n;
  }
  const int n_exceptions_ = std::uncaught_exceptions();
  bool open_ = true;
};

// Options of one call; see drun_call_options.
struct CallOptions {
  std::string name;                      // shown in errors; ranks that give one must give the same (drun.h)
  std::chrono::milliseconds timeout{0};  // 0: op_timeout
  double prescale = 1, postscale = 1;    // reductions of floating types
  Request* request = nullptr;            // not null: the call is asynchronous, and this is its handle
  drun_memory memory = DRUN_MEMORY_AUTO;
  void* stream = nullptr;  // for device memory: a CUstream or cudaStream_t

  // The C structure; points into this object, which must outlive it.
  struct C {
    drun_call_options value;
    operator const drun_call_options*() const { return &value; }
  };
  C c() const { return with(memory); }
  // For a std::vector or a variable: the driver need not be asked whose memory it is.
  C c_of_host() const { return with(memory == DRUN_MEMORY_AUTO ? DRUN_MEMORY_HOST : memory); }

 private:
  C with(drun_memory its_memory) const {
    return {{sizeof(drun_call_options), name.c_str(), timeout.count(), prescale, postscale,
             request != nullptr ? request->for_call() : nullptr, its_memory, stream}};
  }
};

// Ranks that call collectives together. The public constructor joins the job and makes the communicator of all ranks,
// one at a time; the destructor leaves the job. local(), cross() and split() make others, which must not outlive it.
// A method has the contract of the C function of its name; T is the element type. All throw Error.
class Communicator {
 public:
  explicit Communicator(const Options& options = {}) : kind_(Kind::kJob) {
    drun_init_options c_options = DRUN_INIT_OPTIONS;
    c_options.init_timeout_ms = options.init_timeout.count();
    c_options.op_timeout_ms = options.op_timeout.count();
    check(drun_init(&c_options));
  }
  ~Communicator() {
    if (kind_ == Kind::kJob) drun_finalize();
    if (kind_ == Kind::kSplit) drun_comm_free(&comm_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Communicator(Communicator&& other) noexcept
      : kind_(std::exchange(other.kind_, Kind::kBorrowed)), comm_(std::exchange(other.comm_, DRUN_COMM_NONE)) {}

  // Does what the destructor does, but throws: leaves the job, and throws a failure on a GPU unless an earlier call
  // has. The destructor then does nothing. See drun_finalize.
  void finalize() {
    const Kind kind = std::exchange(kind_, Kind::kBorrowed);
    if (kind == Kind::kSplit) check(drun_comm_free(&comm_));
    if (kind == Kind::kJob) check(drun_finalize());
  }

  int rank() const { return drun_comm_rank(comm_); }
  int size() const { return drun_comm_size(comm_); }
  drun_comm c() const { return comm_; }
  // These refer to the job, not to this communicator.
  int local_rank() const { return drun_local_rank(); }
  int local_size() const { return drun_local_size(); }
  int cross_rank() const { return drun_cross_rank(); }
  int cross_size() const { return drun_cross_size(); }
  bool is_homogeneous() const { return drun_is_homogeneous() == 1; }  // true if all hosts have the same number of ranks

  // The ranks of this host; the ranks of all hosts with this rank's local rank.
  Communicator local() const { return Communicator(Kind::kBorrowed, DRUN_COMM_LOCAL); }
  Communicator cross() const { return Communicator(Kind::kBorrowed, DRUN_COMM_CROSS); }
  // Collective. The ranks with the same color form a communicator, in the order of keys, then of ranks. Nothing for a
  // negative color.
  std::optional<Communicator> split(int color, int key = 0, const CallOptions& options = {}) {
    drun_comm made = DRUN_COMM_NONE;
    check(drun_comm_split(comm_, color, key, &made, options.c()));
    if (made == DRUN_COMM_NONE) return std::nullopt;
    return Communicator(Kind::kSplit, made);
  }

  template <typename T>
  void allreduce(const T* send, T* recv, std::size_t count, drun_op op = DRUN_SUM, const CallOptions& options = {}) {
    check(drun_allreduce(send, recv, count, dtype_of<T>(), op, comm_, options.c()));
  }
  template <typename T>
  void allreduce(T* data, std::size_t count, drun_op op = DRUN_SUM, const CallOptions& options = {}) {
    allreduce(static_cast<const T*>(data), data, count, op, options);
  }
  template <typename T>
  void allreduce(std::vector<T>& data, drun_op op = DRUN_SUM, const CallOptions& options = {}) {
    check(drun_allreduce(data.data(), data.data(), data.size(), dtype_of<T>(), op, comm_, options.c_of_host()));
  }
  // Reduces one value of each rank; returns the result. Not asynchronous and not in a Group, because the value is not
  // there before the call has ended: DRUN_ERROR_ARGUMENT.
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  T allreduce(T value, drun_op op = DRUN_SUM, const CallOptions& options = {}) {
    check_ends_here(options);
    check(drun_allreduce(&value, &value, 1, dtype_of<T>(), op, comm_, options.c_of_host()));
    return value;
  }

  template <typename T>
  void broadcast(T* data, std::size_t count, int root = 0, const CallOptions& options = {}) {
    check(drun_broadcast(data, count, dtype_of<T>(), root, comm_, options.c()));
  }
  template <typename T>
  void broadcast(std::vector<T>& data, int root = 0, const CallOptions& options = {}) {  // the same size on all ranks
    broadcast(data.data(), data.size(), root, options);
  }

  template <typename T>
  void reduce(const T* send, T* recv, std::size_t count, drun_op op = DRUN_SUM, int root = 0,
              const CallOptions& options = {}) {
    check(drun_reduce(send, recv, count, dtype_of<T>(), op, root, comm_, options.c()));
  }
  template <typename T>
  void reduce_scatter(const T* send, T* recv, std::size_t recv_count, drun_op op = DRUN_SUM,
                      const CallOptions& options = {}) {
    check(drun_reduce_scatter(send, recv, recv_count, dtype_of<T>(), op, comm_, options.c()));
  }

  template <typename T>
  void allgather(const T* send, T* recv, std::size_t count, const CallOptions& options = {}) {
    check(drun_allgather(send, recv, count, dtype_of<T>(), comm_, options.c()));
  }
  // Returns one value of each rank, in rank order. As allreduce of one value.
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  std::vector<T> allgather(T value, const CallOptions& options = {}) {
    check_ends_here(options);
    std::vector<T> all(static_cast<std::size_t>(size()));
    allgather(&value, all.data(), 1, options);
    return all;
  }

  // Counts and offsets are in elements, one per rank. No offsets: one block behind the other.
  template <typename T>
  void allgatherv(const T* send, std::size_t send_count, T* recv, const std::vector<std::size_t>& recv_counts,
                  const std::vector<std::size_t>& recv_offsets = {}, const CallOptions& options = {}) {
    check_size(recv_counts, false);
    check_size(recv_offsets, true);
    check(drun_allgatherv(send, send_count, recv, recv_counts.data(), data_or_null(recv_offsets), dtype_of<T>(), comm_,
                          options.c()));
  }

  template <typename T>
  void gather(const T* send, T* recv, std::size_t count, int root = 0, const CallOptions& options = {}) {
    check(drun_gather(send, recv, count, dtype_of<T>(), root, comm_, options.c()));
  }
  template <typename T>
  void scatter(const T* send, T* recv, std::size_t count, int root = 0, const CallOptions& options = {}) {
    check(drun_scatter(send, recv, count, dtype_of<T>(), root, comm_, options.c()));
  }
  template <typename T>
  void alltoall(const T* send, T* recv, std::size_t count, const CallOptions& options = {}) {
    check(drun_alltoall(send, recv, count, dtype_of<T>(), comm_, options.c()));
  }
  template <typename T>
  void alltoallv(const T* send, const std::vector<std::size_t>& send_counts, T* recv,
                 const std::vector<std::size_t>& recv_counts, const std::vector<std::size_t>& send_offsets = {},
                 const std::vector<std::size_t>& recv_offsets = {}, const CallOptions& options = {}) {
    for (const auto* counts : {&send_counts, &recv_counts}) check_size(*counts, false);
    for (const auto* offsets : {&send_offsets, &recv_offsets}) check_size(*offsets, true);
    check(drun_alltoallv(send, send_counts.data(), data_or_null(send_offsets), recv, recv_counts.data(),
                         data_or_null(recv_offsets), dtype_of<T>(), comm_, options.c()));
  }
  template <typename T>
  void send(const T* data, std::size_t count, int peer, const CallOptions& options = {}) {
    check(drun_send(data, count, dtype_of<T>(), peer, comm_, options.c()));
  }
  template <typename T>
  void recv(T* data, std::size_t count, int peer, const CallOptions& options = {}) {
    check(drun_recv(data, count, dtype_of<T>(), peer, comm_, options.c()));
  }

  void barrier(const CallOptions& options = {}) { check(drun_barrier(comm_, options.c())); }

  void set(const std::string& key, std::string_view value) {
    check(drun_kv_set(key.c_str(), value.data(), value.size()));
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) {
    std::string value(4096, '\0');
    std::size_t n_bytes = value.size();
    int status = drun_kv_get(key.c_str(), value.data(), &n_bytes, timeout.count());
    while (status == DRUN_ERROR_TRUNCATED) {  // again if another rank replaces the value meanwhile
      value.resize(n_bytes);
      status = drun_kv_get(key.c_str(), value.data(), &n_bytes, timeout.count());
    }
    check(status);
    value.resize(n_bytes);
    return value;
  }

  // Returns whether the key was set.
  bool erase(const std::string& key) {
    int existed = 0;
    check(drun_kv_delete(key.c_str(), &existed));
    return existed != 0;
  }

  void abort(const std::string& why) { drun_abort(why.c_str()); }

 private:
  enum class Kind { kJob, kSplit, kBorrowed };
  Communicator(Kind kind, drun_comm comm) : kind_(kind), comm_(comm) {}

  // Throws unless the array has one entry per rank, which the C function can't check.
  void check_size(const std::vector<std::size_t>& array, bool may_be_empty) const {
    if (array.size() == static_cast<std::size_t>(size()) || (may_be_empty && array.empty())) return;
    throw Error(DRUN_ERROR_ARGUMENT, "counts and offsets must have one entry per rank", -1, "");
  }
  static void check_ends_here(const CallOptions& options) {
    if (options.request == nullptr && !Group::is_open()) return;
    throw Error(DRUN_ERROR_ARGUMENT, "a call that returns its result can't be asynchronous or in a group", -1, "");
  }
  static const std::size_t* data_or_null(const std::vector<std::size_t>& array) {
    return array.empty() ? nullptr : array.data();
  }

  Kind kind_;
  drun_comm comm_ = DRUN_COMM_WORLD;
};

}  // namespace v0
}  // namespace drun
