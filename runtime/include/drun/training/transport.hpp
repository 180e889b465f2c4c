// The collectives that training needs.
#pragma once

#include <cstddef>
#include <string>

#include "drun/drun.hpp"
#include "drun/gpu.h"

namespace drun {
inline namespace v0 {

// The ranks that train together. Calls block, as in drun.h, and throw drun::Error; all ranks make the same calls in the
// same order. Counts are in elements; buffers are the caller's, in memory of the host or of a GPU. `name` is the data's
// name in errors.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The stream of the calls on memory of a GPU: a CUstream or cudaStream_t. nullptr: the legacy default stream.
  virtual void* stream() const { return nullptr; }
  // Collective. Announces memory of a GPU that later allreduces use as a whole or from its beginning, so that it can be
  // registered. Valid until drun_free frees it or the job ends; it is not announced again after another drun_init.
  virtual void will_use(void* memory, std::size_t n_bytes) {
    (void)memory;
    (void)n_bytes;
  }
  // In place: every rank gets the reduction of all ranks' `data`.
  virtual void allreduce(void* data, std::size_t count, drun_dtype dtype, drun_op op, const std::string& name) = 0;
  // `recv` gets `count` elements of each rank, in rank order. In place: `send` is this rank's part of `recv`.
  virtual void allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype,
                         const std::string& name) = 0;
  // `recv_counts` has one count per rank, the same on all ranks; blocks are one behind the other. In place as
  // allgather.
  virtual void allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                          drun_dtype dtype, const std::string& name) = 0;
  // One count per rank; blocks are one behind the other on both sides.
  virtual void alltoallv(const void* send, const std::size_t* send_counts, void* recv, const std::size_t* recv_counts,
                         drun_dtype dtype, const std::string& name) = 0;
};

// All ranks of the job; for use between drun_init and drun_finalize. `stream` must outlive it.
class WorldTransport final : public Transport {
 public:
  explicit WorldTransport(void* stream = nullptr) : stream_(stream) {}
  void* stream() const override { return stream_; }
  int rank() const override { return drun_rank(); }
  int size() const override { return drun_size(); }
  void will_use(void* memory, std::size_t n_bytes) override {
    check(drun_register(memory, n_bytes, DRUN_COMM_WORLD, nullptr));
  }
  void allreduce(void* data, std::size_t count, drun_dtype dtype, drun_op op, const std::string& name) override {
    check(drun_allreduce(data, data, count, dtype, op, DRUN_COMM_WORLD, named(name).c()));
  }
  void allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype, const std::string& name) override {
    check(drun_allgather(send, recv, count, dtype, DRUN_COMM_WORLD, named(name).c()));
  }
  void allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                  drun_dtype dtype, const std::string& name) override {
    check(drun_allgatherv(send, send_count, recv, recv_counts, nullptr, dtype, DRUN_COMM_WORLD, named(name).c()));
  }
  void alltoallv(const void* send, const std::size_t* send_counts, void* recv, const std::size_t* recv_counts,
                 drun_dtype dtype, const std::string& name) override {
    check(drun_alltoallv(send, send_counts, nullptr, recv, recv_counts, nullptr, dtype, DRUN_COMM_WORLD,
                         named(name).c()));
  }

 private:
  CallOptions named(const std::string& name) const {
    CallOptions options;
    options.name = name;
    options.stream = stream_;
    return options;
  }
  void* stream_;
};

// The default transport. It holds no state, so it may outlive the job.
inline Transport& world() {
  static WorldTransport transport;
  return transport;
}

}  // namespace v0
}  // namespace drun
