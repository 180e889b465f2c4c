// Ranks as threads that train together, over real TCP. A header of its own beside ranks.cpp, because the library's
// inside and what it shows others both have a drun::Error.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "drun/training.hpp"

namespace drun::training_test {

// `body` once per rank, at the same time. What each of them threw. `have_gpus`: whether NCCL may be used.
std::vector<std::optional<v0::Error>> errors_of_ranks(int size, const std::function<void(Transport&)>& body,
                                                      bool have_gpus = false);

// The same where nothing may be thrown.
inline void run_ranks(int size, const std::function<void(Transport&)>& body, bool have_gpus = false) {
  for (const auto& error : errors_of_ranks(size, body, have_gpus)) {
    if (error) ADD_FAILURE() << error->what();
  }
}

// Hands everything on; tests change one of the calls.
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

// Another sequence for each rank and step, the same on every run.
inline std::mt19937_64 generator(int rank, int step = 0) {
  return std::mt19937_64(static_cast<std::uint64_t>(rank) * 1000003u + static_cast<std::uint64_t>(step) + 17u);
}

// All sizes of numbers, most of them below 1.
template <typename T>
std::vector<T> gradients(std::size_t count, int rank, int step = 0) {
  auto random = generator(rank, step);
  std::normal_distribution<double> value(0, 0.1);
  std::uniform_int_distribution<int> exponent(-30, 3);
  std::vector<T> result(count);
  for (T& one : result) one = static_cast<T>(std::ldexp(value(random), exponent(random)));
  return result;
}

// Whole numbers of small steps: sums of them are exact, so that accounts must balance to the bit.
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

// Bit by bit.
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
