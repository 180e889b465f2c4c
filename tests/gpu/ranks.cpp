// A rank of a job on real GPUs: compares collectives with the expected results, tests the order of streams, requests,
// groups, parts, capture; and a rank that is killed. scripts/gpu-check starts it.
//   drun -np N ... drun_gpu_ranks collectives|capture|kill [--most ELEMENTS]
//   drun_gpu_ranks count            prints the number of GPUs that the driver shows
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drun/drun.h"
#include "drun/gpu.h"
#include "tests/gpu/card.h"

namespace {

using drun::gpu_tests::Buffer;
using drun::gpu_tests::Card;
using drun::gpu_tests::give_up;
using drun::gpu_tests::Handle;

int rank, size;
std::size_t most = 1u << 20;  // elements

void done(int status, const std::string& what) {
  if (status != DRUN_OK) give_up("rank " + std::to_string(rank) + ": " + what + ": " + drun_last_error());
}

template <typename T>
drun_dtype dtype_of();
template <>
drun_dtype dtype_of<float>() {
  return DRUN_FLOAT32;
}
template <>
drun_dtype dtype_of<double>() {
  return DRUN_FLOAT64;
}
template <>
drun_dtype dtype_of<std::int32_t>() {
  return DRUN_INT32;
}

template <typename T>
void expect(const std::vector<T>& got, const std::vector<T>& wanted, const std::string& what) {
  if (got.size() != wanted.size()) give_up(what + ": another size");
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == wanted[i]) continue;
    give_up("rank " + std::to_string(rank) + ": " + what + ": element " + std::to_string(i) + " of " +
            std::to_string(got.size()) + " is " + std::to_string(got[i]) + ", not " + std::to_string(wanted[i]));
  }
}

// Small integers: their sums are exact in every type and order.
template <typename T>
T value(int of_rank, std::size_t i) {
  return static_cast<T>((static_cast<std::size_t>(of_rank) * 7 + i) % 13 + 1);
}
template <typename T>
std::vector<T> values(int of_rank, std::size_t count, std::size_t first = 0) {
  std::vector<T> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = value<T>(of_rank, first + i);
  return out;
}
template <typename T>
std::vector<T> reduced(std::size_t count, drun_op op, std::size_t first = 0) {
  auto out = values<T>(0, count, first);
  for (int r = 1; r < size; ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      const T v = value<T>(r, first + i);
      if (op == DRUN_SUM) out[i] += v;
      if (op == DRUN_MAX) out[i] = std::max(out[i], v);
      if (op == DRUN_MIN) out[i] = std::min(out[i], v);
    }
  }
  return out;
}

drun_call_options on(Handle stream, const char* name = nullptr) {
  drun_call_options options = DRUN_CALL_OPTIONS;
  options.stream = stream;
  options.name = name;
  return options;
}

template <typename T>
void reductions(const Card& card, Handle stream, std::size_t count) {
  const auto options = on(stream);
  const auto blocks = static_cast<std::size_t>(size);
  const std::string what = std::to_string(count) + " elements of " + std::to_string(sizeof(T)) + " bytes";
  for (const drun_op op : {DRUN_SUM, DRUN_MAX, DRUN_MIN}) {
    const Buffer<T> send(card, values<T>(rank, count), stream), recv(card, count);
    done(drun_allreduce(send.get(), recv.get(), count, dtype_of<T>(), op, DRUN_COMM_WORLD, &options), "allreduce");
    expect(recv.values(stream), reduced<T>(count, op), "allreduce of " + what);
    done(drun_allreduce(send.get(), send.get(), count, dtype_of<T>(), op, DRUN_COMM_WORLD, &options), "in place");
    expect(send.values(stream), reduced<T>(count, op), "allreduce in place of " + what);
  }
  const Buffer<T> send(card, values<T>(rank, count * blocks), stream), recv(card, values<T>(90, count), stream);
  done(drun_reduce_scatter(send.get(), recv.get(), count, dtype_of<T>(), DRUN_SUM, DRUN_COMM_WORLD, &options),
       "reduce_scatter");
  expect(recv.values(stream), reduced<T>(count, DRUN_SUM, static_cast<std::size_t>(rank) * count),
         "reduce_scatter of " + what);
  const int root = size - 1;
  done(drun_reduce(send.get(), recv.get(), count, dtype_of<T>(), DRUN_SUM, root, DRUN_COMM_WORLD, &options), "reduce");
  if (rank == root) expect(recv.values(stream), reduced<T>(count, DRUN_SUM), "reduce of " + what);
}

template <typename T>
void moves(const Card& card, Handle stream, std::size_t count) {
  const auto options = on(stream);
  const auto n = static_cast<std::size_t>(size), own = static_cast<std::size_t>(rank);
  const std::string what = std::to_string(count) + " elements of " + std::to_string(sizeof(T)) + " bytes";
  Buffer<T> data(card, values<T>(rank, count), stream);
  done(drun_broadcast(data.get(), count, dtype_of<T>(), size - 1, DRUN_COMM_WORLD, &options), "broadcast");
  expect(data.values(stream), values<T>(size - 1, count), "broadcast of " + what);

  std::vector<T> all;
  for (int r = 0; r < size; ++r) {
    const auto part = values<T>(r, count);
    all.insert(all.end(), part.begin(), part.end());
  }
  data.put(values<T>(rank, count), stream);
  const Buffer<T> many(card, count * n), spread(card, count * n);
  done(drun_allgather(data.get(), many.get(), count, dtype_of<T>(), DRUN_COMM_WORLD, &options), "allgather");
  expect(many.values(stream), all, "allgather of " + what);
  const std::vector<std::size_t> counts(n, count);
  done(drun_allgatherv(data.get(), count, spread.get(), counts.data(), nullptr, dtype_of<T>(), DRUN_COMM_WORLD,
                       &options),
       "allgatherv");
  expect(spread.values(stream), all, "allgatherv of " + what);
  done(drun_gather(data.get(), many.get(), count, dtype_of<T>(), 0, DRUN_COMM_WORLD, &options), "gather");
  if (rank == 0) expect(many.values(stream), all, "gather of " + what);
  done(drun_scatter(many.get(), data.get(), count, dtype_of<T>(), 0, DRUN_COMM_WORLD, &options), "scatter");
  expect(data.values(stream), values<T>(rank, count), "scatter of " + what);

  const Buffer<T> from(card, values<T>(rank, count * n), stream), to(card, count * n);
  std::vector<T> dealt;
  for (int r = 0; r < size; ++r) {
    const auto part = values<T>(r, count, own * count);
    dealt.insert(dealt.end(), part.begin(), part.end());
  }
  done(drun_alltoall(from.get(), to.get(), count, dtype_of<T>(), DRUN_COMM_WORLD, &options), "alltoall");
  expect(to.values(stream), dealt, "alltoall of " + what);
  done(drun_alltoallv(from.get(), counts.data(), nullptr, to.get(), counts.data(), nullptr, dtype_of<T>(),
                      DRUN_COMM_WORLD, &options),
       "alltoallv");
  expect(to.values(stream), dealt, "alltoallv of " + what);

  if (size == 1) return;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  done(drun_group_start(), "group");
  done(drun_send(data.get(), count, dtype_of<T>(), next, DRUN_COMM_WORLD, &options), "send");
  done(drun_recv(to.get(), count, dtype_of<T>(), before, DRUN_COMM_WORLD, &options), "recv");
  done(drun_group_end(), "group");
  auto got = to.values(stream);
  got.resize(count);
  expect(got, values<T>(before, count), "send and recv of " + what);
}

void order_of_streams(const Card& card) {
  // The call is ordered after the stream's earlier work and before its later work, without a wait in the program.
  const std::size_t count = most;
  const Handle first = card.new_stream(), second = card.new_stream();
  const Buffer<std::int32_t> one(card, count), other(card, count);
  for (int round = 1; round <= 20; ++round) {
    Card::check(card.cuMemsetD32Async(one.address(), static_cast<unsigned>(round), count, first), "memset");
    Card::check(card.cuMemsetD32Async(other.address(), static_cast<unsigned>(round + rank), count, second), "memset");
    const auto on_first = on(first), on_second = on(second);
    done(drun_allreduce(one.get(), one.get(), count, DRUN_INT32, DRUN_SUM, DRUN_COMM_WORLD, &on_first), "first");
    done(drun_allreduce(other.get(), other.get(), count, DRUN_INT32, DRUN_MAX, DRUN_COMM_WORLD, &on_second), "second");
    expect(one.values(first), std::vector<std::int32_t>(count, round * size), "after the stream's work");
    expect(other.values(second), std::vector<std::int32_t>(count, round + size - 1), "on another stream");
  }
}

void requests_groups_and_parts(const Card& card, Handle stream) {
  std::vector<std::unique_ptr<Buffer<float>>> buffers;
  std::vector<drun_request> requests(8, nullptr);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    buffers.push_back(std::make_unique<Buffer<float>>(card, values<float>(rank, 1000 + i), stream));
    auto options = on(stream, "grad");
    options.request = &requests[i];
    done(drun_allreduce(buffers[i]->get(), buffers[i]->get(), 1000 + i, DRUN_FLOAT32, DRUN_SUM, DRUN_COMM_WORLD,
                        &options),
         "request");
  }
  for (auto& request : requests) done(drun_wait(&request), "wait");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    expect(buffers[i]->values(stream), reduced<float>(1000 + i, DRUN_SUM), "request");
    buffers[i]->put(values<float>(rank, 1000 + i), stream);
  }
  // Another stream waits instead of the call's stream, and the program waits for that one.
  const Handle other = card.new_stream();
  auto in_background = on(stream, "for another stream");
  in_background.request = &requests[0];
  done(drun_allreduce(buffers[0]->get(), buffers[0]->get(), 1000, DRUN_FLOAT32, DRUN_MAX, DRUN_COMM_WORLD,
                      &in_background),
       "for another stream");
  done(drun_wait_stream(&requests[0], other), "drun_wait_stream");
  if (requests[0] != nullptr) give_up("drun_wait_stream leaves the request");
  done(drun_synchronize(other, 0), "drun_synchronize");
  expect(buffers[0]->values(other), reduced<float>(1000, DRUN_MAX), "for another stream");
  buffers[0]->put(values<float>(rank, 1000), other);
  done(drun_synchronize(other, 60'000), "drun_synchronize");
  auto of_thread = on(reinterpret_cast<Handle>(std::uintptr_t{2}));
  drun_request refused = nullptr;
  of_thread.request = &refused;
  if (drun_barrier(DRUN_COMM_WORLD, &of_thread) != DRUN_ERROR_ARGUMENT || refused != nullptr) {
    give_up("a request on the stream of a thread is not refused");
  }
  done(drun_group_start(), "group");
  const auto options = on(stream);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    done(drun_allreduce(buffers[i]->get(), buffers[i]->get(), 1000 + i, DRUN_FLOAT32, DRUN_SUM, DRUN_COMM_WORLD,
                        &options),
         "grouped");
  }
  done(drun_group_end(), "group");
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    expect(buffers[i]->values(stream), reduced<float>(1000 + i, DRUN_SUM), "grouped");
  }
  // Scales that NCCL lacks go through the host, with correct results; so does Adasum, unless this build has kernels.
  const Buffer<float> same(card, values<float>(0, 100), stream);
  done(drun_allreduce(same.get(), same.get(), 100, DRUN_FLOAT32, DRUN_ADASUM, DRUN_COMM_WORLD, &options), "adasum");
  const auto given = values<float>(0, 100), got = same.values(stream);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (std::abs(got[i] - given[i]) > 1e-4f * given[i]) give_up("adasum of the same is not the same");
  }
  drun_comm part = nullptr;
  done(drun_comm_split(DRUN_COMM_WORLD, rank % 2, -rank, &part, nullptr), "split");
  const Buffer<std::int32_t> mine(card, std::vector<std::int32_t>{rank}, stream);
  done(drun_allreduce(mine.get(), mine.get(), 1, DRUN_INT32, DRUN_SUM, part, &options), "in a part");
  std::int32_t sum = 0;
  for (int r = rank % 2; r < size; r += 2) sum += r;
  expect(mine.values(stream), {sum}, "in a part");
  done(drun_comm_free(&part), "free");
}

// Averages and scales, among all ranks and for a rank alone. NCCL's blocks share 4913 f32, 6145 of both types and
// 100'003 f32 unevenly.
template <typename T>
void averages_and_scales(const Card& card, Handle stream) {
  drun_comm alone = nullptr;
  done(drun_comm_split(DRUN_COMM_WORLD, rank, 0, &alone, nullptr), "split");
  const auto check = [&](drun_comm comm, std::size_t count, drun_op op, double scale) {
    auto options = on(stream);
    options.prescale = 4 * scale;
    options.postscale = 0.25;
    const double factor = scale / (op == DRUN_AVG && comm == DRUN_COMM_WORLD ? size : 1);
    const auto sums = comm == DRUN_COMM_WORLD ? reduced<T>(count, DRUN_SUM) : values<T>(rank, count);
    const Buffer<T> given(card, values<T>(rank, count), stream), got(card, std::vector<T>(count, T{-1}), stream);
    done(drun_allreduce(given.get(), got.get(), count, dtype_of<T>(), op, comm, &options), "allreduce");
    const auto results = got.values(stream);
    for (std::size_t i = 0; i < count; ++i) {
      const double wanted = static_cast<double>(sums[i]) * factor;
      if (std::abs(static_cast<double>(results[i]) - wanted) <= 1e-6 * wanted) continue;
      give_up("rank " + std::to_string(rank) + (op == DRUN_AVG ? ": average" : ": scaled sum") +
              (comm == alone ? " of one rank" : "") + ": element " + std::to_string(i) + " of " +
              std::to_string(count) + " is " + std::to_string(results[i]) + ", not " + std::to_string(wanted));
    }
  };
  for (const std::size_t count : {std::size_t{17}, std::size_t{4913}, std::size_t{6145}, std::size_t{100'003}}) {
    for (const drun_comm comm : {DRUN_COMM_WORLD, alone}) {
      check(comm, count, DRUN_AVG, 1);
      check(comm, count, DRUN_AVG, 2);
      check(comm, count, DRUN_SUM, 0.5);
    }
  }
  done(drun_comm_free(&alone), "free");
}

// Communicators of the ranks of our host, and of the ranks with our local rank on all hosts. The same collectives on
// host memory give the expected results.
void local_and_cross(const Card& card, Handle stream) {
  const auto options = on(stream);
  for (const drun_comm comm : {DRUN_COMM_LOCAL, DRUN_COMM_CROSS}) {
    const std::string what = comm == DRUN_COMM_LOCAL ? "local" : "cross";
    const auto n_members = static_cast<std::size_t>(comm == DRUN_COMM_LOCAL ? drun_local_size() : drun_cross_size());
    const std::vector<std::int32_t> own{rank, 1, -rank};
    std::vector<std::int32_t> wanted(own.size()), all_wanted(own.size() * n_members);
    done(drun_allreduce(own.data(), wanted.data(), own.size(), DRUN_INT32, DRUN_SUM, comm, nullptr), what);
    done(drun_allgather(own.data(), all_wanted.data(), own.size(), DRUN_INT32, comm, nullptr), what);
    const Buffer<std::int32_t> mine(card, own, stream), all(card, std::vector<std::int32_t>(all_wanted.size()), stream);
    done(drun_allgather(mine.get(), all.get(), own.size(), DRUN_INT32, comm, &options), what);
    done(drun_allreduce(mine.get(), mine.get(), own.size(), DRUN_INT32, DRUN_SUM, comm, &options), what);
    expect(all.values(stream), all_wanted, what + " allgather");
    expect(mine.values(stream), wanted, what + " allreduce");
  }
}

// Memory of drun_alloc that is registered with NCCL: the same sums before and after, and at an offset. Frees it both
// with and without deregistering it first.
void registered_memory(const Card& card, Handle stream) {
  constexpr std::size_t kCount = std::size_t{1} << 20;  // f32: from 4 MiB on it is NCCL's
  const Buffer<float> like(card, values<float>(rank, kCount), stream);
  const auto options = on(stream, "registered");
  for (const bool is_told : {true, false}) {
    void* memory = nullptr;
    done(drun_alloc_like(&memory, 4 * kCount, like.get()), "drun_alloc_like");
    for (const bool is_registered : {true, false}) {
      if (is_registered) done(drun_register(memory, 4 * kCount, DRUN_COMM_WORLD, nullptr), "drun_register");
      for (const std::size_t offset : {std::size_t{0}, std::size_t{1} << 19}) {
        float* const data = static_cast<float*>(memory) + offset;
        const std::size_t count = kCount - offset;
        std::vector<float> sums(count);
        done(drun_gpu_copy(data, like.get(), 4 * count, stream), "drun_gpu_copy");
        done(drun_allreduce(data, data, count, DRUN_FLOAT32, DRUN_SUM, DRUN_COMM_WORLD, &options), "registered");
        done(drun_gpu_read(sums.data(), data, 4 * count, stream), "drun_gpu_read");
        expect(sums, reduced<float>(count, DRUN_SUM), "registered memory");
      }
      done(drun_barrier(DRUN_COMM_WORLD, nullptr), "barrier");
      if (!is_told) break;
      done(drun_deregister(memory), "drun_deregister");
    }
    done(drun_free(memory), "drun_free");
  }
}

void collectives(const Card& card) {
  const Handle stream = card.new_stream();
  for (const std::size_t count : {std::size_t{1}, std::size_t{3}, std::size_t{1000}, most}) {
    reductions<float>(card, stream, count);
    reductions<double>(card, stream, count);
    reductions<std::int32_t>(card, stream, count);
    moves<float>(card, stream, count);
    moves<double>(card, stream, count);
  }
  averages_and_scales<float>(card, stream);
  averages_and_scales<double>(card, stream);
  order_of_streams(card);
  requests_groups_and_parts(card, stream);
  local_and_cross(card, stream);
  registered_memory(card, stream);
}

void capture(const Card& card) {
  const Handle stream = card.new_stream();
  const std::size_t count = 4096;
  Buffer<float> data(card, values<float>(rank, count), stream);
  const auto options = on(stream);
  done(drun_allreduce(data.get(), data.get(), count, DRUN_FLOAT32, DRUN_MAX, DRUN_COMM_WORLD, &options), "set up");
  data.put(std::vector<float>(count, 1), stream);
  Handle graph = nullptr, runnable = nullptr;
  Card::check(card.cuStreamBeginCapture_v2(stream, 1), "begin capture");  // thread-local, like torch's captures
  done(drun_allreduce(data.get(), data.get(), count, DRUN_FLOAT32, DRUN_SUM, DRUN_COMM_WORLD, &options), "captured");
  if (drun_synchronize(stream, 0) != DRUN_ERROR_STATE) give_up("drun_synchronize in a capture is not refused");
  Card::check(card.cuStreamEndCapture(stream, &graph), "end capture");
  Card::check(card.cuGraphInstantiateWithFlags(&runnable, graph, 0), "instantiate");
  for (int round = 1; round <= 3; ++round) {
    Card::check(card.cuGraphLaunch(runnable, stream), "launch");
    expect(data.values(stream),
           std::vector<float>(count, std::pow(static_cast<float>(size), static_cast<float>(round))),
           "replay " + std::to_string(round));
  }
  // NCCL's end waits for graphs that contain its calls.
  Card::check(card.cuGraphExecDestroy(runnable), "destroy");
  Card::check(card.cuGraphDestroy(graph), "destroy");
}

// The last rank ends by SIGKILL between two calls: the others' next calls, or their waits for the stream, fail and
// name it.
void kill_one(const Card& card) {
  const Handle stream = card.new_stream();
  const Buffer<float> data(card, values<float>(rank, 1000), stream);
  auto options = on(stream);
  for (int i = 0; i < 3; ++i) {
    done(drun_allreduce(data.get(), data.get(), 1000, DRUN_FLOAT32, DRUN_MAX, DRUN_COMM_WORLD, &options), "before");
  }
  card.wait(stream);
  ::signal(SIGTERM, SIG_IGN);  // ignores drun's TERM, to have time to print libdrun's error
  if (rank == size - 1) ::kill(::getpid(), SIGKILL);
  int status = DRUN_OK;
  for (int i = 0; i < 2000 && status == DRUN_OK; ++i) {
    status = drun_allreduce(data.get(), data.get(), 1000, DRUN_FLOAT32, DRUN_MAX, DRUN_COMM_WORLD, &options);
    if (status == DRUN_OK) status = drun_synchronize(stream, 0);
  }
  if (status == DRUN_OK) give_up("nobody said that a rank has died");
  if (drun_synchronize(stream, 0) != status) give_up("drun_synchronize does not say what the call said");
  std::printf("rank %d: named rank %d: %s\n", rank, drun_last_error_rank(), drun_last_error());
  std::fflush(stdout);
  card.wait(stream);  // NCCL was aborted: the stream continues
  std::printf("rank %d: its stream went on\n", rank);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(const Card&)>> tests = {
      {"collectives", collectives}, {"capture", capture}, {"kill", kill_one}};
  if (argc == 2 && std::string(argv[1]) == "count") {
    std::printf("%d\n", Card::open(0).n_devices);
    return 0;
  }
  const bool has_most = argc == 4 && std::string(argv[2]) == "--most";
  if ((argc != 2 && !has_most) || tests.count(argv[1]) == 0) {
    std::fprintf(stderr, "usage: drun_gpu_ranks collectives|capture|kill|count [--most ELEMENTS]\n");
    return 2;
  }
  if (has_most) most = std::strtoull(argv[3], nullptr, 10);
  done(drun_init(nullptr), "drun_init");
  rank = drun_rank();
  size = drun_size();
  const Card& card = Card::open(drun_local_rank());
  if (rank == 0) {
    int version = 0;
    const char* path = "none";
    (void)drun_nccl_version(&version, &path);
    std::printf("%s, driver %d, NCCL %d (%s), %d ranks\n", card.name.c_str(), card.driver_version, version, path, size);
  }
  tests.at(argv[1])(card);
  done(drun_finalize(), "drun_finalize");
  if (rank == 0) std::printf("%s: good\n", argv[1]);
  return 0;
}
