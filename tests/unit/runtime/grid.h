// Shared by the exactness tests of the collectives: input that every order of summation reduces to the same bits, a
// naive oracle in double, and buffers that end at a guard page.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/src/dtype.h"
#include "runtime/src/half.h"
#include "tests/unit/runtime/fake_job.h"

namespace drun::runtime::testing {

inline constexpr drun_dtype kDtypes[] = {DRUN_INT8,   DRUN_UINT8,   DRUN_INT32,    DRUN_UINT32,  DRUN_INT64,
                                         DRUN_UINT64, DRUN_FLOAT16, DRUN_BFLOAT16, DRUN_FLOAT32, DRUN_FLOAT64};
inline constexpr drun_op kOps[] = {DRUN_SUM, DRUN_PROD, DRUN_MIN, DRUN_MAX, DRUN_AVG};

inline bool is_floating(drun_dtype dtype) { return dtype >= DRUN_FLOAT16; }

// Small nonzero integers, so that no result is -0. They repeat after kPeriod elements, a prime.
inline constexpr std::size_t kPeriod = 251;
inline double value(int rank, std::size_t i) {
  static constexpr double kValues[] = {1, 2, 1, -1, 1, -1, 3};
  return kValues[(i % kPeriod + static_cast<std::size_t>(rank) * 5 + i % kPeriod / 7) % 7];
}

inline double value_as(drun_dtype dtype, int rank, std::size_t i) {
  const bool is_unsigned = dtype == DRUN_UINT8 || dtype == DRUN_UINT32 || dtype == DRUN_UINT64;
  return is_unsigned ? std::abs(value(rank, i)) : value(rank, i);
}

// Elements of one type in memory, one after another.
class Elements {
 public:
  Elements(drun_dtype dtype, std::size_t count) : dtype_(dtype), bytes_(count * size_of(dtype), '\0') {}
  void set(std::size_t i, double value) {
    switch (dtype_) {
      case DRUN_INT8:
      case DRUN_UINT8:
        return store(i, static_cast<std::uint8_t>(static_cast<std::int64_t>(value)));
      case DRUN_INT32:
      case DRUN_UINT32:
        return store(i, static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
      case DRUN_INT64:
      case DRUN_UINT64:
        return store(i, static_cast<std::int64_t>(value));
      case DRUN_FLOAT16:
      case DRUN_BFLOAT16: {
        const auto single = static_cast<float>(value);
        return narrow(&single, bytes_.data() + 2 * i, dtype_, 1);
      }
      case DRUN_FLOAT32:
        return store(i, static_cast<float>(value));
      case DRUN_FLOAT64:
        return store(i, value);
    }
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  void store(std::size_t i, T value) {
    std::memcpy(bytes_.data() + i * sizeof(T), &value, sizeof(T));
  }
  drun_dtype dtype_;
  std::string bytes_;
};

// Returns `count` elements of a repeated sequence, starting at element `first`.
inline std::string tiled(const std::string& period, drun_dtype dtype, std::size_t first, std::size_t count) {
  std::string result;
  result.reserve(count * size_of(dtype));
  for (std::size_t i = first; i < first + count;) {
    const std::size_t n = std::min(kPeriod - i % kPeriod, first + count - i);
    result.append(period, i % kPeriod * size_of(dtype), n * size_of(dtype));
    i += n;
  }
  return result;
}

// Returns `count` elements of the input of `rank`, starting at element `first`.
inline std::string given(drun_dtype dtype, int rank, std::size_t first, std::size_t count) {
  Elements period(dtype, kPeriod);
  for (std::size_t i = 0; i < kPeriod; ++i) {
    period.set(i, value_as(dtype, rank, i));
  }
  return tiled(period.bytes(), dtype, first, count);
}

// Returns the reduction of all ranks' inputs.
inline std::string reduced(drun_dtype dtype, drun_op op, int size, std::size_t first, std::size_t count) {
  Elements period(dtype, kPeriod);
  for (std::size_t i = 0; i < kPeriod; ++i) {
    double result = value_as(dtype, 0, i);
    for (int rank = 1; rank < size; ++rank) {
      const double v = value_as(dtype, rank, i);
      result = op == DRUN_PROD  ? result * v
               : op == DRUN_MIN ? std::min(result, v)
               : op == DRUN_MAX ? std::max(result, v)
                                : result + v;
    }
    if (op == DRUN_AVG) {
      if (!is_floating(dtype)) {
        result = std::trunc(result / size);
      } else {  // rounded once, in the type of the sum
        result = dtype == DRUN_FLOAT64 ? result / size
                                       : static_cast<double>(static_cast<float>(result) / static_cast<float>(size));
      }
    }
    period.set(i, result);
  }
  return tiled(period.bytes(), dtype, first, count);
}

// Memory that ends `slack` bytes before a page that can't be accessed; with a slack of 1 no element is aligned. Detects
// changes of the bytes around it.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t n_bytes, std::size_t slack = 0) : n_bytes_(n_bytes), slack_(slack) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    mapped_ = (n_bytes + slack + kBefore + page - 1) / page * page + page;
    void* memory = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    memory_ = static_cast<char*>(memory);
    EXPECT_EQ(::mprotect(memory_ + mapped_ - page, page, PROT_NONE), 0);
    begin_ = memory_ + mapped_ - page - slack - n_bytes;
    std::memset(begin_ - kBefore, kUntouched, kBefore + n_bytes + slack);
  }
  GuardedBuffer(const std::string& bytes, std::size_t slack) : GuardedBuffer(bytes.size(), slack) {
    bytes.copy(begin_, bytes.size());
  }
  ~GuardedBuffer() {
    EXPECT_EQ(std::string(begin_ - kBefore, kBefore), std::string(kBefore, kUntouched)) << "written before the buffer";
    EXPECT_EQ(std::string(begin_ + n_bytes_, slack_), std::string(slack_, kUntouched)) << "written behind the buffer";
    ::munmap(memory_, mapped_);
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  char* data() { return begin_; }
  std::string bytes() const { return {begin_, n_bytes_}; }
  static constexpr char kUntouched = 0x5a;

 private:
  static constexpr std::size_t kBefore = 64;
  std::size_t n_bytes_, slack_, mapped_ = 0;
  char* memory_ = nullptr;
  char* begin_ = nullptr;
};

// Counts events of all ranks; other ranks can wait for a count.
class Events {
 public:
  void add() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  // Gives up after 20 s.
  void wait_for(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ >= count; });
  }
  int count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

inline std::unique_ptr<Communicator> join(FakeJob& job, int rank) {
  auto all = Communicator::create(job.job_context(rank));
  EXPECT_TRUE(all) << all.error().text;
  return all ? std::move(*all) : nullptr;
}

}  // namespace drun::runtime::testing
