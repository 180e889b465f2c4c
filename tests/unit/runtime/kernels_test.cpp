// A loop gives the same bits for every instruction set that it is compiled for.
#include "runtime/src/kernels/kernels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/src/dtype.h"

namespace drun::runtime {
namespace {

// All bit patterns, including NaNs, infinities and subnormals.
std::vector<char> noise(std::size_t n_bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<char> result(n_bytes);
  for (char& c : result) c = static_cast<char>(random());
  return result;
}

// The processor chooses between two NaNs by the order of operands, which the compiler may swap.
void without_nans(std::vector<char>& bytes, drun_dtype dtype) {
  const auto quiet = [&](auto tag) {
    for (std::size_t i = 0; i + sizeof tag <= bytes.size(); i += sizeof tag) {
      std::memcpy(&tag, bytes.data() + i, sizeof tag);
      if (tag == tag) continue;
      tag = 1;
      std::memcpy(bytes.data() + i, &tag, sizeof tag);
    }
  };
  if (dtype == DRUN_FLOAT32) quiet(float{});
  if (dtype == DRUN_FLOAT64) quiet(double{});
}

class EachKernels : public ::testing::TestWithParam<NamedKernels> {};

TEST_P(EachKernels, GiveThePlainOnesBits) {
  const Kernels& tested = *GetParam().kernels;
  for (const std::size_t count : {0, 1, 3, 7, 16, 17, 63, 64, 65, 1000, 4099}) {
    for (int type = 0; type < 10; ++type) {
      const auto dtype = static_cast<drun_dtype>(type);
      if (reduced_as(dtype) != dtype) continue;
      const std::size_t n_bytes = count * size_of(dtype);
      auto a = noise(n_bytes + 1, 7), b = noise(n_bytes + 1, 8);
      a.erase(a.begin());  // unaligned values
      b.erase(b.begin());
      without_nans(a, dtype);
      without_nans(b, dtype);
      const std::string what = std::string(name_of(dtype)) + ", " + std::to_string(count);
      for (const auto op : {DRUN_SUM, DRUN_PROD, DRUN_MIN, DRUN_MAX, DRUN_AVG}) {
        auto expected = a, apart = a, into_a = a, into_b = b;
        kPlainKernels.combine(expected.data(), a.data(), b.data(), count, dtype, op);
        tested.combine(apart.data(), a.data(), b.data(), count, dtype, op);
        tested.combine(into_a.data(), into_a.data(), b.data(), count, dtype, op);
        tested.combine(into_b.data(), a.data(), into_b.data(), count, dtype, op);
        without_nans(expected, dtype);  // from infinity - infinity
        for (auto* got : {&apart, &into_a, &into_b}) {
          without_nans(*got, dtype);
          EXPECT_EQ(*got, expected) << what << ", " << name_of(op);
        }
      }
      auto expected = a, got = a;
      kPlainKernels.divide(expected.data(), count, dtype, 7);
      tested.divide(got.data(), count, dtype, 7);
      EXPECT_EQ(got, expected) << what << ", divided";
      kPlainKernels.scale(expected.data(), count, dtype, 0.3);
      tested.scale(got.data(), count, dtype, 0.3);
      EXPECT_EQ(got, expected) << what << ", scaled";
    }
  }
}

TEST_P(EachKernels, WidenAndNarrowEveryHalfAlike) {
  const Kernels& tested = *GetParam().kernels;
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  auto bits = noise(4 * 100'000, 9);
  std::vector<float> floats(100'000);
  std::memcpy(floats.data(), bits.data(), bits.size());
  for (const auto dtype : {DRUN_FLOAT16, DRUN_BFLOAT16}) {
    std::vector<float> expected(all.size()), got(all.size());
    kPlainKernels.widen(all.data(), dtype, expected.data(), all.size());
    tested.widen(all.data(), dtype, got.data(), all.size());
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0) << name_of(dtype);
    std::vector<std::uint16_t> expected_halves(floats.size()), got_halves(floats.size());
    kPlainKernels.narrow(floats.data(), expected_halves.data(), dtype, floats.size());
    tested.narrow(floats.data(), got_halves.data(), dtype, floats.size());
    EXPECT_EQ(got_halves, expected_halves) << name_of(dtype);
  }
}

// The bits are the same on all machines: the hosts of a job may have different processors, and each computes results of
// its own.
TEST_P(EachKernels, GiveTheBitsThatEveryMachineGives) {
  const Kernels& tested = *GetParam().kernels;
  std::uint64_t digest = 14695981039346656037u;  // FNV-1a
  const auto add = [&](std::vector<char> bytes, drun_dtype dtype) {
    without_nans(bytes, dtype);
    for (const char c : bytes) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211u;
  };
  constexpr std::size_t kCount = 4099;
  for (int type = 0; type < 10; ++type) {
    const auto dtype = static_cast<drun_dtype>(type);
    if (reduced_as(dtype) != dtype) {
      auto floats = noise(4 * kCount, 7);
      without_nans(floats, DRUN_FLOAT32);
      std::vector<float> values(kCount);
      std::memcpy(values.data(), floats.data(), floats.size());
      std::vector<char> halves(2 * kCount);
      tested.narrow(values.data(), halves.data(), dtype, kCount);
      add(halves, dtype);
      tested.widen(noise(2 * kCount, 8).data(), dtype, values.data(), kCount);
      std::memcpy(floats.data(), values.data(), floats.size());
      add(floats, DRUN_FLOAT32);
      continue;
    }
    auto a = noise(kCount * size_of(dtype), 7), b = noise(kCount * size_of(dtype), 8);
    without_nans(a, dtype);
    without_nans(b, dtype);
    for (const auto op : {DRUN_SUM, DRUN_PROD, DRUN_MIN, DRUN_MAX}) {
      auto got = a;
      tested.combine(got.data(), a.data(), b.data(), kCount, dtype, op);
      add(got, dtype);
    }
    auto got = a;
    tested.divide(got.data(), kCount, dtype, 7);
    add(got, dtype);
    tested.scale(a.data(), kCount, dtype, 0.3);
    add(a, dtype);
  }
  EXPECT_EQ(digest, 7258464293273226940u);
}

INSTANTIATE_TEST_SUITE_P(Usable, EachKernels, ::testing::ValuesIn(usable_kernels()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace drun::runtime
