// Checks libdrun's kernels on a GPU against the host's loops, bit by bit, on random data, and compares their speed
// with a copy on the device. One process, without a job.
//   drun_gpu_kernels check [--most ELEMENTS]
//   drun_gpu_kernels capture
//   drun_gpu_kernels speed [--elements N] [--rounds N]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "drun/gpu.h"
#include "drun/training/compression.hpp"
#include "drun/training/layout.hpp"
#include "drun/training/selection.hpp"
#include "runtime/src/gpu/kernels/arguments.h"
#include "tests/gpu/card.h"

namespace {

namespace training = drun::training;
using drun::gpu_tests::Buffer;
using drun::gpu_tests::Card;
using drun::gpu_tests::give_up;
using drun::gpu_tests::Handle;

void done(int status) {
  if (status != DRUN_OK) give_up(drun_last_error());
}

template <typename T>
constexpr drun_dtype kType = sizeof(T) == 4 ? DRUN_FLOAT32 : DRUN_FLOAT64;

// Numbers of all magnitudes, most of them below 1, with a few that are infinite, or too large for a half.
template <typename T>
std::vector<T> numbers(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> out(n);
  for (T& value : out) value = static_cast<T>(std::exp(2 * normal(random) - 4) * normal(random));
  const double odd[] = {0, -0.0, 70000, -1e6, 3e-8, std::numeric_limits<double>::infinity(), 1e-40, 1 + 0x1p-11};
  for (std::size_t i = 0; i < std::size(odd) && n > 100; ++i) out[i * 11 + 3] = static_cast<T>(odd[i]);
  return out;
}

template <typename T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
void expect_same(const std::vector<T>& is, const std::vector<T>& should_be, const std::string& what) {
  const std::string_view got = bytes_of(is), wanted = bytes_of(should_be);
  if (got == wanted) return;
  const auto at = std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end()).first - got.begin();
  give_up(what + ": element " + std::to_string(static_cast<std::size_t>(at) / sizeof(T)) + " of " +
          std::to_string(should_be.size()) + " is another");
}

template <typename Half, typename T>
void check_halves(const Card& card, Handle stream, std::size_t n, const std::string& what) {
  const auto given = numbers<T>(n, 1);
  std::vector<std::uint16_t> halves(n);
  const auto n_cut = training::narrow<Half>(given.data(), n, 3, halves.data());
  Buffer<T> data(card, given, stream);
  const Buffer<std::uint16_t> bucket(card, n);
  const Buffer<std::uint64_t> counter(card, std::vector<std::uint64_t>{0}, stream);
  const drun_gpu_piece pieces[] = {{data.get(), n / 3}, {data.get() + n / 3, n - n / 3}};
  done(drun_gpu_narrow(pieces, 2, kType<T>, 3, static_cast<double>(training::largest_of<Half>(3)), bucket.get(),
                       Half::kDtype, counter.get(), stream));
  expect_same(bucket.values(stream), halves, what + " to halves");
  expect_same(counter.values(stream), {n_cut}, what + ": how many were cut");
  done(drun_gpu_widen(bucket.get(), Half::kDtype, 3, pieces, 2, kType<T>, stream));
  std::vector<T> wide(n);
  training::widen<Half>(halves.data(), n, T{3}, wide.data());
  expect_same(data.values(stream), wide, what + " back");
}

template <typename T>
void check_elements(const Card& card, Handle stream, std::size_t n, const std::string& what) {
  auto a = numbers<T>(n, 2);
  const auto b = numbers<T>(n, 3);
  const Buffer<T> data(card, a, stream), other(card, b, stream), bucket(card, n);
  done(drun_gpu_add(data.get(), other.get(), n, kType<T>, stream));
  done(drun_gpu_divide(data.get(), n, kType<T>, 3, stream));
  done(drun_gpu_scale(data.get(), n, kType<T>, 0.7, stream));
  for (std::size_t i = 0; i < n; ++i) a[i] = (a[i] + b[i]) / T{3} * static_cast<T>(0.7);
  expect_same(data.values(stream), a, what + ": add, divide, scale");
  std::vector<drun_gpu_piece> pieces;
  for (std::size_t i = 0; i < 200; ++i) pieces.push_back({data.get() + n * i / 200, n * (i + 1) / 200 - n * i / 200});
  done(drun_gpu_pack(pieces.data(), pieces.size(), kType<T>, bucket.get(), stream));
  expect_same(bucket.values(stream), a, what + ": pack");
  done(drun_gpu_clear(data.get(), n * sizeof(T), stream));
  done(drun_gpu_unpack(bucket.get(), pieces.data(), pieces.size(), kType<T>, stream));
  expect_same(data.values(stream), a, what + ": unpack");
}

// Computes the reference in long double: the error of millions of sequential additions in double would be as large as
// the tolerance. The expected sum uses the dots that the GPU has found.
template <typename T>
void check_dots(const Card& card, Handle stream, std::size_t n, const std::string& what) {
  auto a = numbers<T>(n, 5), b = numbers<T>(n, 6);
  for (auto* values : {&a, &b}) {
    for (T& value : *values) value = std::isfinite(value) ? value : T{1};
  }
  const Buffer<T> first(card, a, stream), second(card, b, stream), into(card, n);
  const Buffer<double> dots(card, drun_gpu_dots_bytes(n) / sizeof(double));
  done(drun_gpu_dots(first.get(), second.get(), n, kType<T>, dots.get(), stream));
  const auto once = dots.values(stream);
  done(drun_gpu_dots(first.get(), second.get(), n, kType<T>, dots.get(), stream));
  const auto found = dots.values(stream);
  expect_same(found, once, what + ": dots again");
  long double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const long double x = a[i], y = b[i];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  const bool good = std::abs(found[0] - ab) <= 1e-12L * std::sqrt(aa * bb) && std::abs(found[1] - aa) <= 1e-12L * aa &&
                    std::abs(found[2] - bb) <= 1e-12L * bb;
  if (!good) give_up(what + ": the dots are not those of the host");
  done(drun_gpu_adasum(first.get(), second.get(), n, kType<T>, dots.get(), into.get(), stream));
  const double of_a = 1 - found[0] / (2 * found[1]), of_b = 1 - found[0] / (2 * found[2]);
  std::vector<T> sum(n);
  for (std::size_t i = 0; i < n; ++i) {
    sum[i] = static_cast<T>(of_a * static_cast<double>(a[i]) + of_b * static_cast<double>(b[i]));
  }
  expect_same(into.values(stream), sum, what + ": adasum");
}

template <typename T>
void check_selection(const Card& card, Handle stream, const std::vector<T>& given, std::size_t k, double threshold,
                     const std::string& what) {
  const std::size_t n = given.size();
  const Buffer<T> values(card, given, stream), chosen(card, n);
  const Buffer<std::uint32_t> indices(card, n);
  const Buffer<char> selection(card, drun_gpu_selection_bytes(n));
  std::vector<std::uint32_t> expected;
  const auto expect_taken = [&](const std::string& of) {
    std::uint64_t count = 0;
    done(drun_gpu_read(&count, selection.get(), sizeof count, stream));
    if (count != expected.size()) {
      give_up(of + ": " + std::to_string(count) + " were chosen and not " + std::to_string(expected.size()));
    }
    done(drun_gpu_take(values.get(), n, kType<T>, selection.get(), indices.get(), DRUN_UINT32, chosen.get(), stream));
    auto taken = indices.values(stream);
    auto bits = chosen.values(stream);
    taken.resize(expected.size());
    bits.resize(expected.size());
    expect_same(taken, expected, of + ": indices");
    std::vector<T> of_host;
    for (const auto i : expected) of_host.push_back(given[i]);
    expect_same(bits, of_host, of + ": values");
  };
  std::vector<decltype(training::magnitude(T{}))> scratch;
  training::select_top_k(given.data(), n, k, expected, scratch);
  done(drun_gpu_find_top_k(values.get(), n, kType<T>, k, selection.get(), stream));
  expect_taken(what + ": top " + std::to_string(k));
  training::select_threshold(given.data(), n, threshold, expected);
  done(drun_gpu_find_threshold(values.get(), n, kType<T>, threshold, selection.get(), stream));
  expect_taken(what + ": threshold");

  // Scatters the taken elements to their places: the rest stays 0.
  std::vector<T> sum(n);
  for (const auto i : expected) sum[i] += given[i];
  const Buffer<T> data(card, std::vector<T>(n), stream);
  const Buffer<std::uint64_t> n_bad(card, std::vector<std::uint64_t>{0}, stream);
  done(drun_gpu_scatter_add(data.get(), n, kType<T>, indices.get(), DRUN_UINT32, chosen.get(), expected.size(),
                            n_bad.get(), stream));
  for (auto& value : sum) value += T{0};  // -0 is added to 0
  expect_same(data.values(stream), sum, what + ": scatter-add");
  done(
      drun_gpu_scatter_zero(data.get(), n, kType<T>, indices.get(), DRUN_UINT32, expected.size(), n_bad.get(), stream));
  expect_same(data.values(stream), std::vector<T>(n), what + ": scatter of zeros");
  expect_same(n_bad.values(stream), {0}, what + ": indices beyond the end");
}

template <typename T>
void check_list(const Card& card, Handle stream, const std::vector<T>& given, std::size_t k) {
  const std::string what = std::to_string(8 * sizeof(T)) + " bits, listed";
  check_selection<T>(card, stream, given, k, 1, what);
  const Buffer<T> values(card, given, stream);
  const Buffer<char> selection(card, drun_gpu_selection_bytes(given.size()));
  drun::runtime::gpu::Selection known{};
  done(drun_gpu_find_top_k(values.get(), given.size(), kType<T>, k, selection.get(), stream));
  done(drun_gpu_read(&known, selection.get(), sizeof known, stream));
  if (known.source != drun::runtime::gpu::Source::kList) {
    give_up("top " + std::to_string(k) + " of " + std::to_string(given.size()) + " was found without a list");
  }
}

template <typename T>
void check_all(const Card& card, Handle stream, std::size_t n, const std::string& type) {
  const std::string what = std::to_string(n) + " " + type;
  check_halves<training::Float16, T>(card, stream, n, what + ", f16");
  check_halves<training::Bfloat16, T>(card, stream, n, what + ", bf16");
  check_elements<T>(card, stream, n, what);
  check_dots<T>(card, stream, n, what);
  check_selection<T>(card, stream, numbers<T>(n, 4), n / 100 + 1, 0.05, what);
  check_selection<T>(card, stream, std::vector<T>(n, T{1}), n / 2, 1, what + ", all equal");
}

void check(const Card& card, std::size_t most) {
  const Handle stream = card.new_stream();
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{255}, std::size_t{4097}, std::size_t{100'003}, std::size_t{3'000'001}}) {
    if (n > most) continue;
    check_all<float>(card, stream, n, "f32");
    check_all<double>(card, stream, n, "f64");
  }
  // With this many elements the kernel samples one in 64 and lists the large ones.
  constexpr std::size_t kMany = 9'000'001;
  for (const std::size_t k : {kMany / 100, kMany / 25, std::size_t{1}}) {
    if (kMany > most) break;
    check_list(card, stream, numbers<float>(kMany, 6), k);
    if (k < kMany / 25) check_list(card, stream, numbers<double>(kMany, 7), k);
  }
  std::printf("kernels: good\n");
}

// Captures kernels of all kinds in a CUDA graph, and runs it twice on new data: the results are the host's.
void capture(const Card& card) {
  constexpr std::size_t kCount = 100'003, kChosen = 1000;
  const Handle stream = card.new_stream();
  Buffer<float> data(card, numbers<float>(kCount, 1), stream), sum(card, std::vector<float>(kCount), stream);
  const Buffer<float> bucket(card, kCount), chosen(card, kCount);
  const Buffer<std::uint16_t> halves(card, kCount);
  const Buffer<std::uint32_t> indices(card, kCount);
  const Buffer<char> selection(card, drun_gpu_selection_bytes(kCount));
  const Buffer<std::uint64_t> counter(card, std::vector<std::uint64_t>{0}, stream);
  const drun_gpu_piece pieces[] = {{data.get(), 1000}, {data.get() + 1000, kCount - 1000}};
  const auto work = [&] {
    done(drun_gpu_pack(pieces, 2, DRUN_FLOAT32, bucket.get(), stream));
    done(drun_gpu_find_top_k(bucket.get(), kCount, DRUN_FLOAT32, kChosen, selection.get(), stream));
    done(drun_gpu_take(bucket.get(), kCount, DRUN_FLOAT32, selection.get(), indices.get(), DRUN_UINT32, chosen.get(),
                       stream));
    done(drun_gpu_clear(sum.get(), kCount * sizeof(float), stream));
    done(drun_gpu_scatter_add(sum.get(), kCount, DRUN_FLOAT32, indices.get(), DRUN_UINT32, chosen.get(), kChosen,
                              counter.get(), stream));
    done(drun_gpu_narrow(pieces, 2, DRUN_FLOAT32, 2, 3e4, halves.get(), DRUN_BFLOAT16, counter.get(), stream));
  };
  work();  // loads the kernels
  card.wait(stream);
  Handle graph = nullptr, runnable = nullptr;
  Card::check(card.cuStreamBeginCapture_v2(stream, 1), "begin capture");
  work();
  Card::check(card.cuStreamEndCapture(stream, &graph), "end capture");
  Card::check(card.cuGraphInstantiateWithFlags(&runnable, graph, 0), "instantiate");
  for (unsigned round = 2; round <= 3; ++round) {
    const auto given = numbers<float>(kCount, round);
    data.put(given, stream);
    Card::check(card.cuGraphLaunch(runnable, stream), "launch");
    std::vector<std::uint32_t> expected, scratch;
    training::select_top_k(given.data(), kCount, kChosen, expected, scratch);
    std::vector<float> of_host(kCount);
    for (const auto i : expected) of_host[i] += given[i];
    expect_same(sum.values(stream), of_host, "replayed selection");
    std::vector<std::uint16_t> narrow(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const float half = given[i] / 2;
      const bool is_cut = std::fabs(half) > 3e4f && std::isfinite(half);
      narrow[i] = training::Bfloat16::narrow(is_cut ? std::copysign(3e4f, half) : half);
    }
    expect_same(halves.values(stream), narrow, "replayed cast");
  }
  Card::check(card.cuGraphExecDestroy(runnable), "destroy");
  Card::check(card.cuGraphDestroy(graph), "destroy");
  std::printf("capture: good\n");
}

// The time of `work`, executed several times in a row: the median of the rounds, in seconds.
double seconds(const Card& card, Handle stream, int rounds, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  constexpr int kInARow = 20;
  std::vector<double> times;
  work();
  card.wait(stream);
  for (int round = 0; round < rounds; ++round) {
    const auto began = Clock::now();
    for (int i = 0; i < kInARow; ++i) work();
    card.wait(stream);
    times.push_back(std::chrono::duration<double>(Clock::now() - began).count() / kInARow);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

void speed(const Card& card, std::size_t n, int rounds) {
  const Handle stream = card.new_stream();
  const auto given = numbers<float>(n, 1);
  Buffer<float> data(card, given, stream);
  const Buffer<float> other(card, given, stream);
  const Buffer<std::uint16_t> halves(card, n);
  const Buffer<std::uint64_t> counter(card, std::vector<std::uint64_t>{0}, stream);
  const Buffer<std::uint32_t> indices(card, n);
  const Buffer<char> selection(card, drun_gpu_selection_bytes(n));
  // Like the tensors of a model: most are large, every fourth is small. After one of odd length there is a gap.
  const auto pieces_with = [&](std::size_t n_small) {
    const std::size_t alignment = training::alignment_of(DRUN_FLOAT32);
    std::vector<drun_gpu_piece> result;
    std::size_t n_tensors = 0;
    for (std::size_t begin = 0; begin < n;) {
      const std::size_t count = std::min(n - begin, ++n_tensors % 4 == 0 ? n_small : std::size_t{1} << 19);
      result.push_back({data.get() + begin, count});
      begin += count;
      if (const std::size_t odd = begin % alignment; odd > 0 && begin < n) {
        result.push_back({nullptr, std::min(n - begin, alignment - odd)});
        begin += result.back().count;
      }
    }
    return result;
  };
  const auto pieces = pieces_with(1024), odd_pieces = pieces_with(1023);
  const double bytes = 4.0 * static_cast<double>(n);
  // A copy reads and writes: half of its time counts as one read.
  const double copy =
      seconds(card, stream, rounds, [&] { done(drun_gpu_copy(other.get(), data.get(), 4 * n, stream)); });
  const double bandwidth = 2 * bytes / copy;
  std::printf("%zu f32, %d rounds; a copy on the device: %.0f GB/s read and written\n\n", n, rounds, bandwidth / 1e9);
  std::printf("| kernel | time (us) | GB/s | of the copy's | aim | |\n|---|---:|---:|---:|---:|---|\n");
  const auto row = [&](const char* name, double moved, const std::function<void()>& work) {
    const double took = seconds(card, stream, rounds, work), share = moved / took / bandwidth;
    std::printf("| %s | %.1f | %.0f | %.0f %% | 85 %% | %s |\n", name, 1e6 * took, moved / took / 1e9, 100 * share,
                share >= 0.85 ? "met" : "not met");
  };
  row("pack", 2 * bytes, [&] { done(drun_gpu_pack(pieces.data(), pieces.size(), DRUN_FLOAT32, other.get(), stream)); });
  row("unpack", 2 * bytes,
      [&] { done(drun_gpu_unpack(other.get(), pieces.data(), pieces.size(), DRUN_FLOAT32, stream)); });
  row("pack, odd lengths", 2 * bytes,
      [&] { done(drun_gpu_pack(odd_pieces.data(), odd_pieces.size(), DRUN_FLOAT32, other.get(), stream)); });
  row("unpack, odd lengths", 2 * bytes,
      [&] { done(drun_gpu_unpack(other.get(), odd_pieces.data(), odd_pieces.size(), DRUN_FLOAT32, stream)); });
  row("pack to bf16, odd lengths", 1.5 * bytes, [&] {
    done(drun_gpu_narrow(odd_pieces.data(), odd_pieces.size(), DRUN_FLOAT32, 4, 1e4, halves.get(), DRUN_BFLOAT16,
                         counter.get(), stream));
  });
  for (const drun_dtype half : {DRUN_FLOAT16, DRUN_BFLOAT16}) {
    row(half == DRUN_FLOAT16 ? "pack to f16" : "pack to bf16", 1.5 * bytes, [&] {
      done(drun_gpu_narrow(pieces.data(), pieces.size(), DRUN_FLOAT32, 4, 1e4, halves.get(), half, counter.get(),
                           stream));
    });
    row(half == DRUN_FLOAT16 ? "unpack from f16" : "unpack from bf16", 1.5 * bytes,
        [&] { done(drun_gpu_widen(halves.get(), half, 4, pieces.data(), pieces.size(), DRUN_FLOAT32, stream)); });
  }
  row("scale", 2 * bytes, [&] { done(drun_gpu_scale(other.get(), n, DRUN_FLOAT32, 1, stream)); });
  row("add", 3 * bytes, [&] { done(drun_gpu_add(other.get(), data.get(), n, DRUN_FLOAT32, stream)); });
  // Expected: 3 to 3.6 for the top K, and 2 to 3 for a threshold (docs/gpu.md).
  const auto reads = [&](const char* name, const std::function<void()>& work) {
    const double took = seconds(card, stream, rounds, work), n_reads = took / (copy / 2);
    std::printf("| %s | %.1f | | %.1f reads of all | 4 | %s |\n", name, 1e6 * took, n_reads,
                n_reads <= 4 ? "met" : "not met");
  };
  data.put(given, stream);
  reads("top K, a hundredth", [&] {
    done(drun_gpu_find_top_k(data.get(), n, DRUN_FLOAT32, n / 100, selection.get(), stream));
    done(drun_gpu_take(data.get(), n, DRUN_FLOAT32, selection.get(), indices.get(), DRUN_UINT32, other.get(), stream));
  });
  reads("threshold", [&] {
    done(drun_gpu_find_threshold(data.get(), n, DRUN_FLOAT32, 0.5, selection.get(), stream));
    done(drun_gpu_take(data.get(), n, DRUN_FLOAT32, selection.get(), indices.get(), DRUN_UINT32, other.get(), stream));
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t most = 10'000'000, n = 25'000'000;
  int rounds = 20;
  const std::string what = argc > 1 ? argv[1] : "";
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const auto value = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--most") most = value;
    if (option == "--elements") n = value;
    if (option == "--rounds") rounds = static_cast<int>(value);
  }
  if (what == "check") {
    check(Card::open(0), most);
  } else if (what == "capture") {
    capture(Card::open(0));
  } else if (what == "speed") {
    speed(Card::open(0), n, rounds);
  } else {
    std::fprintf(stderr,
                 "usage: drun_gpu_kernels check [--most ELEMENTS] | capture | speed [--elements N] [--rounds N]\n");
    return 2;
  }
  return 0;
}
