// The kernels on a fake of NVIDIA's driver, which runs the work of every thread on the processor, in several orders.
// Results are compared bit by bit with the host's loops, and with double precision.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/include/drun/gpu.h"
#include "runtime/include/drun/training/compression.hpp"
#include "runtime/include/drun/training/selection.hpp"
#include "runtime/src/gpu/driver.h"
#include "runtime/src/gpu/kernel_image.h"
#include "runtime/src/gpu/kernels/arguments.h"
#include "runtime/src/gpu/kernels/sample.h"
#include "tests/contains.h"
#include "tests/unit/runtime/fake_gpu.h"

namespace drun::runtime {
namespace {

using testing::Array;
using testing::fake;

#define ASSERT_OK(call) ASSERT_EQ(call, DRUN_OK) << drun_last_error()

template <typename T>
constexpr drun_dtype kDtype = sizeof(T) == 4 ? DRUN_FLOAT32 : DRUN_FLOAT64;
template <typename T>
constexpr drun_dtype kIndexType = sizeof(T) == 4 ? DRUN_UINT32 : DRUN_UINT64;
constexpr std::size_t kSizes[] = {1, 2, 7, 255, 256, 4095, 4096, 4097, 8192, 50'001};

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Numbers of all magnitudes, most of them below 1.
template <typename T>
std::vector<T> numbers(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> out(n);
  for (T& value : out) value = static_cast<T>(std::exp(2 * normal(random) - 4) * normal(random));
  return out;
}

class GpuKernels : public ::testing::Test {
 protected:
  void SetUp() override { fake(); }
  void TearDown() override {
    ::unsetenv("DRUN_FAKE_CUDA");
    EXPECT_EQ(fake().n_contexts(), 0);
  }
  const testing::KernelsForTests kernels_;
};

template <typename T>
void pack_and_unpack(drun_dtype dtype) {
  std::mt19937 random(sizeof(T));
  std::vector<Array<T>> arrays;
  std::vector<drun_gpu_piece> pieces, targets;
  std::vector<T> all;
  std::vector<Array<T>> others;
  const std::size_t n_pieces = 2 * gpu::kMaxPieces + 5;
  for (std::size_t i = 0; i < n_pieces; ++i) {
    const std::size_t n = i == 3 ? 3 * gpu::kChunk + 5 : i % 7 == 0 ? 0 : random() % 300, offset = random() % 5;
    if (i % 5 == 4) {
      const std::size_t n_gap = i == 4 ? gpu::kChunk + 3 : n;
      arrays.emplace_back(0, 0);
      others.emplace_back(0, 0);
      pieces.push_back({nullptr, n_gap});
      targets.push_back({nullptr, n_gap});
      all.insert(all.end(), n_gap, T{0});
      continue;
    }
    std::vector<T> values(n);
    for (T& value : values) value = static_cast<T>(random());
    arrays.emplace_back(values, offset);
    others.emplace_back(n, offset + 1);
    pieces.push_back({arrays.back().get(), n});
    targets.push_back({others.back().get(), n});
    all.insert(all.end(), values.begin(), values.end());
  }
  for (const std::size_t offset : {0u, 1u}) {
    const Array<T> bucket(std::vector<T>(all.size(), T{77}), offset);
    ASSERT_OK(drun_gpu_pack(pieces.data(), pieces.size(), dtype, bucket.get(), nullptr));
    EXPECT_EQ(bucket.values(), all);
    ASSERT_OK(drun_gpu_unpack(bucket.get(), targets.data(), targets.size(), dtype, nullptr));
    for (std::size_t i = 0; i < n_pieces; ++i) EXPECT_EQ(others[i].values(), arrays[i].values()) << i;
  }
}

TEST_F(GpuKernels, PackAndUnpackMoveEveryByteToItsPlace) {
  pack_and_unpack<std::uint8_t>(DRUN_INT8);
  pack_and_unpack<std::uint16_t>(DRUN_BFLOAT16);
  pack_and_unpack<std::uint32_t>(DRUN_FLOAT32);
  pack_and_unpack<std::uint64_t>(DRUN_UINT64);
}

// Includes infinities, NaNs, and numbers whose sum is too large for a half.
template <typename T>
std::vector<T> awkward_numbers(std::size_t n) {
  auto out = numbers<T>(n, 5);
  const T awkward[] = {0,
                       static_cast<T>(-0.0),
                       65504,
                       70000,
                       static_cast<T>(-1e6),
                       static_cast<T>(3e-8),
                       static_cast<T>(1e-6),
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::denorm_min(),
                       static_cast<T>(1 + 0x1p-11),
                       static_cast<T>(1 + 3 * 0x1p-11)};
  for (std::size_t i = 0; i < n && i < std::size(awkward); ++i) out[(i * 37) % n] = awkward[i];
  return out;
}

template <typename Half, typename T>
void narrow_and_widen() {
  for (const std::size_t n : kSizes) {
    for (const std::size_t offset : {0u, 3u}) {
      constexpr int kRanks = 3;
      const auto given = awkward_numbers<T>(n);
      std::vector<std::uint16_t> expected(n);
      const std::uint64_t n_cut = training::narrow<Half>(given.data(), n, kRanks, expected.data());
      const Array<T> values(given, offset);
      constexpr std::size_t kGap = 5;
      expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(n / 2), kGap, 0);
      const Array<std::uint16_t> halves(std::vector<std::uint16_t>(n + kGap, 77), offset);
      const Array<std::uint64_t> counted(std::vector<std::uint64_t>{100});
      const drun_gpu_piece pieces[] = {{values.get(), n / 2}, {nullptr, kGap}, {values.get() + n / 2, n - n / 2}};
      ASSERT_OK(drun_gpu_narrow(pieces, 3, kDtype<T>, kRanks, static_cast<double>(training::largest_of<Half>(kRanks)),
                                halves.get(), Half::kDtype, counted.get(), nullptr));
      EXPECT_EQ(halves.values(), expected) << n;
      EXPECT_EQ(counted.values().front(), 100 + n_cut) << n;
      if (n > 100) {
        EXPECT_GT(n_cut, 0u);
      }

      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(n / 2),
                     expected.begin() + static_cast<std::ptrdiff_t>(n / 2 + kGap));
      ASSERT_OK(drun_gpu_widen(halves.get(), Half::kDtype, kRanks, pieces, 3, kDtype<T>, nullptr));
      std::vector<T> back(n);
      training::widen<Half>(expected.data(), n, static_cast<T>(kRanks), back.data());
      EXPECT_TRUE(same_bits(values.values(), back)) << n;
      // Half a unit in the last place of the half; for subnormal halves, half of the smallest one.
      const double relative = Half::kDtype == DRUN_FLOAT16 ? 0x1p-11 : 0x1p-8;
      for (std::size_t i = 0; i < n; ++i) {
        const double exact = static_cast<double>(given[i]);
        if (!(std::fabs(exact) < 60000)) continue;
        EXPECT_LE(std::fabs(static_cast<double>(back[i]) - exact), 1.001 * relative * std::fabs(exact) + 3 * 0x1p-25)
            << i;
      }
    }
  }
}

TEST_F(GpuKernels, NarrowAndWidenAreThoseOfTheHost) {
  narrow_and_widen<training::Float16, float>();
  narrow_and_widen<training::Bfloat16, float>();
  narrow_and_widen<training::Float16, double>();
  narrow_and_widen<training::Bfloat16, double>();
}

template <typename T>
void elementwise() {
  for (const std::size_t n : kSizes) {
    const auto a = numbers<T>(n, 1), b = numbers<T>(n, 2);
    const Array<T> data(a, 1), other(b, n % 2);
    std::vector<T> expected(n);
    ASSERT_OK(drun_gpu_add(data.get(), other.get(), n, kDtype<T>, nullptr));
    for (std::size_t i = 0; i < n; ++i) expected[i] = a[i] + b[i];
    EXPECT_TRUE(same_bits(data.values(), expected)) << n;
    ASSERT_OK(drun_gpu_divide(data.get(), n, kDtype<T>, 3, nullptr));
    for (T& value : expected) value /= 3;
    EXPECT_TRUE(same_bits(data.values(), expected)) << n;
    ASSERT_OK(drun_gpu_scale(data.get(), n, kDtype<T>, 0.7, nullptr));
    for (T& value : expected) value *= static_cast<T>(0.7);
    EXPECT_TRUE(same_bits(data.values(), expected)) << n;
  }
}

TEST_F(GpuKernels, ScaleDivideAndAdd) {
  elementwise<float>();
  elementwise<double>();
  const auto given = numbers<float>(9000, 3);
  std::vector<std::uint16_t> f16, bf16, f16_scaled, bf16_scaled;
  for (const float value : given) {
    f16.push_back(training::Float16::narrow(value));
    bf16.push_back(training::Bfloat16::narrow(value));
    f16_scaled.push_back(training::Float16::narrow(training::Float16::widen(f16.back()) * 0.7f));
    bf16_scaled.push_back(training::Bfloat16::narrow(training::Bfloat16::widen(bf16.back()) * 0.7f));
  }
  const Array<std::uint16_t> first(f16), second(bf16, 1);
  ASSERT_OK(drun_gpu_scale(first.get(), f16.size(), DRUN_FLOAT16, 0.7, nullptr));
  ASSERT_OK(drun_gpu_scale(second.get(), bf16.size(), DRUN_BFLOAT16, 0.7, nullptr));
  EXPECT_EQ(first.values(), f16_scaled);
  EXPECT_EQ(second.values(), bf16_scaled);
}

// The device must choose the elements that the host chooses, and return their values bit by bit.
template <typename T, typename Index>
void expect_chosen(const std::vector<T>& given, const Array<T>& values, const Array<char>& selection,
                   const std::vector<Index>& expected) {
  const std::size_t n = given.size();
  std::uint64_t n_chosen = 0;
  ASSERT_OK(drun_gpu_read(&n_chosen, selection.get(), sizeof n_chosen, nullptr));
  ASSERT_EQ(n_chosen, expected.size());
  const Array<Index> indices(expected.size());
  const Array<T> chosen(expected.size());
  ASSERT_OK(drun_gpu_take(values.get(), n, kDtype<T>, selection.get(), indices.get(), kIndexType<Index>, chosen.get(),
                          nullptr));
  EXPECT_EQ(indices.values(), expected);
  std::vector<T> expected_values;
  for (const Index i : expected) expected_values.push_back(given[i]);
  EXPECT_TRUE(same_bits(chosen.values(), expected_values));
}

template <typename T, typename Index>
void expect_top_k(const std::vector<T>& given, std::size_t k) {
  SCOPED_TRACE(std::to_string(k) + " of " + std::to_string(given.size()));
  const Array<T> values(given, 1);
  const Array<char> selection(std::vector<char>(drun_gpu_selection_bytes(given.size()), 'x'));
  ASSERT_OK(drun_gpu_find_top_k(values.get(), given.size(), kDtype<T>, k, selection.get(), nullptr));
  std::vector<Index> expected;
  std::vector<decltype(training::magnitude(T{}))> scratch;
  training::select_top_k(given.data(), given.size(), k, expected, scratch);
  ASSERT_EQ(expected.size(), std::min(k, given.size()));
  expect_chosen(given, values, selection, expected);
  // In double precision, no element that was left out is larger than one that was chosen.
  double least = std::numeric_limits<double>::infinity(), most = -1;
  std::vector<bool> is_taken(given.size());
  for (const Index i : expected) is_taken[i] = true;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const double absolute = std::fabs(static_cast<double>(given[i]));
    if (is_taken[i]) least = std::min(least, absolute);
    if (!is_taken[i]) most = std::max(most, absolute);
  }
  EXPECT_GE(least, most);
}

template <typename T, typename Index>
void top_k(const std::vector<std::size_t>& sizes) {
  for (const std::size_t n : sizes) {
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}, n / 100, n / 2, n - 1, n, n + 1}) {
      expect_top_k<T, Index>(numbers<T>(n, static_cast<unsigned>(n)), k);
    }
  }
  // Among equal values the first ones are chosen.
  std::vector<T> few_values(10'000);
  for (std::size_t i = 0; i < few_values.size(); ++i) few_values[i] = static_cast<T>(static_cast<int>(i * i % 7) - 3);
  for (const std::size_t k : {1u, 1000u, 4321u, 9999u}) expect_top_k<T, Index>(few_values, k);
  expect_top_k<T, Index>(std::vector<T>(9000), 5000);
  expect_top_k<T, Index>(std::vector<T>(9000, std::numeric_limits<T>::denorm_min()), 4097);
}

TEST_F(GpuKernels, TopKIsThatOfTheHost) {
  top_k<float, std::uint32_t>({std::begin(kSizes), std::end(kSizes)});
  top_k<float, std::uint64_t>({4097});
  top_k<double, std::uint32_t>({4097});
  top_k<double, std::uint64_t>({1, 256, 50'001});
}

// Returns the Selection after the top K have been found.
template <typename T>
gpu::Selection selection_of(const std::vector<T>& given, std::size_t k) {
  const Array<T> values(given);
  const Array<char> selection(std::vector<char>(drun_gpu_selection_bytes(given.size()), 'x'));
  gpu::Selection known{};
  EXPECT_EQ(drun_gpu_find_top_k(values.get(), given.size(), kDtype<T>, k, selection.get(), nullptr), DRUN_OK);
  EXPECT_EQ(drun_gpu_read(&known, selection.get(), sizeof known, nullptr), DRUN_OK);
  return known;
}

template <typename T, typename Index>
void top_k_of_list(const std::vector<T>& given, std::size_t k) {
  expect_top_k<T, Index>(given, k);
  const auto known = selection_of(given, k);
  EXPECT_EQ(known.source, gpu::Source::kList) << "all values were looked at more than once";
  EXPECT_GE(known.n_listed, k);
  EXPECT_LE(known.n_listed, given.size() / 8 + 1);
}

TEST_F(GpuKernels, AFewLargestAreListedAndTheRestIsLookedAtOnce) {
  const std::size_t n = 150'001;
  for (const std::size_t k : {std::size_t{1}, n / 1000, n / 100, n / 25}) {
    top_k_of_list<float, std::uint32_t>(numbers<float>(n, 9), k);
  }
  top_k_of_list<double, std::uint64_t>(numbers<double>(n, 10), n / 100);
  // Values of a single width: there is no gap between powers of two, for any width.
  std::mt19937_64 random(14);
  std::normal_distribution<double> normal;
  for (const double width : {1.0, 1.2, 1.4, 1.7, 1e-40, 3e38}) {
    const bool is_of_f32 = width > 0.5 && width < 2;  // other f64 values are distinguished less well
    std::vector<double> given(n);
    for (double& value : given) value = width * normal(random);
    if (!is_of_f32) expect_top_k<double, std::uint32_t>(given, n / 100);
    if (is_of_f32) top_k_of_list<double, std::uint32_t>(given, n / 100);
    if (is_of_f32) top_k_of_list<float, std::uint32_t>({given.begin(), given.end()}, n / 25);
  }
  // Layers of a bucket: nearly all large values are neighbors. Columns: large values at equal distances.
  auto layers = numbers<float>(n, 11), columns = layers;
  for (std::size_t i = 70'000; i < 72'000; ++i) layers[i] *= 1000;
  for (std::size_t i = 0; i < n; i += 64) columns[i] = 100 + columns[i];
  top_k_of_list<float, std::uint32_t>(layers, n / 100);
  top_k_of_list<float, std::uint32_t>(columns, n / 100);
  // Many values equal to the smallest chosen one; and zeros with a few exceptions.
  std::vector<float> steps(n), few(n);
  for (std::size_t i = 0; i < n; ++i) steps[i] = i % 50 == 7 ? -2 : 1;
  for (std::size_t i = 0; i < n; i += 10) few[i] = static_cast<float>(i);
  top_k_of_list<float, std::uint32_t>(steps, n / 100);
  top_k_of_list<float, std::uint32_t>(few, n / 100);
}

TEST_F(GpuKernels, OfManyASixtyFourthIsSampled) {
  const std::size_t n = (std::size_t{5} << 20) + 77;
  for (const std::size_t k : {n / 100, n / 25}) top_k_of_list<float, std::uint32_t>(numbers<float>(n, 15), k);
  top_k_of_list<double, std::uint32_t>(numbers<double>(n, 16), n / 100);
}

// Samples are in range and distinct, because groups are in ascending order.
TEST_F(GpuKernels, SamplesAreOfAllParts) {
  constexpr std::uint64_t kGroup = gpu::kSampleGroup;
  for (const std::uint64_t n : {(std::uint64_t{1} << 22) + 33, std::uint64_t{25'000'000}, (std::uint64_t{1} << 32) + 5,
                                std::uint64_t{1} << 39}) {
    const std::uint64_t n_groups = n / 64 / kGroup, step = n_groups / 1000 + 1;
    for (std::uint64_t group = 0; group + 1 < n_groups; group += step) {
      const auto first = gpu::sampled(n, n_groups * kGroup, group * kGroup);
      ASSERT_LT(first, gpu::sampled(n, n_groups * kGroup, (group + 1) * kGroup)) << n << " " << group;
      ASSERT_EQ(first % kGroup, 0u);
      ASSERT_EQ(gpu::sampled(n, n_groups * kGroup, group * kGroup + 31), first + 31);
      ASSERT_GE(first, group * 64 * kGroup);
    }
    ASSERT_LT(gpu::sampled(n, n_groups * kGroup, n_groups * kGroup - 1), n);
  }
}

// The result doesn't depend on the sample: here only sampled values are large, or many values outside the sample are,
// too.
TEST_F(GpuKernels, AListThatIsTooShortOrTooLongIsNotUsed) {
  const std::size_t n = 1 << 17, n_sampled = 1 << 16, k = n / 20, max_listed = n / 8;
  std::vector<float> too_short = numbers<float>(n, 12);
  for (float& value : too_short) value = std::fmod(value, 1.0f);
  std::vector<bool> is_sampled(n);
  for (std::size_t i = 0; i < n_sampled; ++i) {
    const auto place = gpu::sampled(n, n_sampled, i);
    ASSERT_LT(place, n);
    ASSERT_FALSE(is_sampled[place]);
    is_sampled[place] = true;
    if (i < k - 1000) too_short[place] += 2;
  }
  auto too_long = too_short;
  for (std::size_t i = 0, n_more = 0; i < n && n_more < max_listed; ++i) {
    if (!is_sampled[i]) too_long[i] += 2, ++n_more;
  }
  for (const auto& given : {too_short, too_long}) {
    expect_top_k<float, std::uint32_t>(given, k);
    const auto known = selection_of(given, k);
    EXPECT_EQ(known.source, gpu::Source::kValues);
    EXPECT_GT(known.pivot, 0u) << "there was no list at all";
  }
  EXPECT_LT(selection_of(too_short, k).n_listed, k);
  EXPECT_GT(selection_of(too_long, k).n_listed, max_listed + 1);
  // No list is started if it would not help.
  EXPECT_EQ(selection_of(std::vector<float>(n, 1), k).n_listed, 0u);
  EXPECT_EQ(selection_of(numbers<float>(n, 13), n / 2).n_listed, 0u);
}

TEST_F(GpuKernels, WhatIsNoNumberIsAmongTheLargest) {
  auto given = numbers<float>(5000, 8);
  given[4999] = std::numeric_limits<float>::quiet_NaN();
  given[17] = -std::numeric_limits<float>::quiet_NaN();
  given[300] = -std::numeric_limits<float>::infinity();
  const Array<float> values(given);
  const Array<char> selection(drun_gpu_selection_bytes(given.size()));
  ASSERT_OK(drun_gpu_find_top_k(values.get(), given.size(), DRUN_FLOAT32, 3, selection.get(), nullptr));
  expect_chosen<float, std::uint32_t>(given, values, selection, {17, 300, 4999});
  ASSERT_OK(drun_gpu_find_threshold(values.get(), given.size(), DRUN_FLOAT32, 1e30, selection.get(), nullptr));
  expect_chosen<float, std::uint32_t>(given, values, selection, {17, 300, 4999});
}

template <typename T, typename Index>
void threshold() {
  for (const std::size_t n : kSizes) {
    const auto given = numbers<T>(n, static_cast<unsigned>(n) + 1);
    for (const double value : {0.0, 0.02, 0.9, 1e9}) {
      SCOPED_TRACE(std::to_string(n) + " at " + std::to_string(value));
      const Array<T> values(given);
      const Array<char> selection(std::vector<char>(drun_gpu_selection_bytes(n), 'x'));
      ASSERT_OK(drun_gpu_find_threshold(values.get(), n, kDtype<T>, value, selection.get(), nullptr));
      std::vector<Index> expected;
      training::select_threshold(given.data(), n, value, expected);
      expect_chosen(given, values, selection, expected);
    }
  }
}

TEST_F(GpuKernels, ThresholdIsThatOfTheHost) {
  threshold<float, std::uint32_t>();
  threshold<double, std::uint64_t>();
  // Values exactly at the threshold are chosen; a slightly smaller one is not, although the threshold is an f64.
  const std::vector<float> given = {0.1f, -0.1f, 0.0999999f, 0};
  const Array<float> values(given);
  const Array<char> selection(drun_gpu_selection_bytes(given.size()));
  ASSERT_OK(
      drun_gpu_find_threshold(values.get(), 4, DRUN_FLOAT32, static_cast<double>(0.1f), selection.get(), nullptr));
  expect_chosen<float, std::uint32_t>(given, values, selection, {0, 1});
}

TEST_F(GpuKernels, NoValuesAreFine) {
  const Array<float> values(std::size_t{1});
  const Array<char> selection(std::vector<char>(drun_gpu_selection_bytes(0), 'x'));
  ASSERT_OK(drun_gpu_find_top_k(values.get(), 0, DRUN_FLOAT32, 3, selection.get(), nullptr));
  expect_chosen<float, std::uint32_t>({}, values, selection, {});
  ASSERT_OK(drun_gpu_pack(nullptr, 0, DRUN_FLOAT32, nullptr, nullptr));
  ASSERT_OK(drun_gpu_scale(nullptr, 0, DRUN_FLOAT32, 2, nullptr));
  ASSERT_OK(drun_gpu_scatter_add(nullptr, 0, DRUN_FLOAT32, nullptr, DRUN_UINT32, nullptr, 0, nullptr, nullptr));
  ASSERT_OK(drun_gpu_clear(nullptr, 0, nullptr));
}

template <typename T, typename Index>
void scatter() {
  constexpr std::size_t kCount = 20'000;
  auto expected = numbers<T>(kCount, 1);
  const Array<T> data(expected, 1);
  const Array<std::uint64_t> n_bad(std::vector<std::uint64_t>{0});
  for (unsigned rank = 0; rank < 5; ++rank) {  // one after another, in the stream's order
    std::mt19937 random(rank);
    std::vector<Index> indices;
    for (Index i = 0; i < kCount; ++i) {
      if (random() % 10 == 0) indices.push_back(i);
    }
    const auto values = numbers<T>(indices.size(), rank + 10);
    for (std::size_t i = 0; i < indices.size(); ++i) expected[indices[i]] += values[i];
    const Array<Index> on_device(indices);
    const Array<T> of_values(values);
    ASSERT_OK(drun_gpu_scatter_add(data.get(), kCount, kDtype<T>, on_device.get(), kIndexType<Index>, of_values.get(),
                                   indices.size(), n_bad.get(), nullptr));
    EXPECT_TRUE(same_bits(data.values(), expected)) << rank;
  }
  EXPECT_EQ(n_bad.values().front(), 0u);

  const Array<Index> wild(std::vector<Index>{3, kCount - 1, kCount, ~Index{0}});
  ASSERT_OK(
      drun_gpu_scatter_zero(data.get(), kCount, kDtype<T>, wild.get(), kIndexType<Index>, 4, n_bad.get(), nullptr));
  expected[3] = expected[kCount - 1] = 0;
  EXPECT_TRUE(same_bits(data.values(), expected));
  EXPECT_EQ(n_bad.values().front(), 2u);
}

TEST_F(GpuKernels, ScatterAddsInTheOrderOfItsCalls) {
  scatter<float, std::uint32_t>();
  scatter<float, std::uint64_t>();
  scatter<double, std::uint32_t>();
  scatter<double, std::uint64_t>();
}

template <typename T>
void dots_and_adasum() {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{8192}, std::size_t{8193},
                              260 * std::size_t{8192} + 17}) {
    const auto a = numbers<T>(n, 11), b = numbers<T>(n, 12);
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double x = a[i], y = b[i];
      ab += x * y;
      aa += x * x;
      bb += y * y;
    }
    const Array<T> first(a, 1), second(b, 2), into(n, 3);
    const std::size_t n_doubles = drun_gpu_dots_bytes(n) / sizeof(double);
    std::vector<double> found;
    for (int repeat = 0; repeat < 3; ++repeat) {  // each time blocks and threads run in a different order
      const Array<double> dots(std::vector<double>(n_doubles, -1));
      ASSERT_OK(drun_gpu_dots(first.get(), second.get(), n, kDtype<T>, dots.get(), nullptr));
      auto values = dots.values();
      values.resize(3);
      if (repeat > 0) {
        EXPECT_TRUE(same_bits(values, found)) << n;
      }
      found = values;
      ASSERT_OK(drun_gpu_adasum(first.get(), second.get(), n, kDtype<T>, dots.get(), into.get(), nullptr));
    }
    EXPECT_NEAR(found[0], ab, 1e-12 * std::sqrt(aa * bb));
    EXPECT_NEAR(found[1], aa, 1e-12 * aa);
    EXPECT_NEAR(found[2], bb, 1e-12 * bb);
    // The same dot products give the same bits as algorithm/adasum.cpp.
    const double of_a = 1 - found[0] / (2 * found[1]), of_b = 1 - found[0] / (2 * found[2]);
    std::vector<T> sum(n);
    for (std::size_t i = 0; i < n; ++i) {
      sum[i] = static_cast<T>(of_a * static_cast<double>(a[i]) + of_b * static_cast<double>(b[i]));
    }
    EXPECT_TRUE(same_bits(into.values(), sum)) << n;
  }
  // In place, and with a vector of zeros.
  const std::vector<T> zeros(10), ones(10, T{1});
  const Array<T> nothing(zeros), one(ones);
  const Array<double> dots(std::vector<double>(drun_gpu_dots_bytes(10) / sizeof(double)));
  ASSERT_OK(drun_gpu_dots(nothing.get(), one.get(), 10, kDtype<T>, dots.get(), nullptr));
  ASSERT_OK(drun_gpu_adasum(nothing.get(), one.get(), 10, kDtype<T>, dots.get(), one.get(), nullptr));
  EXPECT_EQ(one.values(), ones);
  ASSERT_OK(drun_gpu_dots(one.get(), one.get(), 10, kDtype<T>, dots.get(), nullptr));
  ASSERT_OK(drun_gpu_adasum(one.get(), one.get(), 10, kDtype<T>, dots.get(), one.get(), nullptr));
  EXPECT_EQ(one.values(), ones);  // Adasum of a vector with itself
}

TEST_F(GpuKernels, DotsAndAdasumAreThoseOfTheHost) {
  dots_and_adasum<float>();
  dots_and_adasum<double>();
}

TEST_F(GpuKernels, ComeAfterTheWorkThatTheStreamHas) {
  const std::vector<float> late = {2, 3};
  const Array<float> data(std::vector<float>{0, 0});
  void* const stream = reinterpret_cast<void*>(0x77770);
  fake().write_later(stream, data.get(), late.data(), sizeof(float) * 2);
  ASSERT_OK(drun_gpu_scale(data.get(), 2, DRUN_FLOAT32, 10, stream));
  float read[2] = {};
  ASSERT_OK(drun_gpu_read(read, data.get(), sizeof read, stream));
  EXPECT_EQ(read[0], 20);
  EXPECT_EQ(read[1], 30);
  ASSERT_OK(drun_gpu_clear(data.get() + 1, sizeof(float), stream));
  ASSERT_OK(drun_gpu_copy(data.get(), data.get() + 1, sizeof(float), stream));
  ASSERT_OK(drun_gpu_read(read, data.get(), sizeof read, stream));
  EXPECT_EQ(read[0], 0);
}

TEST_F(GpuKernels, WhatCanNotBeDoneIsSaid) {
  const Array<float> data(std::vector<float>{1, 2});
  float on_host[2] = {1, 2};
  const auto says = [](int status, int expected, const std::string& text) {
    EXPECT_EQ(status, expected);
    EXPECT_TRUE(drun::testing::contains(drun_last_error(), text)) << drun_last_error();
  };
  says(drun_gpu_scale(on_host, 2, DRUN_FLOAT32, 2, nullptr), DRUN_ERROR_ARGUMENT,
       "drun_gpu_scale: data is not memory of a GPU");
  says(drun_gpu_scale(data.get(), 2, DRUN_INT32, 2, nullptr), DRUN_ERROR_ARGUMENT, "must be of a floating type");
  says(drun_gpu_divide(data.get(), 2, DRUN_FLOAT16, 2, nullptr), DRUN_ERROR_ARGUMENT, "must be f32 or f64");
  says(drun_gpu_add(data.get(), nullptr, 2, DRUN_FLOAT32, nullptr), DRUN_ERROR_ARGUMENT, "other is a null pointer");
  const drun_gpu_piece pieces[] = {{data.get(), 1}, {data.get() + 1, 1}};
  says(drun_gpu_pack(nullptr, 2, DRUN_FLOAT32, data.get(), nullptr), DRUN_ERROR_ARGUMENT, "pieces is a null pointer");
  says(drun_gpu_pack(pieces, 2, DRUN_FLOAT32, nullptr, nullptr), DRUN_ERROR_ARGUMENT, "bucket is a null pointer");
  says(drun_gpu_pack(pieces, 1, static_cast<drun_dtype>(77), data.get(), nullptr), DRUN_ERROR_ARGUMENT,
       "no element type 77");
  says(drun_gpu_narrow(pieces, 1, DRUN_FLOAT32, 1, 1, data.get(), DRUN_FLOAT32, reinterpret_cast<std::uint64_t*>(8),
                       nullptr),
       DRUN_ERROR_ARGUMENT, "the bucket must be of f16 or bf16");
  says(drun_gpu_take(data.get(), 2, DRUN_FLOAT32, data.get(), nullptr, DRUN_UINT32, data.get(), nullptr),
       DRUN_ERROR_ARGUMENT, "values, indices or chosen is a null pointer");
  says(drun_gpu_scatter_zero(data.get(), 2, DRUN_FLOAT32, data.get(), DRUN_INT32, 1, nullptr, nullptr),
       DRUN_ERROR_ARGUMENT, "indices must be u32 or u64");
  double on_host_dots[6] = {};
  says(drun_gpu_dots(data.get(), data.get(), 2, DRUN_FLOAT32, on_host_dots, nullptr), DRUN_ERROR_ARGUMENT,
       "drun_gpu_dots: dots is not memory of a GPU");
  says(drun_gpu_dots(data.get(), nullptr, 2, DRUN_FLOAT32, on_host_dots, nullptr), DRUN_ERROR_ARGUMENT,
       "a or b is a null pointer");
  says(drun_gpu_dots(data.get(), data.get(), 2, DRUN_FLOAT16, on_host_dots, nullptr), DRUN_ERROR_ARGUMENT,
       "must be f32 or f64");
  says(drun_gpu_adasum(data.get(), data.get(), 2, DRUN_FLOAT32, on_host_dots, nullptr, nullptr), DRUN_ERROR_ARGUMENT,
       "into is a null pointer");
  gpu::set_kernel_image(nullptr);
  says(drun_gpu_scale(data.get(), 2, DRUN_FLOAT32, 2, nullptr), DRUN_ERROR_UNSUPPORTED,
       "this build of libdrun has no kernels for GPUs: it was made without nvcc");
}

// Number of blocks that NCCL's allocator has handed out.
int fake_nccl_blocks() {
  int (*count)() = nullptr;
  void* const library = ::dlopen(FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
  testing::find(library, "fake_nccl_blocks", count);
  return count != nullptr ? count() : -1;
}

TEST_F(GpuKernels, AllocateMemoryOfBothKinds) {
  ::setenv("DRUN_NCCL_LIB", FAKE_NCCL, 1);
  void* memory = nullptr;
  EXPECT_EQ(drun_alloc(&memory, 100, DRUN_MEMORY_DEVICE), DRUN_ERROR_STATE);
  EXPECT_STREQ(drun_last_error(),
               "drun_alloc of 100 bytes: no GPU's context is current: choose one (cudaSetDevice) [state]");
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(drun_alloc(&memory, 100, DRUN_MEMORY_AUTO), DRUN_ERROR_ARGUMENT);
  ASSERT_OK(drun_alloc(&memory, 0, DRUN_MEMORY_DEVICE));
  EXPECT_EQ(memory, nullptr);
  ASSERT_OK(drun_free(nullptr));

  for (const std::size_t n_bytes : {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX - 4095, SIZE_MAX / 2 + 1}) {
    for (const auto kind : {DRUN_MEMORY_HOST, DRUN_MEMORY_DEVICE}) {
      EXPECT_EQ(drun_alloc(&memory, n_bytes, kind), DRUN_ERROR_SYSTEM) << n_bytes;
      EXPECT_EQ(drun_last_error(), "drun_alloc of " + std::to_string(n_bytes) + " bytes: out of memory [system]");
      EXPECT_EQ(memory, nullptr);
    }
  }
  EXPECT_GT(drun_gpu_selection_bytes(SIZE_MAX), drun_gpu_selection_bytes(SIZE_MAX / 2)) << "it does not wrap around";
  ASSERT_OK(drun_alloc(&memory, 100, DRUN_MEMORY_HOST));
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(drun_memory_kind(memory), DRUN_MEMORY_HOST);
  std::memset(memory, 1, 100);
  ASSERT_OK(drun_free(memory));
  EXPECT_EQ(drun_free(memory), DRUN_ERROR_ARGUMENT);

  const gpu::Driver& driver = *gpu::loaded_driver();
  gpu::Context context = nullptr;
  ASSERT_EQ(driver.primary_context_retain(&context, 0), 0);
  ASSERT_EQ(driver.context_push(context), 0);
  const int n_pinned = fake().n_pinned();
  ASSERT_OK(drun_alloc(&memory, 100, DRUN_MEMORY_HOST));
  EXPECT_EQ(fake().n_pinned(), n_pinned + 1);
  ASSERT_OK(drun_free(memory));
  EXPECT_EQ(fake().n_pinned(), n_pinned);

  constexpr std::size_t kLarge = std::size_t{4} << 20;
  ASSERT_OK(drun_alloc(&memory, kLarge, DRUN_MEMORY_DEVICE));
  EXPECT_EQ(drun_memory_kind(memory), DRUN_MEMORY_DEVICE);
  EXPECT_EQ(drun_memory_gpu(memory), 0);
  EXPECT_EQ(fake_nccl_blocks(), 1);
  ASSERT_OK(drun_free(memory));
  EXPECT_EQ(fake_nccl_blocks(), 0);
  // The driver allocates small memory, and memory that NCCL can't allocate.
  ASSERT_OK(drun_alloc(&memory, kLarge - 1, DRUN_MEMORY_DEVICE));
  EXPECT_EQ(fake_nccl_blocks(), 0);
  EXPECT_EQ(drun_memory_kind(memory), DRUN_MEMORY_DEVICE);
  ASSERT_OK(drun_free(memory));
  ::setenv("DRUN_FAKE_NCCL", "no-memory", 1);
  ASSERT_OK(drun_alloc(&memory, kLarge, DRUN_MEMORY_DEVICE));
  ::unsetenv("DRUN_FAKE_NCCL");
  EXPECT_EQ(fake_nccl_blocks(), 0);
  EXPECT_EQ(drun_memory_kind(memory), DRUN_MEMORY_DEVICE);
  ASSERT_OK(drun_free(memory));
  ASSERT_EQ(driver.context_pop(&context), 0);
  ::unsetenv("DRUN_NCCL_LIB");
}

TEST_F(GpuKernels, AllocateWhereOtherMemoryIs) {
  const Array<float> there(3);
  void* memory = nullptr;
  ASSERT_OK(drun_alloc_like(&memory, 100, there.get()));  // no context is current
  EXPECT_EQ(drun_memory_kind(memory), DRUN_MEMORY_DEVICE);
  ASSERT_OK(drun_free(memory));
  float here[3] = {};
  ASSERT_OK(drun_alloc_like(&memory, 100, here));
  EXPECT_EQ(drun_memory_kind(memory), DRUN_MEMORY_HOST);
  EXPECT_EQ(drun_memory_gpu(memory), -1);
  ASSERT_OK(drun_free(memory));
}

// Uses the other GPU of the fake driver.
TEST_F(GpuKernels, AGpuThatTheyAreNotForIsSaid) {
  const Array<float> data(std::vector<float>{1, 2});
  fake().put_on(data.get(), 1);
  EXPECT_EQ(drun_memory_gpu(data.get()), 1);
  ::setenv("DRUN_FAKE_CUDA", "no-kernels", 1);
  EXPECT_EQ(drun_gpu_scale(data.get(), 2, DRUN_FLOAT32, 2, nullptr), DRUN_ERROR_UNSUPPORTED);
  EXPECT_TRUE(drun::testing::contains(drun_last_error(),
                                      "this build of libdrun has no kernels for this GPU, or its driver is too old for "
                                      "them (CUDA_ERROR_NO_BINARY_FOR_GPU)"))
      << drun_last_error();
  // Moving elements needs no kernel.
  const Array<float> one(std::vector<float>{3}), bucket(std::vector<float>{7, 7, 7, 7}), back(std::vector<float>{0, 0});
  for (const auto* array : {&one, &bucket, &back}) fake().put_on(array->get(), 1);
  const drun_gpu_piece pieces[] = {{data.get(), 2}, {nullptr, 1}, {one.get(), 1}};
  const drun_gpu_piece others[] = {{nullptr, 2}, {back.get(), 2}};
  ASSERT_OK(drun_gpu_pack(pieces, 3, DRUN_FLOAT32, bucket.get(), nullptr));
  EXPECT_EQ(bucket.values(), (std::vector<float>{1, 2, 0, 3}));
  ASSERT_OK(drun_gpu_unpack(bucket.get(), others, 2, DRUN_FLOAT32, nullptr));
  EXPECT_EQ(back.values(), (std::vector<float>{0, 3}));
  ::unsetenv("DRUN_FAKE_CUDA");
  ASSERT_OK(drun_gpu_scale(data.get(), 2, DRUN_FLOAT32, 2, nullptr));  // a failed load is tried again
  EXPECT_EQ(data.values(), (std::vector<float>{2, 4}));
}

}  // namespace
}  // namespace drun::runtime
