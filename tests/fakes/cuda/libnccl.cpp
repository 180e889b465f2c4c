// Stands in for NCCL, libnccl.so.2, on machines without GPUs: collectives between communicators of one process, or of
// several processes of one host (meeting.h), on the streams of the driver stand-in. A collective ends when all members
// have joined it. Like the real NCCL from 2.23 on:
// - Functions of a blocking communicator return when their work is done; the first collective connects, and returns
//   when all members have called it.
// - Of one that does not block (NCCL_COMM_BLOCKING=0 beats the configuration), each group costs a thread, unless there
//   is one rank: "in progress" is what it returns, for a tenth of a millisecond, 3 ms for the first.
// Not modelled: connections of single sends and receives (the real NCCL waits for the peer), streams whose queue is
// full, errors that only one rank sees. $DRUN_FAKE_NCCL, words: "init-stuck" (no communicator ever gets ready),
// "init-fails", "async-error" (after the first call), "split-stuck" (until the parent is aborted), "split-fails" (on
// the first rank), "second-part-fails" (the second split, on the second rank, asynchronously), "no-memory" (from
// ncclMemAlloc), "late-error" (after a success was reported), "call-fails", "abort-hangs", "wrong-sums" (in the last
// byte), "no-register" (memory can't be registered, on the last rank), "deregister-hangs", "version=22703". Like the
// real NCCL between ranks of a host, a communicator is destroyed only after all members have ended or aborted theirs.
#include <dlfcn.h>

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
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drun/training/half.hpp"
#include "tests/fakes/cuda/meeting.h"

// Uses the static TLS block, which every thread has from the start: ThreadSanitizer reports a race when threads free
// the TLS of a library that was loaded later.
#define IN_THREAD thread_local __attribute__((tls_model("initial-exec")))

namespace {

using drun::fakes::Meeting;
using Result = int;
using Clock = std::chrono::steady_clock;
constexpr Result kSuccess = 0, kSystemError = 2, kInvalidArgument = 4, kRemoteError = 6, kInProgress = 7;
enum Op { kSum, kProd, kMax, kMin, kAvg, kFirstMade };

bool told(const char* word) {
  const char* words = std::getenv("DRUN_FAKE_NCCL");
  return words != nullptr && std::strstr(words, word) != nullptr;
}

// A function of the driver.
template <typename F>
F of_driver(const char* name) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<F>(driver != nullptr ? ::dlsym(driver, name) : nullptr);
}
char* inside(const void* pointer) {
  static const auto function = of_driver<void* (*)(void*)>("fake_inside");
  return static_cast<char*>(function(const_cast<void*>(pointer)));
}
void enqueue(void* stream, std::function<void()> work) {
  using Work = std::function<void()>;
  using Function = void (*)(void*);
  static const auto function = of_driver<void (*)(void*, Function, void*, Function)>("fake_enqueue");
  function(
      stream, [](void* argument) { (*static_cast<Work*>(argument))(); }, new Work(std::move(work)),
      [](void* argument) { delete static_cast<Work*>(argument); });
}

std::size_t size_of(int type) {
  static const std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

struct Reduction {
  int op = kSum;
  double scale = 1;
  bool is_scaled = false;
};

struct Comm {
  ~Comm() { end_splitter(); }
  void end_splitter() {
    if (splitter.joinable()) splitter.join();
  }
  std::string name;
  std::shared_ptr<Meeting> meeting;
  int rank = 0, size = 0;
  int n_calls = 0;
  int n_collectives = 0;  // that streams have reached
  bool blocking = false;
  std::atomic<bool> aborted{false};
  std::atomic<Result> error{kSuccess};
  std::atomic<Clock::time_point> ready{};
  bool has_begun_well = false;  // and this was reported
  int n_splits = 0;
  std::shared_ptr<Meeting> split;  // in which all members exchange their colors and keys
  std::thread splitter;
  std::atomic<bool> splitting{false};
  std::vector<Reduction> made;
  std::map<const char*, std::size_t> registered;  // memory

  bool is_registered(const char* data) const {
    auto it = registered.upper_bound(data);
    if (it == registered.begin()) return false;
    --it;
    return data < it->first + it->second;
  }
};

std::mutex registry_mutex;
std::atomic<int> n_split{0}, n_ids{0}, n_aborted{0};
std::map<Comm*, std::shared_ptr<Comm>>& comms() {
  static auto* const all = new std::map<Comm*, std::shared_ptr<Comm>>;
  return *all;
}
std::shared_ptr<Comm> share(void* comm) {
  const std::lock_guard<std::mutex> lock(registry_mutex);
  return comms().at(static_cast<Comm*>(comm));
}

// The contributions of all members, by rank; empty if the communicator was aborted. In the order in which streams
// reach the communicator's calls: those of a graph come again.
std::vector<std::string> meet(Comm& comm, std::string own, bool is_registered) {
  own += is_registered ? 'r' : ' ';
  auto all =
      comm.meeting->exchange(comm.n_collectives++, comm.rank, std::move(own), [&] { return comm.aborted.load(); });
  int n_registered = 0;
  for (std::string& one : all) {
    n_registered += one.back() == 'r';
    one.pop_back();
  }
  // Undefined in the real NCCL.
  if (n_registered % comm.size != 0) comm.error = kInvalidArgument;
  return all;
}

double value(const char* data, std::size_t i, int type) {
  switch (type) {
    case 2: {
      std::int32_t v;
      std::memcpy(&v, data + 4 * i, 4);
      return v;
    }
    case 7: {
      float v;
      std::memcpy(&v, data + 4 * i, 4);
      return v;
    }
    case 6:
    case 9: {
      std::uint16_t v;
      std::memcpy(&v, data + 2 * i, 2);
      return type == 6 ? drun::training::Float16::widen(v) : drun::training::Bfloat16::widen(v);
    }
    case 8: {
      double v;
      std::memcpy(&v, data + 8 * i, 8);
      return v;
    }
    default:
      std::abort();  // tests reduce no other types
  }
}
void put(double v, char* data, std::size_t i, int type) {
  const auto single = static_cast<float>(v);
  const auto whole = static_cast<std::int32_t>(v);
  if (type == 2) std::memcpy(data + 4 * i, &whole, 4);
  if (type == 7) std::memcpy(data + 4 * i, &single, 4);
  if (type == 8) std::memcpy(data + 8 * i, &v, 8);
  if (type != 6 && type != 9) return;
  const float rounded = drun::training::for_rounding(v);
  const std::uint16_t half =
      type == 6 ? drun::training::Float16::narrow(rounded) : drun::training::Bfloat16::narrow(rounded);
  std::memcpy(data + 2 * i, &half, 2);
}

// NCCL before 2.29.7 writes so many of `count` elements that it scales for one rank: blocks of equal length may leave
// some out.
std::size_t n_written(std::size_t count, std::size_t size) {
  const std::size_t pack = 16 / size, blocks = std::min<std::size_t>(32, (count * size + 16383) / 16384);
  return blocks == 0 ? 0 : std::min(count, blocks * ((count / blocks + pack - 1) / pack * pack));
}

std::string reduced(const std::vector<std::string>& from, std::size_t first, std::size_t count, int type,
                    Reduction how) {
  std::string out(count * size_of(type), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    double sum = how.scale * value(from[0].data(), first + i, type);
    for (std::size_t r = 1; r < from.size(); ++r) {
      const double v = how.scale * value(from[r].data(), first + i, type);
      sum = how.op == kProd ? sum * v : how.op == kMax ? std::max(sum, v) : how.op == kMin ? std::min(sum, v) : sum + v;
    }
    if (how.op == kAvg) sum /= static_cast<double>(from.size());
    put(sum, out.data(), i, type);
  }
  if (from.size() == 1 && how.is_scaled) out.resize(n_written(count, size_of(type)) * size_of(type));
  if (!out.empty() && told("wrong-sums")) out.back() = static_cast<char>(out.back() ^ 1);
  return out;
}

void* add_comm(const std::string& name, int rank, int size, bool blocking) {
  auto one = std::make_shared<Comm>();
  one->name = name;
  one->meeting = drun::fakes::meeting_of(name, size);
  one->rank = rank;
  one->size = size;
  const char* const of_user = std::getenv("NCCL_COMM_BLOCKING");
  one->blocking = of_user != nullptr ? std::atoi(of_user) == 1 : blocking;
  one->meeting->come(rank);
  const std::lock_guard<std::mutex> lock(registry_mutex);
  comms()[one.get()] = one;
  return one.get();
}

// All members exchange color and key; those with our color form the part, in the order of keys.
Result split_now(Comm& comm, int color, int key, void** part) {
  const std::string own = std::to_string(color) + " " + std::to_string(key);
  const auto all = comm.split->exchange(0, comm.rank, own, [&] { return comm.aborted.load(); });
  if (all.empty()) return kRemoteError;
  while (told("split-stuck") && !comm.aborted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (told("second-part-fails") && comm.n_splits == 2 && comm.rank == 1) return kSystemError;
  std::vector<std::pair<int, int>> members;  // by key
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto space = all[rank].find(' ');
    if (std::stoi(all[rank]) == color) members.emplace_back(std::stoi(all[rank].substr(space)), static_cast<int>(rank));
  }
  ++n_split;
  const char* const debug = std::getenv("NCCL_DEBUG");
  if (debug != nullptr && std::strcmp(debug, "INFO") == 0) std::printf("NCCL INFO ncclCommSplit color %d\n", color);
  std::sort(members.begin(), members.end());
  const auto place = std::find(members.begin(), members.end(), std::make_pair(key, comm.rank));
  *part = add_comm(comm.name + " split " + std::to_string(comm.n_splits) + " color " + std::to_string(color),
                   static_cast<int>(place - members.begin()), static_cast<int>(members.size()), comm.blocking);
  return kSuccess;
}

Reduction reduction_of(const Comm& comm, int op) {
  return op < kFirstMade ? Reduction{op, 1, op == kAvg} : comm.made[static_cast<std::size_t>(op - kFirstMade)];
}

// The calls of a group wait for its end. Sends go first, so that no receive waits for a later send.
struct Group {
  int depth = 0;
  std::vector<std::function<void()>> sends, others;
  std::vector<std::shared_ptr<Comm>> first_calls;  // of blocking communicators
  std::vector<std::shared_ptr<Comm>> in_background;
};
IN_THREAD Group group;
std::atomic<int> n_groups{0}, n_threads{0}, n_sends{0};

void wait_for_connections(Comm& comm) {
  constexpr int kBeforeAllCalls = -1;
  (void)comm.meeting->exchange(kBeforeAllCalls, comm.rank, "", [&] { return comm.aborted.load(); });
}

// Ends a group, or a call that is in none.
Result launch() {
  Result result = kSuccess;
  for (const auto& comm : std::exchange(group.first_calls, {})) wait_for_connections(*comm);
  for (const auto& comm : std::exchange(group.in_background, {})) {
    if (comm->size == 1) continue;
    std::thread([] {}).join();
    ++n_threads;
    comm->ready =
        Clock::now() + (comm->n_calls == 1 ? std::chrono::microseconds(3000) : std::chrono::microseconds(100));
    result = kInProgress;
  }
  return result;
}

Result begin_call(const std::shared_ptr<Comm>& comm, bool is_of_all = true) {
  if (told("call-fails")) return kInvalidArgument;
  // Like the real NCCL with non-blocking communicators.
  if (group.depth == 0 && comm->n_calls > 0 && Clock::now() < comm->ready.load()) return kInvalidArgument;
  if (told("async-error")) comm->error = kRemoteError;
  const bool is_first = comm->n_calls++ == 0;
  auto& behind = group.in_background;
  if (!comm->blocking && (behind.empty() || behind.back() != comm)) behind.push_back(comm);
  if (comm->blocking && is_first && is_of_all && comm->size > 1) group.first_calls.push_back(comm);
  return group.depth == 0 ? launch() : kSuccess;
}

void add(std::function<void()> enqueue_it, bool is_send = false) {
  if (group.depth == 0) return enqueue_it();
  (is_send ? group.sends : group.others).push_back(std::move(enqueue_it));
}

std::atomic<int> n_in_registered{0}, n_registered{0}, n_left_registered{0};

// `result` computes our output from what all members have sent, `n_sent` bytes each; empty: no output.
Result collective(void* handle, void* stream, const void* send, std::size_t n_sent, void* recv,
                  std::function<std::string(const std::vector<std::string>&)> result) {
  const auto comm = share(handle);
  const Result begun = begin_call(comm);
  if (begun != kSuccess && begun != kInProgress) return begun;
  // The real NCCL launches from its own threads, in which this is a different stream.
  if (stream == reinterpret_cast<void*>(2)) return kInvalidArgument;
  const char* const from = n_sent > 0 ? inside(send) : nullptr;
  const bool is_registered = comm->is_registered(static_cast<const char*>(send));
  if (is_registered) ++n_in_registered;
  add([=] {
    enqueue(stream, [=] {
      const auto all = meet(*comm, std::string(from, n_sent), is_registered);
      if (all.empty()) return;
      const std::string bytes = result(all);
      if (!bytes.empty()) std::memcpy(inside(recv), bytes.data(), bytes.size());
    });
  });
  return begun;
}

// Sizes of the blocks from ncclMemAlloc.
std::mutex blocks_mutex;
std::map<void*, std::size_t>& blocks() {
  static auto* const all = new std::map<void*, std::size_t>;
  return *all;
}

}  // namespace

extern "C" {

struct Id {
  char bytes[128];
};
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

extern const char fake_nccl_banner[] = "NCCL version 2.28.9+cuda13.0";

Result ncclGetVersion(int* version) {
  const char* const words = std::getenv("DRUN_FAKE_NCCL");
  const char* const given = words != nullptr ? std::strstr(words, "version=") : nullptr;
  *version = given != nullptr ? std::atoi(given + std::strlen("version=")) : 22809;
  return kSuccess;
}
const char* ncclGetErrorString(Result result) {
  return result == kRemoteError ? "remote process exited or there was a network error" : "invalid usage";
}
const char* ncclGetLastError(void*) { return "the last word of the fake"; }
Result ncclGetUniqueId(Id* id) {
  std::random_device random;
  for (char& byte : id->bytes) byte = static_cast<char>(random());
  ++n_ids;
  return kSuccess;
}
int fake_nccl_ids() { return n_ids; }  // number of ids made

Result ncclCommInitRankConfig(void** comm, int n_ranks, Id id, int rank, const Config* config) {
  if (config->magic != 0xcafebeef) return kInvalidArgument;
  if (told("init-fails")) return kSystemError;
  *comm = add_comm(std::string(id.bytes, sizeof id.bytes), rank, n_ranks, config->blocking == 1);
  if (!share(*comm)->blocking) return kInProgress;
  share(*comm)->meeting->wait_for_all();
  while (told("init-stuck")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return kSuccess;
}
// A thread writes `part`; a parent that does not block is in progress until then. Refuses to split without a
// color: in the real NCCL that ends in a null pointer access if the split fails.
Result ncclCommSplit(void* handle, int color, int key, void** part, const Config* config) {
  const auto comm = share(handle);
  if (config != nullptr || color < 0 || comm->n_calls > 0 || comm->splitting) return kInvalidArgument;
  *part = nullptr;
  if (told("split-fails") && comm->rank == 0) return kSystemError;
  comm->end_splitter();
  comm->splitting = true;
  comm->split = drun::fakes::meeting_of(comm->name + " split " + std::to_string(++comm->n_splits), comm->size);
  comm->splitter = std::thread([it = comm.get(), color, key, part] {
    const Result result = split_now(*it, color, key, part);
    if (result != kSuccess) it->error = result;
    it->splitting = false;
  });
  if (!comm->blocking) return kInProgress;
  comm->end_splitter();
  return comm->error;
}
int fake_nccl_splits() { return n_split; }  // number of parts made by splits
Result ncclCommGetAsyncError(void* handle, Result* error) {
  const auto comm = share(handle);
  const bool splitting = comm->splitting;
  // Joins the thread before the end is reported: a process may exit while a thread still destroys its communicators.
  if (!splitting) comm->end_splitter();
  const bool in_progress =
      told("init-stuck") || splitting || comm->meeting->n_come() < comm->size || Clock::now() < comm->ready.load();
  if (told("late-error") && comm->has_begun_well) comm->error = kRemoteError;
  if (!in_progress && comm->n_calls > 0) comm->has_begun_well = true;
  *error = in_progress ? kInProgress : comm->error.load();
  return kSuccess;
}
Result ncclCommFinalize(void* handle) {
  const auto comm = share(handle);
  comm->meeting->end(comm->rank);
  return kSuccess;
}
Result ncclCommDestroy(void* handle) {
  const auto comm = share(handle);
  comm->meeting->end(comm->rank);
  if (!comm->aborted || comm->meeting->n_come() == comm->size) comm->meeting->wait_for_ends();
  const std::lock_guard<std::mutex> lock(registry_mutex);
  if (!comm->aborted) n_left_registered += static_cast<int>(comm->registered.size());
  n_registered -= static_cast<int>(comm->registered.size());
  comm->registered.clear();
  comms().erase(comm.get());
  return kSuccess;
}
Result ncclCommAbort(void* handle) {
  while (told("abort-hangs")) std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto comm = share(handle);
  ++n_aborted;
  comm->aborted = true;
  comm->meeting->wake();
  if (comm->split) comm->split->wake();
  comm->end_splitter();
  return ncclCommDestroy(handle);
}

int fake_nccl_aborted() { return n_aborted; }

int fake_groups() { return n_groups; }  // number of ended groups of more than one call

Result ncclGroupStart() {
  ++group.depth;
  return kSuccess;
}
Result ncclGroupEnd() {
  if (--group.depth > 0) return kSuccess;
  if (group.sends.size() + group.others.size() > 1) ++n_groups;
  const Result result = launch();
  for (auto* works : {&group.sends, &group.others}) {
    for (const auto& work : *works) work();
    works->clear();
  }
  return result;
}
int fake_nccl_threads() { return n_threads; }  // number of threads that groups have cost
int fake_nccl_sends() { return n_sends; }

Result ncclAllReduce(const void* send, void* recv, std::size_t count, int type, int op, void* comm, void* stream) {
  const Reduction how = reduction_of(*share(comm), op);
  return collective(comm, stream, send, count * size_of(type), recv,
                    [=](const std::vector<std::string>& all) { return reduced(all, 0, count, type, how); });
}
Result ncclReduce(const void* send, void* recv, std::size_t count, int type, int op, int root, void* comm,
                  void* stream) {
  const Reduction how = reduction_of(*share(comm), op);
  const bool is_root = share(comm)->rank == root;
  return collective(comm, stream, send, count * size_of(type), recv, [=](const std::vector<std::string>& all) {
    return is_root ? reduced(all, 0, count, type, how) : std::string();
  });
}
Result ncclReduceScatter(const void* send, void* recv, std::size_t count, int type, int op, void* comm, void* stream) {
  const Reduction how = reduction_of(*share(comm), op);
  const auto rank = static_cast<std::size_t>(share(comm)->rank), size = static_cast<std::size_t>(share(comm)->size);
  return collective(comm, stream, send, size * count * size_of(type), recv,
                    [=](const std::vector<std::string>& all) { return reduced(all, rank * count, count, type, how); });
}
Result ncclBroadcast(const void* send, void* recv, std::size_t count, int type, int root, void* comm, void* stream) {
  const bool is_root = share(comm)->rank == root;
  return collective(comm, stream, send, is_root ? count * size_of(type) : 0, recv,
                    [=](const std::vector<std::string>& all) { return all[static_cast<std::size_t>(root)]; });
}
Result ncclAllGather(const void* send, void* recv, std::size_t count, int type, void* comm, void* stream) {
  return collective(comm, stream, send, count * size_of(type), recv, [=](const std::vector<std::string>& all) {
    std::string out;
    for (const std::string& one : all) out += one;
    return out;
  });
}
Result ncclSend(const void* data, std::size_t count, int type, int peer, void* handle, void* stream) {
  const auto comm = share(handle);
  const Result begun = begin_call(comm, false);
  if (begun != kSuccess && begun != kInProgress) return begun;
  ++n_sends;
  const char* const from = inside(data);
  add(
      [=] {
        enqueue(stream, [=] { comm->meeting->post(comm->rank, peer, std::string(from, count * size_of(type))); });
      },
      true);
  return kSuccess;
}
Result ncclRecv(void* data, std::size_t count, int type, int peer, void* handle, void* stream) {
  const auto comm = share(handle);
  const Result begun = begin_call(comm, false);
  if (begun != kSuccess && begun != kInProgress) return begun;
  char* const to = inside(data);
  add([=] {
    enqueue(stream, [=] {
      const auto letter = comm->meeting->receive(peer, comm->rank, [&] { return comm->aborted.load(); });
      if (letter) std::memcpy(to, letter->data(), count * size_of(type));
    });
  });
  return kSuccess;
}
Result ncclRedOpCreatePreMulSum(int* op, void* scalar, int type, int residence, void* handle) {
  const auto comm = share(handle);
  if (residence != 1) return kInvalidArgument;
  comm->made.push_back({kSum, value(static_cast<const char*>(scalar), 0, type), true});
  *op = kFirstMade + static_cast<int>(comm->made.size()) - 1;
  return kSuccess;
}
Result ncclRedOpDestroy(int, void*) { return kSuccess; }

Result ncclMemAlloc(void** memory, std::size_t n_bytes) {
  if (told("no-memory")) return kSystemError;
  const auto allocate = of_driver<int (*)(unsigned long long*, std::size_t)>("cuMemAlloc_v2");
  unsigned long long pointer = 0;
  if (allocate == nullptr || allocate(&pointer, n_bytes) != 0) return kSystemError;
  *memory = reinterpret_cast<void*>(pointer);
  static const auto is_mapped = of_driver<void (*)(void*)>("fake_is_mapped");
  is_mapped(*memory);
  const std::lock_guard<std::mutex> lock(blocks_mutex);
  blocks()[*memory] = n_bytes;
  return kSuccess;
}
// Frees at once, even if streams still use the memory: later reads see garbage.
Result ncclMemFree(void* memory) {
  const std::lock_guard<std::mutex> lock(blocks_mutex);
  const auto found = blocks().find(memory);
  if (found == blocks().end()) return kInvalidArgument;
  {
    const std::lock_guard<std::mutex> comms_lock(registry_mutex);
    for (const auto& [handle, comm] : comms()) {
      if (comm->is_registered(static_cast<const char*>(memory))) return kInvalidArgument;
    }
  }
  std::memset(inside(memory), 0xee, found->second);
  blocks().erase(found);
  return kSuccess;
}
Result ncclCommRegister(void* handle, void* memory, std::size_t n_bytes, void** registered) {
  const auto comm = share(handle);
  if (told("no-register") && comm->rank == comm->size - 1) return kSystemError;
  const std::lock_guard<std::mutex> lock(registry_mutex);
  if (!comm->registered.emplace(static_cast<const char*>(memory), n_bytes).second) return kInvalidArgument;
  ++n_registered;
  *registered = memory;
  return kSuccess;
}
Result ncclCommDeregister(void* handle, void* registered) {
  while (told("deregister-hangs")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto comm = share(handle);
  const std::lock_guard<std::mutex> lock(registry_mutex);
  if (comm->registered.erase(static_cast<const char*>(registered)) == 0) return kInvalidArgument;
  --n_registered;
  return kSuccess;
}
int fake_nccl_registered() { return n_registered; }
int fake_nccl_left_registered() { return n_left_registered; }  // when a communicator was destroyed
int fake_nccl_in_registered() { return n_in_registered; }      // number of calls that sent from registered memory

int fake_nccl_blocks() {
  const std::lock_guard<std::mutex> lock(blocks_mutex);
  return static_cast<int>(blocks().size());
}
}
