// Stands in for NVIDIA's driver, libcuda.so.1, on machines without GPUs: as much of it as libdrun calls, and memory for
// tests. Device memory can't be touched by the processor: its addresses are mapped without any permission, what it
// holds is mapped elsewhere. Streams do their work later, on a thread of their own, so that a wait that is missing
// shows. $DRUN_FAKE_CUDA, words: "slow" (a copy takes 20 ms), "stuck" (no stream ever gets done), "no-pinned" (out of
// memory), "one-gpu" (all ranks have the same; else each has its own). Built with FAKE_CUDA_IS_OLD it is a driver from
// before CUDA 10.1, which lacks a function.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

// In the memory that every thread has from the start: what a library gets that is loaded later, threads give back in a
// way that ThreadSanitizer takes for a race.
#define IN_THREAD thread_local __attribute__((tls_model("initial-exec")))

namespace {

using Result = int;
using DevicePointer = unsigned long long;
constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201, kNotReady = 600;

struct Region {
  char* inside;  // where its bytes can be read and written
  std::size_t n_bytes;
  bool managed;
  int ordinal = 0;
};

bool told(const char* word) {
  const char* words = std::getenv("DRUN_FAKE_CUDA");
  return words != nullptr && std::strstr(words, word) != nullptr;
}

class StreamOfTests {
 public:
  void add(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!worker_.joinable()) worker_ = std::thread([this] { run(); });
    works_.push_back(std::move(work));
    ++n_open_;
    changed_.notify_all();
  }
  bool is_done() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return n_open_ == 0;
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !works_.empty(); });
        work = std::move(works_.front());
        works_.pop_front();
      }
      if (told("stuck")) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(told("slow") ? 20 : 1));
      work();
      const std::lock_guard<std::mutex> lock(mutex_);
      --n_open_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;
  int n_open_ = 0;
  std::thread worker_;
};

class EventOfTests {
 public:
  int record() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ++recorded_;
  }
  int recorded() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return recorded_;
  }
  void reach(int number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    reached_ = std::max(reached_, number);
    changed_.notify_all();
  }
  bool is_reached() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reached_ >= recorded_;
  }
  void wait(int number) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return reached_ >= number; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int recorded_ = 0, reached_ = 0;
};

struct State {
  std::mutex mutex;
  std::map<DevicePointer, Region> regions;  // by where they begin
  std::map<void*, StreamOfTests*> streams;
  int n_pinned = 0, n_pinned_ever = 0, n_events = 0;
  std::set<EventOfTests*> events;
};
// Never destroyed: threads of streams run to the end of the process.
State& state() {
  static State* const all = new State;
  return *all;
}
IN_THREAD std::deque<void*> contexts;

// nullptr: nobody has it.
char* inside(DevicePointer pointer, std::size_t n_bytes, Region* found = nullptr) {
  State& all = state();
  const std::lock_guard<std::mutex> lock(all.mutex);
  auto after = all.regions.upper_bound(pointer);
  if (after == all.regions.begin()) return nullptr;
  const auto& [begin, region] = *--after;
  if (pointer + n_bytes > begin + region.n_bytes) return nullptr;
  if (found != nullptr) *found = region;
  return region.inside + (pointer - begin);
}

// Ranks of tests are threads: each has a default stream of its own.
StreamOfTests& stream_of(void* stream) {
  static IN_THREAD char default_stream;
  if (stream == nullptr) stream = &default_stream;
  State& all = state();
  const std::lock_guard<std::mutex> lock(all.mutex);
  StreamOfTests*& found = all.streams[stream];
  if (found == nullptr) found = new StreamOfTests;
  return *found;
}

Result allocate(DevicePointer* pointer, std::size_t n_bytes, bool managed) {
  const std::size_t n_mapped = (n_bytes + 4095) / 4096 * 4096;
  const int fd = ::memfd_create("device", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(n_mapped)) != 0) return kOutOfMemory;
  void* const content = ::mmap(nullptr, n_mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void* const address = managed ? content : ::mmap(nullptr, n_mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::close(fd);
  if (content == MAP_FAILED || address == MAP_FAILED) return kOutOfMemory;
  *pointer = reinterpret_cast<DevicePointer>(address);
  State& all = state();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.regions[*pointer] = {static_cast<char*>(content), n_bytes, managed, 0};
  return kSuccess;
}

int a_context;
std::atomic<bool> is_capturing{false};  // every stream

}  // namespace

extern "C" {

Result cuGetErrorName(Result error, const char** name) {
  static const std::map<Result, const char*> names = {{kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                                      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"}};
  const auto found = names.find(error);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : kSuccess;
}

Result cuPointerGetAttribute(void* value, int attribute, DevicePointer pointer) {
  Region region{};
  if (inside(pointer, 1, &region) == nullptr) return kInvalidValue;
  switch (attribute) {
    case 1:
      *static_cast<void**>(value) = nullptr;  // as of a pool
      return kSuccess;
    case 2:
      *static_cast<unsigned*>(value) = 2;
      return kSuccess;
    case 8:
      *static_cast<unsigned*>(value) = region.managed ? 1 : 0;
      return kSuccess;
    case 9:
      *static_cast<int*>(value) = region.ordinal;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

Result cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? kSuccess : kInvalidValue;
}
Result cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &a_context;
  return kSuccess;
}
Result cuCtxPushCurrent_v2(void* context) {
  contexts.push_back(context);
  return kSuccess;
}
Result cuCtxGetCurrent(void** context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}
Result cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

Result cuMemHostAlloc(void** pointer, std::size_t n_bytes, unsigned) {
  if (contexts.empty()) return kInvalidContext;
  if (told("no-pinned")) return kOutOfMemory;
  *pointer = std::malloc(n_bytes);
  const std::lock_guard<std::mutex> lock(state().mutex);
  ++state().n_pinned;
  ++state().n_pinned_ever;
  return *pointer != nullptr ? kSuccess : kOutOfMemory;
}
Result cuMemFreeHost(void* pointer) {
  std::free(pointer);
  const std::lock_guard<std::mutex> lock(state().mutex);
  --state().n_pinned;
  return kSuccess;
}

Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t n_bytes, void* stream) {
  if (contexts.empty()) return kInvalidContext;
  const char* const source = inside(from, n_bytes);
  if (source == nullptr) return kInvalidValue;
  stream_of(stream).add([=] { std::memcpy(to, source, n_bytes); });
  return kSuccess;
}
Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t n_bytes, void* stream) {
  if (contexts.empty()) return kInvalidContext;
  char* const target = inside(to, n_bytes);
  if (target == nullptr) return kInvalidValue;
  stream_of(stream).add([=] { std::memcpy(target, from, n_bytes); });
  return kSuccess;
}
Result cuStreamQuery(void* stream) {
  if (contexts.empty()) return kInvalidContext;
  return stream_of(stream).is_done() ? kSuccess : kNotReady;
}

Result cuDeviceGetUuid(void* uuid, int device) {
  std::memset(uuid, 0, 16);
  // Ranks of tests are threads: each has a GPU of its own, unless they are to share it.
  static std::atomic<unsigned char> next{1};
  static_cast<unsigned char*>(uuid)[15] = told("one-gpu") ? 1 : next++;
  return device == 0 ? kSuccess : kInvalidValue;
}
Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return contexts.empty() ? kInvalidContext : kSuccess;
}
Result cuStreamCreateWithPriority(void** stream, unsigned, int) {
  if (contexts.empty()) return kInvalidContext;
  static std::atomic<std::uintptr_t> next{0x1000};
  *stream = reinterpret_cast<void*>(next.fetch_add(16));
  stream_of(*stream);
  return kSuccess;
}
Result cuStreamDestroy_v2(void*) { return kSuccess; }
Result cuStreamIsCapturing(void*, int* status) {
  *status = is_capturing ? 1 : 0;
  return kSuccess;
}
#ifndef FAKE_CUDA_IS_OLD
Result cuThreadExchangeStreamCaptureMode(int* mode) {
  static IN_THREAD int own = 0;
  std::swap(own, *mode);
  return kSuccess;
}
#endif
Result cuEventCreate(void** event, unsigned) {
  if (contexts.empty()) return kInvalidContext;
  auto* const made = new EventOfTests;
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().events.insert(made);
  ++state().n_events;
  *event = made;
  return kSuccess;
}
Result cuEventDestroy_v2(void*) {  // works of streams may still know it
  const std::lock_guard<std::mutex> lock(state().mutex);
  --state().n_events;
  return kSuccess;
}
Result cuEventRecord(void* event, void* stream) {
  auto* const one = static_cast<EventOfTests*>(event);
  const int number = one->record();
  stream_of(stream).add([=] { one->reach(number); });
  return kSuccess;
}
Result cuEventQuery(void* event) { return static_cast<EventOfTests*>(event)->is_reached() ? kSuccess : kNotReady; }
Result cuStreamWaitEvent(void* stream, void* event, unsigned) {
  auto* const one = static_cast<EventOfTests*>(event);
  const int number = one->recorded();
  stream_of(stream).add([=] { one->wait(number); });
  return kSuccess;
}

// What programs call, for tests.
Result cuInit(unsigned) { return kSuccess; }
Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Result cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
Result cuDeviceGetName(char* name, int n_bytes, int) {
  std::strncpy(name, "a GPU that there is not", static_cast<std::size_t>(n_bytes));
  return kSuccess;
}
Result cuCtxSetCurrent(void* context) {
  contexts.assign(1, context);
  return kSuccess;
}
Result cuMemFree_v2(DevicePointer) { return kSuccess; }  // works of streams may still use it
Result cuMemsetD32Async(DevicePointer to, unsigned value, std::size_t n, void* stream) {
  char* const target = inside(to, 4 * n);
  if (target == nullptr) return kInvalidValue;
  stream_of(stream).add([=] {
    for (std::size_t i = 0; i < n; ++i) std::memcpy(target + 4 * i, &value, sizeof value);
  });
  return kSuccess;
}
Result cuStreamCreate(void** stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
int fake_wait(void* stream);
Result cuStreamSynchronize(void* stream) { return fake_wait(stream) == 1 ? kSuccess : kNotReady; }
// Nothing is captured here.
Result cuStreamBeginCapture_v2(void*, int) { return kInvalidValue; }
Result cuStreamEndCapture(void*, void**) { return kInvalidValue; }
Result cuGraphInstantiateWithFlags(void**, void*, unsigned long long) { return kInvalidValue; }
Result cuGraphLaunch(void*, void*) { return kInvalidValue; }
Result cuGraphExecDestroy(void*) { return kInvalidValue; }
Result cuGraphDestroy(void*) { return kInvalidValue; }

// For tests.
void fake_enqueue(void* stream, void (*work)(void*), void* argument) {
  stream_of(stream).add([=] { work(argument); });
}
Result cuMemAlloc_v2(DevicePointer* pointer, std::size_t n_bytes) { return allocate(pointer, n_bytes, false); }
Result cuMemAllocManaged(DevicePointer* pointer, std::size_t n_bytes, unsigned) {
  return allocate(pointer, n_bytes, true);
}
// The bytes of device memory, which the processor may touch there.
void* fake_inside(void* pointer) { return inside(reinterpret_cast<DevicePointer>(pointer), 1); }
// Work of the stream's that takes a while and then writes.
void fake_write_later(void* stream, void* pointer, const void* bytes, std::size_t n_bytes) {
  char* const target = inside(reinterpret_cast<DevicePointer>(pointer), n_bytes);
  const std::string kept(static_cast<const char*>(bytes), n_bytes);
  stream_of(stream).add([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::memcpy(target, kept.data(), kept.size());
  });
}
int fake_pinned_blocks() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().n_pinned;
}
// Its later work does not begin for so long.
void fake_block(void* stream, int ms) {
  stream_of(stream).add([=] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); });
}
void fake_put_on(void* pointer, int ordinal) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().regions.at(reinterpret_cast<DevicePointer>(pointer)).ordinal = ordinal;
}
void fake_capture(int on) { is_capturing = on != 0; }
int fake_wait(void* stream) {
  for (int i = 0; i < 20000; ++i) {
    if (stream_of(stream).is_done()) return 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}
int fake_pinned_ever() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().n_pinned_ever;
}
int fake_events() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().n_events;
}
int fake_contexts_here() { return static_cast<int>(contexts.size()); }
}
