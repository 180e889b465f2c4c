// Averages that travel as halves, compared with double precision.
#include <atomic>
#include <limits>

#include "tests/unit/training/ranks.h"

namespace drun::training_test {
namespace {

using training::Bfloat16;
using training::Float16;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double rounded(double value, Compression compression) {
  const float single = training::for_rounding(value);
  return compression == Compression::fp16 ? Float16::widen(Float16::narrow(single))
                                          : Bfloat16::widen(Bfloat16::narrow(single));
}

// Half the distance between neighboring values of the format at `value`.
double half_step(double value, Compression compression) {
  const int n_bits = compression == Compression::fp16 ? 11 : 8, least = compression == Compression::fp16 ? -24 : -133;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value) - n_bits + 1, least);
  return std::ldexp(0.5, exponent);
}

class Compressing : public ::testing::TestWithParam<Compression> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Compressing, ::testing::Values(Compression::fp16, Compression::bf16),
                         [](const auto& kind) { return kind.param == Compression::fp16 ? "F16" : "Bf16"; });

template <typename T>
void expect_average(Transport& ranks, std::size_t count, Compression compression, drun_op op) {
  const int size = ranks.size();
  auto data = gradients<T>(count, ranks.rank());
  Bucketer bucketer(ranks);
  bucketer.add("g", data.data(), count);
  bucketer.allreduce(op, compression);
  std::vector<std::vector<T>> given;
  for (int rank = 0; rank < size; ++rank) given.push_back(gradients<T>(count, rank));
  const double factor = op == DRUN_SUM ? size : 1;
  for (std::size_t i = 0; i < count; ++i) {
    // Each value is divided and rounded; the f32 sum has errors in its last bits; the result is rounded again.
    double sum = 0, sum_of_magnitudes = 0;
    for (const auto& of_rank : given) {
      const double one = rounded(of_rank[i] / static_cast<T>(size), compression);
      sum += one;
      sum_of_magnitudes += std::fabs(one);
    }
    const double bound = half_step(sum, compression) * 1.01 + sum_of_magnitudes * 0x1p-24 * size;
    ASSERT_NEAR(data[i] / factor, sum, bound) << "element " << i << " of " << count;
  }
  expect_same_on_all(ranks, data);
  EXPECT_EQ(bucketer.n_cut(), 0u);
}

// Counts below and above the size from which halves travel by their own algorithm; also fewer elements than ranks.
TEST_P(Compressing, GivesTheAverageOfWhatWasRounded) {
  for (const int size : {1, 2, 3, 5}) {
    run_ranks(size, [](Transport& ranks) {
      for (const std::size_t count : {0U, 1U, 3U, 1000U, 16383U, 16384U, 50001U}) {
        expect_average<float>(ranks, count, GetParam(), DRUN_AVG);
      }
      expect_average<double>(ranks, 2000, GetParam(), DRUN_SUM);
      expect_average<double>(ranks, 20000, GetParam(), DRUN_AVG);
    });
  }
}

TEST_P(Compressing, FiniteGradientsHaveFiniteAverages) {
  for (const std::size_t count : {8U, 20000U}) {
    run_ranks(3, [count](Transport& ranks) {
      const double largest = GetParam() == Compression::fp16 ? 65504 : Bfloat16::kLargest;
      std::vector<double> data(count, largest);
      data[1] = -largest;
      data[2] = std::numeric_limits<double>::max();
      data[3] = ranks.rank() == 0 ? -1e300 : 0;
      data[4] = ranks.rank() == 1 ? kInfinity : 1;
      data[5] = ranks.rank() == 2 ? std::nan("") : 1;
      data[6] = ranks.rank() == 0 ? kInfinity : -kInfinity;
      data[7] = 0;
      Bucketer bucketer(ranks);
      bucketer.add("g", data.data(), count);
      bucketer.allreduce(DRUN_AVG, GetParam());
      // The average of the largest number is that number, except for the rounding of a third of it.
      EXPECT_NEAR(data[0], largest, largest * 0x1p-7);
      EXPECT_LE(data[0], largest);
      EXPECT_EQ(data[1], -data[0]);
      EXPECT_EQ(data[2], data[0]);
      EXPECT_NEAR(data[3], -largest / 3, largest * 0x1p-7);
      EXPECT_EQ(data[4], kInfinity);
      EXPECT_TRUE(std::isnan(data[5]));
      EXPECT_TRUE(std::isnan(data[6]));
      EXPECT_EQ(data[7], 0);
      EXPECT_GE(bucketer.n_cut(), ranks.rank() == 0 ? 2u : 1u);
    });
  }
}

TEST(Compression, IsForSumsAndAverages) {
  run_ranks(1, [](Transport& ranks) {
    float value = 1;
    Bucketer bucketer(ranks);
    bucketer.add("g", &value, 1);
    EXPECT_THROW(bucketer.allreduce(DRUN_MAX, Compression::fp16), Error);
  });
}

TEST(Compression, LeavesOtherTypesAlone) {
  run_ranks(2, [](Transport& ranks) {
    std::vector<std::int32_t> whole{100001, -7};
    Bucketer bucketer(ranks);
    bucketer.add("i", whole.data(), whole.size());
    bucketer.allreduce(DRUN_SUM, Compression::bf16);
    EXPECT_EQ(whole, (std::vector<std::int32_t>{200002, -14}));
  });
}

// Counts the bytes that this rank sends to others.
class Weighing final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  void alltoallv(const void* send, const std::size_t* send_counts, void* recv, const std::size_t* recv_counts,
                 drun_dtype dtype, const std::string& name) override {
    for (int i = 0; i < size(); ++i) n_bytes += i == rank() ? 0 : send_counts[i] * training::size_of(dtype);
    Forwarding::alltoallv(send, send_counts, recv, recv_counts, dtype, name);
  }
  void allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                  drun_dtype dtype, const std::string& name) override {
    n_bytes += send_count * training::size_of(dtype) * static_cast<std::size_t>(size() - 1);
    Forwarding::allgatherv(send, send_count, recv, recv_counts, dtype, name);
  }
  std::size_t n_bytes = 0;
};

TEST(Compression, HalvesTheBytesOfARing) {
  run_ranks(4, [](Transport& ranks) {
    Weighing weighing(ranks);
    std::vector<float> data(100000, 1.0f);
    Bucketer bucketer(weighing);
    bucketer.add("g", data.data(), data.size());
    bucketer.allreduce(DRUN_AVG, Compression::bf16);
    EXPECT_EQ(weighing.n_bytes, 2 * 3 * 25000 * sizeof(std::uint16_t)) << "a ring: 2 * 3 * 25000 floats";
    EXPECT_EQ(data, std::vector<float>(100000, 1.0f));
  });
}

}  // namespace
}  // namespace drun::training_test
