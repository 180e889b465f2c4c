// Memory of a made-up GPU: the fake of NVIDIA's driver, and its functions for tests.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/src/gpu/kernel_image.h"

namespace drun::runtime::testing {

// Functions of the fake driver that only tests call.
struct FakeDriver {
  int (*allocate)(unsigned long long*, std::size_t) = nullptr;
  int (*allocate_managed)(unsigned long long*, std::size_t, unsigned) = nullptr;
  void* (*inside)(void*) = nullptr;
  void (*write_later)(void*, void*, const void*, std::size_t) = nullptr;
  int (*n_pinned)() = nullptr;
  int (*n_contexts)() = nullptr;
  int (*n_events)() = nullptr;
  int (*n_asked)() = nullptr;                            // calls of the driver's functions that collectives use
  int (*n_pinned_ever)() = nullptr;                      // including those that were freed
  void (*put_on)(void* pointer, int ordinal) = nullptr;  // to another GPU
  void (*block)(void* stream, int ms) = nullptr;         // delays later work by `ms`
  void (*capture)(int on) = nullptr;                     // marks every stream as captured
  int (*wait)(void* stream) = nullptr;                   // until it is idle; 0: not within 20 s
};

template <typename F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  ASSERT_NE(function, nullptr) << name;
}

inline const FakeDriver& fake() {
  static const FakeDriver driver = [] {
    FakeDriver out;
    void* const library = ::dlopen(FAKE_CUDA, RTLD_NOW);
    EXPECT_NE(library, nullptr) << ::dlerror();
    find(library, "cuMemAlloc_v2", out.allocate);
    find(library, "cuMemAllocManaged", out.allocate_managed);
    find(library, "fake_inside", out.inside);
    find(library, "fake_write_later", out.write_later);
    find(library, "fake_pinned_blocks", out.n_pinned);
    find(library, "fake_contexts_here", out.n_contexts);
    find(library, "fake_wait", out.wait);
    find(library, "fake_capture", out.capture);
    find(library, "fake_block", out.block);
    find(library, "fake_events", out.n_events);
    find(library, "fake_asked", out.n_asked);
    find(library, "fake_pinned_ever", out.n_pinned_ever);
    find(library, "fake_put_on", out.put_on);
    return out;
  }();
  return driver;
}

// Gives libdrun kernels during its lifetime, even without nvcc: the fake driver ignores the image.
class KernelsForTests {
 public:
  KernelsForTests() {
    static const char stand_in[] = "kernels";
    if (built_ == nullptr) gpu::set_kernel_image(stand_in);
  }
  ~KernelsForTests() { gpu::set_kernel_image(built_); }
  KernelsForTests(const KernelsForTests&) = delete;
  KernelsForTests& operator=(const KernelsForTests&) = delete;

 private:
  const void* const built_ = gpu::kernel_image();
};

// A buffer on the device. It is never freed.
class Device {
 public:
  explicit Device(const std::vector<float>& values) : n_(values.size()) {
    unsigned long long pointer = 0;
    EXPECT_EQ(fake().allocate(&pointer, std::max<std::size_t>(1, n_ * sizeof(float))), 0);
    pointer_ = reinterpret_cast<float*>(pointer);
    if (n_ > 0) std::memcpy(fake().inside(pointer_), values.data(), n_ * sizeof(float));
  }
  explicit Device(std::size_t n, float value = 0) : Device(std::vector<float>(n, value)) {}
  float* get() const { return pointer_; }
  std::vector<float> values() const {
    std::vector<float> out(n_);
    if (n_ > 0) std::memcpy(out.data(), fake().inside(pointer_), n_ * sizeof(float));
    return out;
  }

 private:
  std::size_t n_;
  float* pointer_;
};

// An array of any type on the device, `offset` elements behind an aligned address. It is never freed.
template <typename T>
class Array {
 public:
  explicit Array(const std::vector<T>& values, std::size_t offset = 0) : n_(values.size()) {
    unsigned long long pointer = 0;
    EXPECT_EQ(fake().allocate(&pointer, std::max<std::size_t>(1, (n_ + offset) * sizeof(T))), 0);
    pointer_ = reinterpret_cast<T*>(pointer) + offset;
    set(values);
  }
  explicit Array(std::size_t n, std::size_t offset = 0) : Array(std::vector<T>(n), offset) {}
  T* get() const { return pointer_; }
  void set(const std::vector<T>& values) const {
    if (n_ > 0) std::memcpy(fake().inside(pointer_), values.data(), n_ * sizeof(T));
  }
  // Waits for the stream before it reads the values.
  std::vector<T> values(void* stream = nullptr) const {
    EXPECT_EQ(fake().wait(stream), 1);
    std::vector<T> out(n_);
    if (n_ > 0) std::memcpy(out.data(), fake().inside(pointer_), n_ * sizeof(T));
    return out;
  }

 private:
  std::size_t n_;
  T* pointer_;
};

inline std::vector<float> ramp(std::size_t n, float first) {
  std::vector<float> out(n);
  std::iota(out.begin(), out.end(), first);
  return out;
}
inline std::vector<float> repeated(std::size_t n, float value) { return std::vector<float>(n, value); }

#define ASSERT_DONE(call)                                 \
  do {                                                    \
    const Status done = (call);                           \
    ASSERT_TRUE(done) << (done ? "" : done.error().text); \
  } while (false)

}  // namespace drun::runtime::testing
