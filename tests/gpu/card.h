// An NVIDIA GPU for tests and benchmarks of libdrun: the driver, loaded at run time, with the functions that they
// need. Failures print an error and end the program: no failure is expected here.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace drun::gpu_tests {

using Pointer = std::uint64_t;
using Handle = void*;  // of a stream, an event, a graph, ...

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "gpu-check: %s\n", why.c_str());
  std::exit(1);
}

struct Card {
  int (*cuInit)(unsigned);
  int (*cuDriverGetVersion)(int*);
  int (*cuDeviceGetCount)(int*);
  int (*cuDeviceGet)(int*, int);
  int (*cuDeviceGetName)(char*, int, int);
  int (*cuDevicePrimaryCtxRetain)(Handle*, int);
  int (*cuCtxSetCurrent)(Handle);
  int (*cuMemAlloc_v2)(Pointer*, std::size_t);
  int (*cuMemFree_v2)(Pointer);
  int (*cuMemcpyHtoDAsync_v2)(Pointer, const void*, std::size_t, Handle);
  int (*cuMemcpyDtoHAsync_v2)(void*, Pointer, std::size_t, Handle);
  int (*cuMemsetD32Async)(Pointer, unsigned, std::size_t, Handle);
  int (*cuStreamCreate)(Handle*, unsigned);
  int (*cuStreamSynchronize)(Handle);
  int (*cuStreamBeginCapture_v2)(Handle, int);
  int (*cuStreamEndCapture)(Handle, Handle*);
  int (*cuGraphInstantiateWithFlags)(Handle*, Handle, unsigned long long);
  int (*cuGraphLaunch)(Handle, Handle);
  int (*cuGraphExecDestroy)(Handle);
  int (*cuGraphDestroy)(Handle);
  int n_devices = 0, driver_version = 0;
  std::string name;

  static void check(int result, const char* what) {
    if (result != 0) give_up(std::string(what) + ": error " + std::to_string(result) + " of the driver");
  }

  // Makes device number `local_rank` current for this thread, modulo the number of devices.
  static const Card& open(int local_rank) {
    static Card card;
    static const bool opened = [&] {
      void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
      if (library == nullptr) give_up(std::string("no driver: ") + ::dlerror());
      card.find_all(library);
      check(card.cuInit(0), "cuInit");
      check(card.cuDriverGetVersion(&card.driver_version), "cuDriverGetVersion");
      check(card.cuDeviceGetCount(&card.n_devices), "cuDeviceGetCount");
      if (card.n_devices == 0) give_up("there is a driver, but no GPU");
      int device = 0;
      Handle context = nullptr;
      char device_name[200] = "";
      check(card.cuDeviceGet(&device, local_rank % card.n_devices), "cuDeviceGet");
      check(card.cuDeviceGetName(device_name, sizeof device_name, device), "cuDeviceGetName");
      check(card.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
      check(card.cuCtxSetCurrent(context), "cuCtxSetCurrent");
      card.name = device_name;
      return true;
    }();
    (void)opened;
    return card;
  }

  Handle new_stream() const {
    Handle stream = nullptr;
    check(cuStreamCreate(&stream, 1), "cuStreamCreate");
    return stream;
  }
  void wait(Handle stream) const { check(cuStreamSynchronize(stream), "cuStreamSynchronize"); }

 private:
  template <typename F>
  static void find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(::dlsym(library, name));
    if (function == nullptr) give_up(std::string("the driver has no ") + name);
  }
  void find_all(void* library) {
    find(library, "cuInit", cuInit);
    find(library, "cuDriverGetVersion", cuDriverGetVersion);
    find(library, "cuDeviceGetCount", cuDeviceGetCount);
    find(library, "cuDeviceGet", cuDeviceGet);
    find(library, "cuDeviceGetName", cuDeviceGetName);
    find(library, "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain);
    find(library, "cuCtxSetCurrent", cuCtxSetCurrent);
    find(library, "cuMemAlloc_v2", cuMemAlloc_v2);
    find(library, "cuMemFree_v2", cuMemFree_v2);
    find(library, "cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync_v2);
    find(library, "cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync_v2);
    find(library, "cuMemsetD32Async", cuMemsetD32Async);
    find(library, "cuStreamCreate", cuStreamCreate);
    find(library, "cuStreamSynchronize", cuStreamSynchronize);
    find(library, "cuStreamBeginCapture_v2", cuStreamBeginCapture_v2);
    find(library, "cuStreamEndCapture", cuStreamEndCapture);
    find(library, "cuGraphInstantiateWithFlags", cuGraphInstantiateWithFlags);
    find(library, "cuGraphLaunch", cuGraphLaunch);
    find(library, "cuGraphExecDestroy", cuGraphExecDestroy);
    find(library, "cuGraphDestroy", cuGraphDestroy);
  }
};

// An array of `count` elements on the device.
template <typename T>
class Buffer {
 public:
  Buffer(const Card& card, std::size_t count) : card_(card), count_(count) {
    Card::check(card.cuMemAlloc_v2(&pointer_, (count > 0 ? count : 1) * sizeof(T)), "cuMemAlloc");
  }
  Buffer(const Card& card, const std::vector<T>& values, Handle stream) : Buffer(card, values.size()) {
    put(values, stream);
  }
  ~Buffer() { card_.cuMemFree_v2(pointer_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* get() const { return reinterpret_cast<T*>(pointer_); }
  Pointer address() const { return pointer_; }
  void put(const std::vector<T>& values, Handle stream) {
    Card::check(card_.cuMemcpyHtoDAsync_v2(pointer_, values.data(), values.size() * sizeof(T), stream), "copy");
    card_.wait(stream);
  }
  std::vector<T> values(Handle stream) const {
    std::vector<T> out(count_);
    Card::check(card_.cuMemcpyDtoHAsync_v2(out.data(), pointer_, count_ * sizeof(T), stream), "copy");
    card_.wait(stream);
    return out;
  }

 private:
  const Card& card_;
  std::size_t count_;
  Pointer pointer_ = 0;
};

}  // namespace drun::gpu_tests
