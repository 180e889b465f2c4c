// Memory of a GPU that training uses as scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "drun/drun.hpp"
#include "drun/gpu.h"

namespace drun {
inline namespace v0 {
namespace training {

// Memory that grows, on the GPU of `like`. The destructor waits for the stream on which it was used last and frees it;
// streams must outlive it.
class GpuBuffer {
 public:
  GpuBuffer() = default;
  ~GpuBuffer() { give_back(); }
  GpuBuffer(GpuBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        n_bytes_(std::exchange(other.n_bytes_, 0)),
        stream_(other.stream_) {}
  GpuBuffer& operator=(GpuBuffer&&) = delete;

  // Returns memory of at least `n_bytes`, and at least one; undefined contents if it grows. Waits for the earlier
  // stream if `stream` is another one. Throws Error.
  void* resize(std::size_t n_bytes, void* stream, const void* like) {
    if (data_ != nullptr && stream != stream_) wait();
    if (n_bytes > n_bytes_ || data_ == nullptr) {
      give_back();
      const std::size_t n_new = n_bytes > 0 ? n_bytes : 1;
      check(drun_alloc_like(&data_, n_new, like));
      n_bytes_ = n_new;
    }
    stream_ = stream;
    return data_;
  }
  void* data() const { return data_; }
  std::size_t n_bytes() const { return n_bytes_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  int wait() const noexcept {
    char byte;
    return drun_gpu_read(&byte, data_, 1, stream_);
  }
  void give_back() noexcept {
    if (data_ == nullptr) return;
    // If waiting fails, the GPU is unusable, and so is the memory.
    if (wait() == DRUN_OK) drun_free(data_);
    data_ = nullptr;
    n_bytes_ = 0;
  }

  void* data_ = nullptr;
  std::size_t n_bytes_ = 0;
  void* stream_ = nullptr;
};

// A counter in memory of the GPU to which kernels add; 0 at first.
class GpuCounter {
 public:
  // Address of the counter, for kernels on `stream`. Enqueues clearing it the first time.
  std::uint64_t* get(void* stream, const void* like) {
    void* const memory = buffer_.resize(sizeof(std::uint64_t), stream, like);
    if (!is_clear_) check(drun_gpu_clear(memory, sizeof(std::uint64_t), stream));
    is_clear_ = true;
    stream_ = stream;
    return buffer_.as<std::uint64_t>();
  }
  // Returns the count. Waits for the stream.
  std::uint64_t value() const {
    std::uint64_t value = 0;
    if (is_clear_) check(drun_gpu_read(&value, buffer_.data(), sizeof value, stream_));
    return value;
  }

 private:
  GpuBuffer buffer_;
  bool is_clear_ = false;  // it was cleared once
  void* stream_ = nullptr;
};

}  // namespace training
}  // namespace v0
}  // namespace drun
