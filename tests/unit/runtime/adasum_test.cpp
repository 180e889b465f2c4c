#include "runtime/src/algorithm/adasum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <random>
#include <vector>

#include "tests/unit/runtime/grid.h"

namespace drun::runtime {
namespace {

using testing::FakeJob;
using testing::join;

template <typename T>
std::vector<T> gradient(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) * 7919u + static_cast<unsigned>(count));
  std::normal_distribution<double> normal(0.1 * rank, 1.0 + rank);
  std::vector<T> result(count);
  for (T& v : result) v = static_cast<T>(normal(random));
  return result;
}

// Computes the definition in long double.
std::vector<long double> oracle_of_two(const std::vector<long double>& a, const std::vector<long double>& b) {
  long double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  std::vector<long double> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    result[i] = (aa > 0 ? 1 - ab / (2 * aa) : 1) * a[i] + (bb > 0 ? 1 - ab / (2 * bb) : 1) * b[i];
  }
  return result;
}

std::vector<long double> oracle(std::vector<std::vector<long double>> all) {
  std::size_t power = 1;
  while (2 * power <= all.size()) power *= 2;
  for (std::size_t i = power; i < all.size(); ++i) all[i - power] = oracle_of_two(all[i - power], all[i]);
  for (std::size_t distance = 1; distance < power; distance *= 2) {
    for (std::size_t i = 0; i + distance < power; i += 2 * distance) all[i] = oracle_of_two(all[i], all[i + distance]);
  }
  return all[0];
}

class Adasum : public ::testing::TestWithParam<int> {};

template <typename T>
void check(int size, drun_dtype dtype, double tolerance) {
  std::mutex mutex;
  std::vector<std::vector<T>> results;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, (17u << 18) / sizeof(T) + 3}) {
    results.clear();
    std::vector<std::vector<T>> given;
    for (int rank = 0; rank < size; ++rank) given.push_back(gradient<T>(rank, count));
    FakeJob job(size);
    job.run([&](int rank) {
      auto all = join(job, rank);
      ASSERT_TRUE(all);
      const std::vector<T> sent = given[static_cast<std::size_t>(rank)];
      std::vector<T> result(count);
      const auto done = all->allreduce(sent.data(), result.data(), count, dtype, DRUN_ADASUM);
      ASSERT_TRUE(done) << done.error().text;
      EXPECT_EQ(sent, given[static_cast<std::size_t>(rank)]);
      const std::lock_guard<std::mutex> lock(mutex);
      results.push_back(std::move(result));
    });
    std::vector<std::vector<long double>> all;
    for (const auto& one : given) all.emplace_back(one.begin(), one.end());
    const auto expected = oracle(std::move(all));
    ASSERT_EQ(results.size(), static_cast<std::size_t>(size));
    for (const auto& result : results) {
      if (count == 0) continue;
      ASSERT_EQ(std::memcmp(result.data(), results[0].data(), count * sizeof(T)), 0) << "not the same bits";
    }
    std::vector<std::size_t> wrong;
    for (std::size_t i = 0; i < count; ++i) {
      const auto want = static_cast<double>(expected[i]);
      if (!(std::fabs(static_cast<double>(results[0][i]) - want) <= tolerance * (1 + std::fabs(want))))
        wrong.push_back(i);
    }
    ASSERT_TRUE(wrong.empty()) << wrong.size() << " of " << count << ", the first at " << wrong[0] << ": "
                               << results[0][wrong[0]] << " in place of " << expected[wrong[0]];
  }
}

TEST_P(Adasum, IsWhatItsDefinitionSays) {
  check<float>(GetParam(), DRUN_FLOAT32, 1e-4);
  check<double>(GetParam(), DRUN_FLOAT64, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Adasum, ::testing::Values(1, 2, 3, 4, 5),
                         [](const auto& param) { return "of" + std::to_string(param.param); });

TEST(AdasumOfTwo, AveragesTheParallelAndAddsTheOrthogonal) {
  float a[2] = {2, 0}, same[2] = {2, 0}, across[2] = {0, 3}, nothing[2] = {0, 0};
  AdasumDots dots;
  add_dots(dots, a, same, 2, DRUN_FLOAT32);
  adasum_combine(dots, a, same, true, 2, DRUN_FLOAT32);
  EXPECT_EQ(same[0], 2);
  dots = {};
  add_dots(dots, a, across, 2, DRUN_FLOAT32);
  adasum_combine(dots, a, across, true, 2, DRUN_FLOAT32);
  EXPECT_EQ(across[0], 2);
  EXPECT_EQ(across[1], 3);
  dots = {};
  add_dots(dots, a, nothing, 2, DRUN_FLOAT32);
  adasum_combine(dots, a, nothing, false, 2, DRUN_FLOAT32);
  EXPECT_EQ(a[0], 2);
}

TEST(AdasumArguments, OnlyFloatsAndOnlyAllreduce) {
  FakeJob job(1);
  auto all = join(job, 0);
  ASSERT_TRUE(all);
  float data[4] = {};
  EXPECT_EQ(all->allreduce(data, data, 1, DRUN_INT32, DRUN_ADASUM).error().status, DRUN_ERROR_ARGUMENT);
  EXPECT_EQ(all->allreduce(data, data, 1, DRUN_FLOAT16, DRUN_ADASUM).error().status, DRUN_ERROR_ARGUMENT);
  EXPECT_EQ(all->reduce(data, data, 1, DRUN_FLOAT32, DRUN_ADASUM, 0).error().status, DRUN_ERROR_ARGUMENT);
}

}  // namespace
}  // namespace drun::runtime
