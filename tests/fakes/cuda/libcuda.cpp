// Stands in for NVIDIA's driver, libcuda.so.1, on machines without GPUs: the functions that libdrun calls, and memory
// for tests. The CPU can't access device memory: its addresses are mapped without any permission. Its bytes are mapped
// a second time, only for kernels, which are emulated (kernels.cpp). Streams execute their work later, on their own
// threads, so that a missing wait shows. $DRUN_FAKE_CUDA, words: "slow" (each operation takes 20 ms), "stuck" (no
// stream ever finishes), "no-pinned" (out of memory), "one-gpu" (all ranks have the same GPU; else each has its own),
// "no-kernels" (for this GPU), "no-gpu", "cuda-12", "pascal" (the GPU), "record-stuck" (cuEventRecord never returns, as
// with a stream whose queue is full), "launch-stuck" (nor does cuLaunchKernel). Built with FAKE_CUDA_IS_OLD it is a
// driver from before CUDA 10.1, which lacks a function.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fakes/cuda/kernels.h"

// Uses the static TLS block, which every thread has from the start: ThreadSanitizer reports a race when threads free
// the TLS of a library that was loaded later.
#define IN_THREAD thread_local __attribute__((tls_model("initial-exec")))

namespace {

using Result = int;
using DevicePointer = unsigned long long;
constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201, kNotReady = 600;

struct Region {
  char* inside;  // address at which its bytes can be read and written
  std::size_t n_bytes;
  bool managed;
  int ordinal = 0;
  bool legacy = true;  // from cuMemAlloc
};

bool told(const char* word) {
  const char* words = std::getenv("DRUN_FAKE_CUDA");
  return words != nullptr && std::strstr(words, word) != nullptr;
}

// The captured work, in the order in which it was enqueued: runs one after the other, whatever the streams.
using Graph = std::vector<std::function<void()>>;

class StreamOfTests {
 public:
  void add(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (graph_) return graph_->push_back(std::move(work));
    if (!worker_.joinable()) worker_ = std::thread([this] { run(); });
    works_.push_back(std::move(work));
    ++n_open_;
    changed_.notify_all();
  }
  bool is_done() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return n_open_ == 0;
  }
  // Adds further work to `graph`; nullptr: ends the capture.
  void capture(std::shared_ptr<Graph> graph) {
    const std::lock_guard<std::mutex> lock(mutex_);
    graph_ = std::move(graph);
  }
  std::shared_ptr<Graph> captures() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return graph_;
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
  std::shared_ptr<Graph> graph_;
  int n_open_ = 0;
  std::thread worker_;
};

class EventOfTests {
 public:
  // Records the event in a stream that may be captured.
  int record(std::shared_ptr<Graph> graph) {
    const std::lock_guard<std::mutex> lock(mutex_);
    graph_ = std::move(graph);
    return ++recorded_;
  }
  std::shared_ptr<Graph> graph() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return graph_;
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
  std::shared_ptr<Graph> graph_;
  int recorded_ = 0, reached_ = 0;
};

struct State {
  std::mutex mutex;
  std::map<DevicePointer, Region> regions;  // by their beginning
  std::map<void*, StreamOfTests*> streams;
  int n_pinned = 0, n_pinned_ever = 0, n_events = 0;
  std::set<EventOfTests*> events;
};
// Never destroyed: threads of streams run until the process ends.
State& state() {
  static State* const all = new State;
  return *all;
}
IN_THREAD std::deque<void*> contexts;

// nullptr: not allocated.
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

// Ranks of tests are threads: each has its own default stream.
StreamOfTests& stream_of(void* stream) {
  static IN_THREAD char default_stream, stream_of_thread;
  if (stream == nullptr) stream = &default_stream;
  if (stream == reinterpret_cast<void*>(2)) stream = &stream_of_thread;
  State& all = state();
  const std::lock_guard<std::mutex> lock(all.mutex);
  StreamOfTests*& found = all.streams[stream];
  if (found == nullptr) found = new StreamOfTests;
  return *found;
}

// The memory of all allocations, one after the other: the same bytes at two addresses. Only kernels can access the
// device address.
struct Memory {
  static constexpr std::size_t kBytes = std::size_t{1} << 36, kPage = 4096;
  char* content = nullptr;
  char* address = nullptr;
  std::size_t n_used = 0;  // guarded by state().mutex

  Memory() {
    const int fd = ::memfd_create("device", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, kBytes) != 0) std::abort();
    content = map(fd, PROT_READ | PROT_WRITE);
    address = map(fd, PROT_NONE);
    ::close(fd);
  }
  static char* map(int fd, int protection) {
    void* const memory = ::mmap(nullptr, kBytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (memory == MAP_FAILED) std::abort();
    return static_cast<char*>(memory);
  }
};
Memory& memory() {
  static Memory* const all = new Memory;
  return *all;
}

Result allocate(DevicePointer* pointer, std::size_t n_bytes, bool managed) {
  // Allocations are separated by an unused page.
  const std::size_t n_pages = n_bytes / Memory::kPage + 2;
  Memory& all = memory();
  const std::lock_guard<std::mutex> lock(state().mutex);
  if (n_pages > (Memory::kBytes - all.n_used) / Memory::kPage) return kOutOfMemory;
  char* const content = all.content + all.n_used;
  *pointer = reinterpret_cast<DevicePointer>(managed ? content : all.address + all.n_used);
  all.n_used += n_pages * Memory::kPage;
  state().regions[*pointer] = {content, n_bytes, managed, 0};
  return kSuccess;
}

// Allows access to device memory at its own addresses while a kernel runs.
class KernelsMayTouch {
 public:
  KernelsMayTouch() { change(1); }
  ~KernelsMayTouch() { change(-1); }

 private:
  static void change(int by) {
    static int n_running = 0;
    State& all = state();
    const std::lock_guard<std::mutex> lock(all.mutex);
    n_running += by;
    if (by < 0 && n_running > 0) return;
    ::mprotect(memory().address, memory().n_used, n_running > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
};

// The next order of threads and blocks.
drun::runtime::gpu::Order next_order() {
  static std::atomic<unsigned> n{0};
  return static_cast<drun::runtime::gpu::Order>(n++ % 3);
}

constexpr int kDevices = 3;
int primary_contexts[kDevices];
std::atomic<bool> is_capturing{false};  // every stream

std::atomic<int> n_asked{0};  // calls of the functions that collectives use

Result attribute_of(void* value, int attribute, DevicePointer pointer) {
  Region region{};
  if (inside(pointer, 1, &region) == nullptr) return kInvalidValue;
  switch (attribute) {
    case 1:
      *static_cast<void**>(value) = nullptr;  // like memory of a pool
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
    case 10:
      *static_cast<int*>(value) = region.legacy ? 1 : 0;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

}  // namespace

extern "C" {

Result cuGetErrorName(Result error, const char** name) {
  static const std::map<Result, const char*> names = {{kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                                      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
                                                      {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"}};
  const auto found = names.find(error);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : kSuccess;
}

Result cuPointerGetAttribute(void* value, int attribute, DevicePointer pointer) {
  ++n_asked;
  return attribute_of(value, attribute, pointer);
}
// Values of memory that the driver does not know: no type, no device.
Result cuPointerGetAttributes(unsigned n, const int* attributes, void** values, DevicePointer pointer) {
  ++n_asked;
  for (unsigned i = 0; i < n; ++i) {
    if (attribute_of(values[i], attributes[i], pointer) == kSuccess) continue;
    *static_cast<int*>(values[i]) = attributes[i] == 9 ? -2 : 0;
  }
  return kSuccess;
}

Result cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < kDevices ? kSuccess : kInvalidValue;
}
Result cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &primary_contexts[device];
  return kSuccess;
}
Result cuCtxPushCurrent_v2(void* context) {
  ++n_asked;
  contexts.push_back(context);
  return kSuccess;
}
Result cuCtxGetCurrent(void** context) {
  ++n_asked;
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}
Result cuCtxPopCurrent_v2(void** context) {
  ++n_asked;
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
Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, std::size_t n_bytes, void* stream) {
  if (contexts.empty()) return kInvalidContext;
  char* const target = inside(to, n_bytes);
  const char* const source = inside(from, n_bytes);
  if (target == nullptr || source == nullptr) return kInvalidValue;
  stream_of(stream).add([=] { std::memmove(target, source, n_bytes); });
  return kSuccess;
}
Result cuMemsetD8Async(DevicePointer to, unsigned char value, std::size_t n_bytes, void* stream) {
  if (contexts.empty()) return kInvalidContext;
  char* const target = inside(to, n_bytes);
  if (target == nullptr) return kInvalidValue;
  stream_of(stream).add([=] { std::memset(target, value, n_bytes); });
  return kSuccess;
}
Result cuCtxGetDevice(int* device) {
  *device = 0;
  return contexts.empty() ? kInvalidContext : kSuccess;
}
Result cuDeviceGetAttribute(int* value, int attribute, int) {
  // A small GPU: blocks have several parts to do. Compute capability 9.1.
  *value = attribute == 75 ? (told("pascal") ? 6 : 9) : 1;
  return attribute == 16 || attribute == 75 || attribute == 76 ? kSuccess : kInvalidValue;
}
Result cuModuleLoadData(void** module, const void* image) {
  if (contexts.empty()) return kInvalidContext;
  if (told("no-kernels")) return 209;
  *module = const_cast<void*>(image);
  return image != nullptr ? kSuccess : kInvalidValue;
}
Result cuModuleGetFunction(void** function, void*, const char* name) {
  *function = const_cast<drun::runtime::gpu::EmulatedKernel*>(drun::runtime::gpu::find_kernel(name));
  return *function != nullptr ? kSuccess : 500;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n_blocks, void*, int, std::size_t) {
  *n_blocks = 3;
  return kSuccess;
}
Result cuLaunchKernel(void* function, unsigned n_blocks, unsigned, unsigned, unsigned n_threads, unsigned, unsigned,
                      unsigned, void* stream, void** arguments, void**) {
  if (contexts.empty()) return kInvalidContext;
  while (told("launch-stuck")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (n_blocks == 0 || n_threads != drun::runtime::gpu::kThreads) return kInvalidValue;
  const auto* const kernel = static_cast<const drun::runtime::gpu::EmulatedKernel*>(function);
  const auto* const bytes = static_cast<const char*>(arguments[0]);
  // Copies the arguments at their full size, aligned.
  std::vector<std::uint64_t> kept((kernel->n_argument_bytes + 7) / 8);
  std::memcpy(kept.data(), bytes, kernel->n_argument_bytes);
  stream_of(stream).add([=] {
    const KernelsMayTouch touch;
    kernel->run(kept.data(), n_blocks, next_order());
  });
  return kSuccess;
}
Result cuStreamQuery(void* stream) {
  ++n_asked;
  if (contexts.empty()) return kInvalidContext;
  return stream_of(stream).is_done() ? kSuccess : kNotReady;
}

Result cuDeviceGetUuid(void* uuid, int device) {
  std::memset(uuid, 0, 16);
  // Ranks of tests are threads: each has its own GPU, unless they share one.
  static std::atomic<unsigned char> next{1};
  // Ranks that are processes have the GPUs that they see.
  const char* const visible = told("visible") ? std::getenv("CUDA_VISIBLE_DEVICES") : nullptr;
  const auto seen = static_cast<unsigned char>(visible == nullptr ? 0 : std::atoi(visible) + device + 100);
  static_cast<unsigned char*>(uuid)[15] = visible != nullptr ? seen : told("one-gpu") ? 1 : next++;
  return device < kDevices ? kSuccess : kInvalidValue;
}
Result cuDeviceGetPCIBusId(char* text, int n_bytes, int device) {
  static std::atomic<unsigned> next{1};
  std::snprintf(text, static_cast<std::size_t>(n_bytes), "0000:%02x:00.0", told("one-gpu") ? 1u : next++ % 256);
  return device < kDevices ? kSuccess : kInvalidValue;
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
Result cuStreamIsCapturing(void* stream, int* status) {
  ++n_asked;
  *status = is_capturing || stream_of(stream).captures() != nullptr ? 1 : 0;
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
  ++n_asked;
  if (contexts.empty()) return kInvalidContext;
  auto* const made = new EventOfTests;
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().events.insert(made);
  ++state().n_events;
  *event = made;
  return kSuccess;
}
Result cuEventDestroy_v2(void*) {  // work in streams may still use it
  const std::lock_guard<std::mutex> lock(state().mutex);
  --state().n_events;
  return kSuccess;
}
Result cuEventRecord(void* event, void* stream) {
  ++n_asked;
  while (told("record-stuck")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  auto* const one = static_cast<EventOfTests*>(event);
  StreamOfTests& its = stream_of(stream);
  const auto graph = its.captures();
  const int number = one->record(graph);
  if (graph == nullptr) its.add([=] { one->reach(number); });
  return kSuccess;
}
Result cuEventQuery(void* event) {
  ++n_asked;
  return static_cast<EventOfTests*>(event)->is_reached() ? kSuccess : kNotReady;
}
Result cuStreamWaitEvent(void* stream, void* event, unsigned) {
  ++n_asked;
  auto* const one = static_cast<EventOfTests*>(event);
  const int number = one->recorded();
  if (auto graph = one->graph()) {
    stream_of(stream).capture(std::move(graph));  // the stream joins the capture
  } else {
    stream_of(stream).add([=] { one->wait(number); });
  }
  return kSuccess;
}

// Functions that programs call, for tests.
Result cuInit(unsigned) {
  constexpr Result kNoDevice = 100;
  const char* const told = std::getenv("DRUN_FAKE_CUDA");
  return told != nullptr && std::strstr(told, "no-gpu") != nullptr ? kNoDevice : kSuccess;
}
Result cuDriverGetVersion(int* version) {
  const char* const told = std::getenv("DRUN_FAKE_CUDA");
  *version = told != nullptr && std::strstr(told, "cuda-12") != nullptr ? 12080 : 13000;
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
Result cuMemGetInfo_v2(std::size_t* n_free, std::size_t* n_all) {
  *n_all = std::size_t{1} << 27;
  *n_free = *n_all / 2;
  return kSuccess;
}
Result cuCtxSetCurrent(void* context) {
  contexts.assign(1, context);
  return kSuccess;
}
Result cuMemFree_v2(DevicePointer) { return kSuccess; }  // work in streams may still use it
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
Result cuStreamBeginCapture_v2(void* stream, int) {
  stream_of(stream).capture(std::make_shared<Graph>());
  return kSuccess;
}
// All streams that have joined the capture leave it.
Result cuStreamEndCapture(void* stream, void** graph) {
  const auto made = stream_of(stream).captures();
  if (made == nullptr) return kInvalidValue;
  const std::lock_guard<std::mutex> lock(state().mutex);
  for (const auto& [name, one] : state().streams) {
    if (one->captures() == made) one->capture(nullptr);
  }
  *graph = new Graph(*made);
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(void** runnable, void* graph, unsigned long long) {
  *runnable = new Graph(*static_cast<Graph*>(graph));
  return kSuccess;
}
Result cuGraphLaunch(void* runnable, void* stream) {
  stream_of(stream).add([graph = *static_cast<Graph*>(runnable)] {
    for (const auto& work : graph) work();
  });
  return kSuccess;
}
Result cuGraphExecDestroy(void* runnable) {
  delete static_cast<Graph*>(runnable);
  return kSuccess;
}
Result cuGraphDestroy(void* graph) { return cuGraphExecDestroy(graph); }

// Functions for tests only.
// Enqueues work(argument), which runs once, or more often in a graph; then drop(argument).
void fake_enqueue(void* stream, void (*work)(void*), void* argument, void (*drop)(void*)) {
  stream_of(stream).add([work, kept = std::shared_ptr<void>(argument, drop)] { work(kept.get()); });
}
Result cuMemAlloc_v2(DevicePointer* pointer, std::size_t n_bytes) { return allocate(pointer, n_bytes, false); }
Result cuMemAllocManaged(DevicePointer* pointer, std::size_t n_bytes, unsigned) {
  return allocate(pointer, n_bytes, true);
}
// The address at which the CPU can access the bytes of device memory.
void* fake_inside(void* pointer) { return inside(reinterpret_cast<DevicePointer>(pointer), 1); }
// Enqueues work that takes a while and then writes.
void fake_write_later(void* stream, void* pointer, const void* bytes, std::size_t n_bytes) {
  char* const target = inside(reinterpret_cast<DevicePointer>(pointer), n_bytes);
  const char* const begin = static_cast<const char*>(bytes);
  stream_of(stream).add([target, kept = std::vector<char>(begin, begin + n_bytes)] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::copy(kept.begin(), kept.end(), target);
  });
}
int fake_pinned_blocks() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  return state().n_pinned;
}
// Delays the stream's later work by `ms`.
void fake_block(void* stream, int ms) {
  stream_of(stream).add([=] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); });
}
void fake_put_on(void* pointer, int ordinal) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().regions.at(reinterpret_cast<DevicePointer>(pointer)).ordinal = ordinal;
}
void fake_is_mapped(void* pointer) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().regions.at(reinterpret_cast<DevicePointer>(pointer)).legacy = false;
}
void fake_capture(int on) { is_capturing = on != 0; }
int fake_is_done(void* stream) { return stream_of(stream).is_done() ? 1 : 0; }
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
int fake_asked() { return n_asked; }
int fake_contexts_here() { return static_cast<int>(contexts.size()); }
}
