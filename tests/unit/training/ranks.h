// Ranks as threads that train together, over real TCP. ranks.cpp is separate, because libdrun's internal headers and
// its public ones each have a drun::Error.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "drun/training.hpp"

namespace drun::training_test {

// Runs `body` once per rank, concurrently. Returns the exception of each rank, if any. NCCL may be used if `have_gpus`.
std::vector<std::optional<v0::Error>> errors_of_ranks(int size, const std::function<void(Transport&)>& body,
                                                      bool have_gpus = false);

// The same for a body that must not throw.
inline void run_ranks(int size, const std::function<void(Transport&)>& body, bool have_gpus = false) {
  for (const auto& error : errors_of_ranks(size, body, have_gpus)) {
    if (error) ADD_FAILURE() << error->what();
  }
}

// Forwards every call; tests override some of them.
class Forwarding : public Transport {
 public:
  explicit Forwarding(Transport& to) : to_(to) {}
  int rank() const override { return to_.rank(); }
  int size() const override { return to_.size(); }
  void* stream() const override { return to_.stream(); }
  void will_use(void* memory, std::size_t n_bytes) override { to_.will_use(memory, n_bytes); }
  void allreduce(void* data, std::size_t count, drun_dtype dtype, drun_op op, const std::string& name) override {
    to_.allreduce(data, count, dtype, op, name);
  }
  void allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype, const std::string& name) override {
    to_.allgather(send, recv, count, dtype, name);
  }
  void allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                  drun_dtype dtype, const std::string& name) override {
    to_.allgatherv(send, send_count, recv, recv_counts, dtype, name);
  }
  void alltoallv(const void* send, const std::size_t* send_counts, void* recv, const std::size_t* recv_counts,
                 drun_dtype dtype, const std::string& name) override {
    to_.alltoallv(send, send_counts, recv, recv_counts, dtype, name);
  }

 private:
  Transport& to_;
};

// A different sequence for each rank and step, the same in every run.
inline std::mt19937_64 generator(int rank, int step = 0) {
  return std::mt19937_64(static_cast<std::uint64_t>(rank) * 1000003u + static_cast<std::uint64_t>(step) + 17u);
}

// Numbers of all magnitudes, most of them below 1.
template <typename T>
std::vector<T> gradients(std::size_t count, int rank, int step = 0) {
  auto random = generator(rank, step);
  std::normal_distribution<double> value(0, 0.1);
  std::uniform_int_distribution<int> exponent(-30, 3);
  std::vector<T> result(count);
  for (T& one : result) one = static_cast<T>(std::ldexp(value(random), exponent(random)));
  return result;
}

// Small multiples of 2^-10: their sums are exact, so results can be compared bit by bit.
template <typename T>
std::vector<T> exact_gradients(std::size_t count, int rank, int step) {
  auto random = generator(rank, step);
  std::uniform_int_distribution<int> any(-64, 64);
  std::vector<T> result(count);
  for (T& one : result) one = std::ldexp(static_cast<T>(any(random)), -10);  // below 1
  return result;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return values.empty() ? "" : std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Compares bit by bit.
template <typename T>
void expect_same_on_all(Transport& ranks, const std::vector<T>& values) {
  const auto size = static_cast<std::size_t>(ranks.size());
  std::vector<T> all(values.size() * size);
  ranks.allgather(values.data(), all.data(), values.size(), dtype_of<T>(), "test");
  const std::string bytes = bytes_of(all);
  const std::size_t length = values.size() * sizeof(T);
  for (std::size_t rank = 1; rank < size; ++rank) {
    EXPECT_TRUE(bytes.compare(rank * length, length, bytes, 0, length) == 0)
        << "rank " << rank << " has something else than rank 0";
  }
}

}  // namespace drun::training_test
