// Measures libdrun's overhead over NCCL: allreduces of f32 on the device, by drun_allreduce and by ncclAllReduce
// itself, in turns in the same run. Each round is `calls` calls, one after the other on a stream, and a wait for the
// stream; prints the median of the rounds. Two columns of times per call: of the whole round, and of the calls alone,
// which enqueue.
//   drun -np N ... drun_gpu_overhead [--least BYTES] [--most BYTES] [--rounds N] [--calls N]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "drun/drun.h"
#include "runtime/src/gpu/nccl_library.h"
#include "tests/gpu/card.h"

namespace {

namespace gpu = drun::runtime::gpu;  // only its declarations
using drun::gpu_tests::Buffer;
using drun::gpu_tests::Card;
using drun::gpu_tests::give_up;
using drun::gpu_tests::Handle;
using Clock = std::chrono::steady_clock;

void done(int status, const char* what) {
  if (status != DRUN_OK) give_up(std::string(what) + ": " + drun_last_error());
}

constexpr int kNcclFloat = 7;

// NCCL as a program would use it, with its own communicator.
class Plain {
 public:
  Plain() {
    int version = 0;
    const char* path = nullptr;
    done(drun_nccl_version(&version, &path), "NCCL");
    void* const library = ::dlopen(path, RTLD_NOW);
    if (library == nullptr) give_up(::dlerror());
    find(library, "ncclGetUniqueId", nccl_.GetUniqueId);
    find(library, "ncclCommInitRankConfig", nccl_.CommInitRankConfig);
    find(library, "ncclCommGetAsyncError", nccl_.CommGetAsyncError);
    find(library, "ncclAllReduce", nccl_.AllReduce);
    gpu::NcclId id{};
    if (drun_rank() == 0) {
      check(nccl_.GetUniqueId(&id), "ncclGetUniqueId");
      done(drun_kv_set("overhead", id.bytes, sizeof id.bytes), "kv");
    }
    std::size_t n_bytes = sizeof id.bytes;
    done(drun_kv_get("overhead", id.bytes, &n_bytes, 60'000), "kv");
    gpu::NcclConfig config;
    config.blocking = 1;
    check(nccl_.CommInitRankConfig(&comm_, drun_size(), id, drun_rank(), &config), "ncclCommInitRankConfig");
    settle();
  }
  void allreduce(const Buffer<float>& data, std::size_t count, Handle stream) {
    const auto begun = nccl_.AllReduce(data.get(), data.get(), count, kNcclFloat, gpu::kNcclMax, comm_,
                                       static_cast<gpu::Stream>(stream));
    check(begun, "ncclAllReduce");
    if (begun == gpu::kNcclInProgress) settle();
  }
  // Waits for what NCCL does in the background, with NCCL_COMM_BLOCKING=0.
  void settle() {
    gpu::NcclResult state = gpu::kNcclInProgress;
    while (state == gpu::kNcclInProgress) check(nccl_.CommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
    check(state, "NCCL");
  }

 private:
  template <typename F>
  static void find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(::dlsym(library, name));
    if (function == nullptr) give_up(std::string("NCCL has no ") + name);
  }
  static void check(gpu::NcclResult result, const char* what) {
    if (result != gpu::kNcclSuccess && result != gpu::kNcclInProgress)
      give_up(std::string(what) + ": error " + std::to_string(result) + " of NCCL");
  }

  gpu::Nccl nccl_{};
  gpu::NcclHandle comm_ = nullptr;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Times {
  std::vector<double> whole, enqueued;  // microseconds per call, by round
};

template <typename Call>
void round_of(Times& times, int calls, const Card& card, Handle stream, const Call& call) {
  done(drun_barrier(DRUN_COMM_WORLD, nullptr), "barrier");
  const auto began = Clock::now();
  for (int i = 0; i < calls; ++i) call();
  const auto enqueued = Clock::now();
  card.wait(stream);
  const auto ended = Clock::now();
  const auto per_call = [&](Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count() / calls;
  };
  times.whole.push_back(per_call(ended - began));
  times.enqueued.push_back(per_call(enqueued - began));
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t least = 8, most = 128u << 20;
  int rounds = 20, max_calls = 50;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const long value = std::atol(argv[i + 1]);
    if (option == "--least") least = static_cast<std::size_t>(value);
    if (option == "--most") most = static_cast<std::size_t>(value);
    if (option == "--rounds") rounds = static_cast<int>(value);
    if (option == "--calls") max_calls = static_cast<int>(value);
  }
  done(drun_init(nullptr), "drun_init");
  const Card& card = Card::open(drun_local_rank());
  const Handle ours = card.new_stream(), theirs = card.new_stream();
  const Buffer<float> data(card, most / sizeof(float)), other(card, most / sizeof(float));
  Card::check(card.cuMemsetD32Async(data.address(), 0, most / sizeof(float), ours), "memset");
  Card::check(card.cuMemsetD32Async(other.address(), 0, most / sizeof(float), theirs), "memset");
  card.wait(ours);
  card.wait(theirs);
  Plain plain;
  drun_call_options options = DRUN_CALL_OPTIONS;
  options.stream = ours;
  if (drun_rank() == 0) {
    std::printf("| bytes | drun us | NCCL us | more us | more %% | enqueue drun us | enqueue NCCL us |\n");
    std::printf("|---:|---:|---:|---:|---:|---:|---:|\n");
  }
  for (std::size_t n_bytes = least; n_bytes <= most; n_bytes *= 4) {
    const std::size_t count = n_bytes / sizeof(float);
    const int calls = n_bytes > (16u << 20) ? std::min(max_calls, 10) : max_calls;
    const auto by_drun = [&] {
      done(drun_allreduce(data.get(), data.get(), count, DRUN_FLOAT32, DRUN_MAX, DRUN_COMM_WORLD, &options), "drun");
    };
    const auto by_nccl = [&] { plain.allreduce(other, count, theirs); };
    by_drun();
    by_nccl();
    plain.settle();
    card.wait(ours);
    card.wait(theirs);
    Times drun_times, nccl_times;
    for (int round = 0; round < rounds; ++round) {  // each goes first equally often
      if (round % 2 == 0) round_of(drun_times, calls, card, ours, by_drun);
      round_of(nccl_times, calls, card, theirs, by_nccl);
      if (round % 2 == 1) round_of(drun_times, calls, card, ours, by_drun);
    }
    const double a = median(drun_times.whole), b = median(nccl_times.whole);
    if (drun_rank() == 0) {
      std::printf("| %zu | %.2f | %.2f | %.2f | %.1f | %.2f | %.2f |\n", n_bytes, a, b, a - b, 100 * (a - b) / b,
                  median(drun_times.enqueued), median(nccl_times.enqueued));
      std::fflush(stdout);
    }
  }
  done(drun_finalize(), "drun_finalize");
  return 0;
}
