// A block of threads, as the kernels use it: on a GPU by nvcc; or by any C++ compiler, where one thread does the work
// of all, for tests on machines without a GPU.
//
// A kernel is a sequence of phases. In a phase every thread does its part, and sees the writes of other threads in
// earlier phases, but not those in this one. A PerThread keeps a thread's value from phase to phase.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/src/gpu/kernels/arguments.h"

#if defined(__CUDACC__)

#define DRUN_DEVICE __device__ __forceinline__
#define DRUN_UNROLL _Pragma("unroll")
#define DRUN_NO_UNROLL _Pragma("unroll 1")
#define DRUN_SHARED __shared__

namespace drun::runtime::gpu {

struct Block {
  DRUN_DEVICE unsigned number() const { return blockIdx.x; }
  DRUN_DEVICE unsigned n_blocks() const { return gridDim.x; }
  // A phase for whose end no thread waits.
  template <typename F>
  DRUN_DEVICE void last(F part) const {
    part(threadIdx.x);
  }
  template <typename F>
  DRUN_DEVICE void phase(F part) const {
    part(threadIdx.x);
    __syncthreads();
  }
};

template <typename T>
struct PerThread {
  T value;
  DRUN_DEVICE T& operator()(unsigned) { return value; }
};

// Replaces every thread's value by the sum of those of the threads before it. Returns the sum of all.
template <typename T>
DRUN_DEVICE T sum_before(const Block&, PerThread<T>& value) {
  constexpr unsigned kWarp = 32, kWarps = kThreads / kWarp, kAllLanes = ~0u;
  DRUN_SHARED T sums[kWarps];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  T up_to = value.value;
  DRUN_UNROLL for (unsigned step = 1; step < kWarp; step *= 2) {
    const T other = __shfl_up_sync(kAllLanes, up_to, step);
    if (lane >= step) up_to += other;
  }
  if (lane == kWarp - 1) sums[warp] = up_to;
  __syncthreads();
  T before{0}, all{0};
  DRUN_UNROLL for (unsigned i = 0; i < kWarps; ++i) {
    if (i < warp) before += sums[i];
    all += sums[i];
  }
  __syncthreads();
  value.value = before + up_to - value.value;
  return all;
}

DRUN_DEVICE unsigned n_bits(unsigned bits) { return static_cast<unsigned>(__popc(static_cast<int>(bits))); }
// Number of the lowest bit; there must be one.
DRUN_DEVICE unsigned lowest_bit(unsigned bits) { return static_cast<unsigned>(__ffs(static_cast<int>(bits))) - 1; }

// Adds atomically; returns the old value.
DRUN_DEVICE unsigned add_to(unsigned* sum, unsigned value) { return atomicAdd(sum, value); }
DRUN_DEVICE std::uint64_t add_to(std::uint64_t* sum, std::uint64_t value) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(value));
}
// Tells the compiler that the pointer is to memory of the device, and not to shared memory of the block.
template <typename T>
DRUN_DEVICE void assume_global(T* pointer) {
  __builtin_assume(__isGlobal(pointer));
}
// Orders this thread's earlier writes to the device's memory before its later ones.
DRUN_DEVICE void fence() { __threadfence(); }
// Reads a value that other blocks of this kernel have written.
DRUN_DEVICE std::uint64_t written_by_others(const std::uint64_t& value) {
  unsigned long long out;
  asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(out) : "l"(&value) : "memory");
  return out;
}

}  // namespace drun::runtime::gpu

// Lets a kernel use its parameters where they are. Before compute capability 7.0 compilers may copy them.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#define DRUN_IN_PLACE
#else
#define DRUN_IN_PLACE __grid_constant__
#endif

// For use inside this namespace; the last argument is the function that implements the kernel.
#define DRUN_KERNEL(name, Arguments, ...)                                                                   \
  extern "C" __global__ void __launch_bounds__(kThreads, 4) name(const DRUN_IN_PLACE Arguments arguments) { \
    __VA_ARGS__(Block{}, arguments);                                                                        \
  }

#else

#define DRUN_DEVICE inline
#define DRUN_UNROLL
#define DRUN_NO_UNROLL
#define DRUN_SHARED

namespace drun::runtime::gpu {

// Order in which threads and blocks run. A kernel must not depend on it: the tests use all of these.
enum class Order { kAscending, kDescending, kMixed };
inline unsigned place_in(Order order, unsigned i, unsigned n) {
  if (order == Order::kAscending) return i;
  if (order == Order::kDescending) return n - 1 - i;
  return i % 2 == 0 ? n / 2 + i / 2 : n / 2 - (i + 1) / 2;
}

class Block {
 public:
  Block(unsigned number, unsigned n_blocks, Order order) : number_(number), n_blocks_(n_blocks), order_(order) {}
  unsigned number() const { return number_; }
  unsigned n_blocks() const { return n_blocks_; }
  template <typename F>
  void last(F part) const {
    phase(part);
  }
  template <typename F>
  void phase(F part) const {
    for (unsigned i = 0; i < kThreads; ++i) part(place_in(order_, i, kThreads));
  }

 private:
  unsigned number_, n_blocks_;
  Order order_;
};

template <typename T>
struct PerThread {
  T values[kThreads];
  T& operator()(unsigned thread) { return values[thread]; }
};

template <typename T>
T sum_before(const Block&, PerThread<T>& value) {
  T all{0};
  for (T& one : value.values) {
    const T own = one;
    one = all;
    all += own;
  }
  return all;
}

inline unsigned n_bits(unsigned bits) { return static_cast<unsigned>(__builtin_popcount(bits)); }
inline unsigned lowest_bit(unsigned bits) { return static_cast<unsigned>(__builtin_ctz(bits)); }

template <typename T>
T add_to(T* sum, T value) {
  const T before = *sum;
  *sum += value;
  return before;
}
template <typename T>
void assume_global(T*) {}
inline void fence() {}
inline std::uint64_t written_by_others(const std::uint64_t& value) { return value; }

// The kernels of this program, by name.
struct EmulatedKernel {
  std::size_t n_argument_bytes;
  void (*run)(const void* arguments, unsigned n_blocks, Order order);
};
bool register_kernel(const char* name, EmulatedKernel kernel);

}  // namespace drun::runtime::gpu

#define DRUN_KERNEL(name, Arguments, ...)                                                                           \
  namespace {                                                                                                       \
  void name(const void* arguments, unsigned n_blocks, Order order) {                                                \
    for (unsigned i = 0; i < n_blocks; ++i) {                                                                       \
      __VA_ARGS__(Block(place_in(order, i, n_blocks), n_blocks, order), *static_cast<const Arguments*>(arguments)); \
    }                                                                                                               \
  }                                                                                                                 \
  [[maybe_unused]] const bool name##_is_known = register_kernel(#name, {sizeof(Arguments), name});                  \
  }

#endif
