#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "bench/copy_speed.h"
#include "bench/timing.h"
#include "runtime/include/drun/gpu.h"

namespace drun::bench {

namespace {

using Clock = std::chrono::steady_clock;

// Larger buffers fit into no cache.
constexpr std::uint64_t kMaxCopied = 32u << 20;
// Bytes that a rank shares at once (docs/collectives.md).
constexpr std::uint64_t kSlotBytes = 512u << 10;
constexpr int kUnset = 0x55;  // byte of which no element of a result consists

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

Result<void> reduce(double* values, std::size_t count, drun_op op) {
  return checked(drun_allreduce(values, values, count, DRUN_FLOAT64, op, DRUN_COMM_WORLD, nullptr));
}

}  // namespace

Measurement::Measurement(const Settings& settings, const Ranks& ranks, const Device* device)
    : settings_(settings), ranks_(ranks), device_(device) {}

Measurement::~Measurement() {
  if (device_ == nullptr) return;
  (void)device_->wait();
  drun_free(buffers_.send);
  drun_free(buffers_.recv);
}

double Measurement::average_bandwidth() const {
  return n_measured_ > 0 ? bandwidth_sum_ / static_cast<double>(n_measured_) : 0;
}

Result<void> Measurement::allocate() {
  const std::size_t n = settings_.kind == Kind::kBarrier ? 1 : std::max<std::size_t>(settings_.max_bytes, 1);
  // Zeroed, so that pages are present when the clock runs and -c 0 computes with valid numbers.
  send_.reset(new (std::nothrow) char[n]());
  if (device_ == nullptr) recv_.reset(new (std::nothrow) char[n]());
  if (!send_ || (device_ == nullptr && !recv_))
    return fail(Errc::kInternal, "", "no memory for two buffers of " + std::to_string(n) + " bytes");
  buffers_ = {send_.get(), recv_.get(), device_ != nullptr};
  if (device_ == nullptr) return {};
  buffers_.send = buffers_.recv = nullptr;
  for (char** buffer : {&buffers_.send, &buffers_.recv}) {
    void* memory = nullptr;
    if (auto ok = checked(drun_alloc(&memory, n, DRUN_MEMORY_DEVICE)); !ok) return ok;
    *buffer = static_cast<char*>(memory);
    if (auto ok = checked(drun_gpu_clear(memory, n, nullptr)); !ok) return ok;
    if (!settings_.registers) continue;
    if (auto ok = checked(drun_register(memory, n, DRUN_COMM_WORLD, nullptr)); !ok) return ok;
  }
  return {};
}

Result<void> Measurement::run(const Show& show) {
  if (auto ok = allocate(); !ok) return ok;
  if (device_ != nullptr) {
    // The first collective sets up NCCL. Sends and receives only use a communicator that exists.
    if (auto ok = checked(drun_broadcast(buffers_.recv, 1, DRUN_UINT8, 0, DRUN_COMM_WORLD, nullptr)); !ok) return ok;
    if (auto ok = wait(); !ok) return ok;
  }
  const KindInfo& kind = info(settings_.kind);
  const bool is_barrier = settings_.kind == Kind::kBarrier;
  Call call;
  call.kind = settings_.kind;
  call.rank = drun_rank();
  call.n_ranks = drun_size();
  const auto ops = kind.reduces ? settings_.ops : std::vector<drun_op>{DRUN_SUM};
  const auto dtypes = is_barrier ? std::vector<drun_dtype>{DRUN_UINT8} : settings_.dtypes;
  const bool all_roots = kind.rooted && settings_.root == kAllRoots;
  const int first_root = kind.rooted && !all_roots ? settings_.root : 0;
  const int last_root = all_roots ? call.n_ranks - 1 : first_root;
  for (const auto dtype : dtypes) {
    for (const auto op : ops) {
      for (int root = first_root; root <= last_root; ++root) {
        call.dtype = dtype;
        call.op = op;
        call.root = root;
        if (auto ok = series(call, show); !ok) return ok;
      }
    }
  }
  return {};
}

Result<void> Measurement::series(Call call, const Show& show) {
  if (auto ok = checked(drun_barrier(DRUN_COMM_WORLD, nullptr)); !ok) return ok;
  if (auto ok = warm_up(call); !ok) return ok;
  const bool is_barrier = call.kind == Kind::kBarrier;
  for (const std::uint64_t n_bytes : is_barrier ? std::vector<std::uint64_t>{0} : sizes(settings_)) {
    call.counts = counts(call.kind, n_bytes, element_size(call.dtype), call.n_ranks);
    auto row = one_size(call);
    if (!row) return fail(std::move(row.error()));
    if (auto ok = show(*row); !ok) return ok;
  }
  return {};
}

Result<void> Measurement::warm_up(Call call) {
  for (const std::uint64_t n_bytes : warmup_sizes(settings_)) {
    call.counts = counts(call.kind, n_bytes, element_size(call.dtype), call.n_ranks);
    for (int i = 0; i < settings_.n_warmups; ++i) {
      if (auto ok = checked(perform(call, buffers_, false)); !ok) return ok;
    }
    if (call.kind == Kind::kBarrier) break;
  }
  return wait();
}

Result<Row> Measurement::one_size(const Call& call) {
  const KindInfo& kind = info(call.kind);
  const bool is_barrier = call.kind == Kind::kBarrier;
  Row row;
  row.n_bytes = std::max(call.counts.send, call.counts.recv) * element_size(call.dtype);
  row.count = call.counts.call;
  row.type = is_barrier ? "none" : dtype_name(call.dtype);
  // sendrecv_perf of nccl-tests reports a sum, too.
  row.op = kind.reduces || call.kind == Kind::kSendRecv ? op_name(call.op) : "none";
  row.root = kind.rooted ? call.root : -1;
  const auto bound = bound_for(row);
  if (!bound) return fail(bound.error());
  for (const bool in_place : {false, true}) {
    if (in_place && !kind.has_in_place) continue;
    auto figures = measure(call, in_place, static_cast<double>(row.n_bytes), *bound);
    if (!figures) return fail(std::move(figures.error()));
    bandwidth_sum_ += figures->bandwidth.bus;
    ++n_measured_;
    if (figures->wrong.value_or(0) > 0) ++n_wrong_;
    (in_place ? row.in_place : row.out_of_place) = *figures;
  }
  return row;
}

Result<Bound> Measurement::bound_for(const Row& row) {
  Bound out = ranks_.bound;
  if (out.kind != BoundKind::kMemory || row.n_bytes == 0) return out;
  const auto speed = [&](std::uint64_t most) {
    return copy_speed(buffers_.recv, buffers_.send, std::min(row.n_bytes, most));
  };
  auto buffers = speed(kMaxCopied);
  if (!buffers) return fail(std::move(buffers.error()));
  auto between = speed(kSlotBytes);
  if (!between) return fail(std::move(between.error()));
  out.bytes_per_second = *buffers;
  out.between_bytes_per_second = *between;
  return out;
}

Result<Figures> Measurement::measure(const Call& call, bool in_place, double n_bytes, const Bound& bound) {
  if (settings_.n_checks > 0) {
    if (auto ok = fill(call, Pattern(call, round_), in_place); !ok) return fail(std::move(ok.error()));
  }
  // An untimed call makes connections and touches pages. After the barrier all ranks begin together.
  if (auto ok = checked(perform(call, buffers_, in_place)); !ok) return fail(std::move(ok.error()));
  if (auto ok = wait(); !ok) return fail(std::move(ok.error()));
  if (auto ok = checked(drun_barrier(DRUN_COMM_WORLD, nullptr)); !ok) return fail(std::move(ok.error()));

  auto times = time(call, in_place);
  if (!times) return fail(std::move(times.error()));
  if (device_ != nullptr) {
    const auto together = time_together(call, in_place);
    if (!together) return fail(together.error());
    times->average = *together;
  }
  double seconds = times->average;
  if (auto ok = reduce(&seconds, 1, DRUN_AVG); !ok) return fail(std::move(ok.error()));
  if (auto ok = reduce(times->each.data(), times->each.size(), DRUN_MAX); !ok) return fail(std::move(ok.error()));

  Figures out;
  out.seconds = seconds;
  out.bandwidth = bandwidth(call.kind, call.counts, element_size(call.dtype), call.n_ranks, seconds);
  const Percentiles slow = percentiles(std::move(times->each));
  out.p50_seconds = slow.p50;
  out.p99_seconds = slow.p99;
  const bool is_adasum = call.op == DRUN_ADASUM;
  if (!is_adasum) {
    out.percent = percent_of_bound(bound, call.kind, n_bytes, ranks_.ranks_of_host,
                                   ranks_.host_of_rank[static_cast<std::size_t>(call.root)], seconds);
  }
  const KindInfo& kind = info(call.kind);
  const bool can_check = call.kind != Kind::kBarrier && !is_adasum && (!in_place || kind.checks_inside);
  for (int i = 0; can_check && i < settings_.n_checks && out.wrong.value_or(0) == 0; ++i) {
    const auto wrong = count_wrong(call, in_place);
    if (!wrong) return fail(wrong.error());
    out.wrong = *wrong;
  }
  return out;
}

Result<std::uint64_t> Measurement::count_wrong(const Call& call, bool in_place) {
  const Pattern pattern(call, ++round_);
  const std::size_t n_bytes = call.counts.recv * element_size(call.dtype);
  char* const unset = device_ != nullptr ? send_.get() : buffers_.recv;
  std::memset(unset, kUnset, n_bytes);
  if (device_ != nullptr) {
    if (auto ok = device_->put(buffers_.recv, unset, n_bytes); !ok) return fail(std::move(ok.error()));
  }
  if (auto ok = fill(call, pattern, in_place); !ok) return fail(std::move(ok.error()));
  if (auto ok = checked(perform(call, buffers_, in_place)); !ok) return fail(std::move(ok.error()));
  const char* received = output(call, buffers_, in_place);
  if (device_ != nullptr) {
    std::size_t n_expected = 0;
    for (const Part& part : expected_parts(call)) n_expected = std::max(n_expected, part.at + part.count);
    const std::size_t n_got = n_expected * element_size(call.dtype);
    if (auto ok = checked(drun_gpu_read(send_.get(), received, n_got, nullptr)); !ok)
      return fail(std::move(ok.error()));
    received = send_.get();
  }
  std::uint64_t wrong = pattern.count_wrong(received);
  if (auto ok = checked(drun_allreduce(&wrong, &wrong, 1, DRUN_UINT64, DRUN_SUM, DRUN_COMM_WORLD, nullptr)); !ok) {
    return fail(std::move(ok.error()));
  }
  return wrong;
}

Result<void> Measurement::wait() const { return device_ != nullptr ? device_->wait() : Result<void>(); }

Result<Measurement::Times> Measurement::time(const Call& call, bool in_place) const {
  Times out;
  out.each.resize(static_cast<std::size_t>(settings_.n_iterations));
  const auto began = Clock::now();
  auto before = began;
  for (double& time : out.each) {
    if (auto ok = checked(perform(call, buffers_, in_place)); !ok) return fail(std::move(ok.error()));
    if (auto ok = wait(); !ok) return fail(std::move(ok.error()));
    const auto after = Clock::now();
    time = seconds_between(before, after);
    before = after;
  }
  out.average = seconds_between(began, before) / settings_.n_iterations;
  return out;
}

Result<double> Measurement::time_together(const Call& call, bool in_place) const {
  if (auto ok = checked(drun_barrier(DRUN_COMM_WORLD, nullptr)); !ok) return fail(std::move(ok.error()));
  const auto began = Clock::now();
  for (int i = 0; i < settings_.n_iterations; ++i) {
    if (auto ok = checked(perform(call, buffers_, in_place)); !ok) return fail(std::move(ok.error()));
  }
  if (auto ok = wait(); !ok) return fail(std::move(ok.error()));
  return seconds_between(began, Clock::now()) / settings_.n_iterations;
}

Result<void> Measurement::fill(const Call& call, const Pattern& pattern, bool in_place) {
  char* const place = const_cast<char*>(input(call, buffers_, in_place));
  if (device_ == nullptr) {
    pattern.fill(place);
    return {};
  }
  pattern.fill(send_.get());
  return device_->put(place, send_.get(), call.counts.send * element_size(call.dtype));
}

}  // namespace drun::bench
