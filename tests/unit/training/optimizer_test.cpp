// Partial updates, the names of methods, and the optimizer: with every method, ranks with different data find the
// optimum of all their data.
#include "tests/unit/training/ranks.h"

namespace drun::training_test {
namespace {

TEST(PartialAverage, AveragesOnePartAfterAnother) {
  run_ranks(2, [](Transport& ranks) {
    std::vector<float> a(3, static_cast<float>(ranks.rank()));
    std::vector<double> b(4, 10.0 * ranks.rank());
    PartialAverage partial(PartialUpdate{3}, ranks);
    partial.add("a", a.data(), a.size());
    partial.add("b", b.data(), b.size());
    const auto fresh_a = a;
    const auto fresh_b = b;
    // Three rounds over parts of 3, 2 and 2 elements.
    for (int step = 0; step < 9; ++step) {
      a = fresh_a;
      b = fresh_b;
      partial.average_next();
      const int turn = step % 3;
      const float own = static_cast<float>(ranks.rank());
      EXPECT_EQ(a, turn == 0 ? std::vector<float>(3, 0.5f) : fresh_a);
      const double low = turn == 1 ? 5 : 10 * own, high = turn == 2 ? 5 : 10 * own;
      EXPECT_EQ(b, (std::vector<double>{low, low, high, high}));
    }
    partial.average_all();
    EXPECT_EQ(a, std::vector<float>(3, 0.5f));
    EXPECT_EQ(b, std::vector<double>(4, 5.0));
  });
}

TEST(PartialAverage, MayHaveMorePartsThanElements) {
  run_ranks(3, [](Transport& ranks) {
    std::vector<double> value{3.0 * ranks.rank()};
    PartialAverage partial(PartialUpdate{5}, ranks);
    partial.add("a", value.data(), 1);
    for (int step = 0; step < 5; ++step) partial.average_next();
    EXPECT_EQ(value[0], 3);
  });
  EXPECT_THROW(PartialAverage(PartialUpdate{0}), Error);
}

TEST(Method, IsReadAndWritten) {
  for (const std::string text : {"none", "fp16", "bf16", "topk=0.01", "threshold=0.001", "threshold=0", "partial=8"}) {
    EXPECT_EQ(in_words(parse_method(text)), text);
  }
  EXPECT_EQ(in_words(parse_method("partial")), "partial=4");
  EXPECT_EQ(in_words(parse_method("topk=1e-8")), "topk=1e-08");
  for (const std::string text :
       {"", "fp32", "none=1", "topk", "topk=", "topk=0", "topk=1.5", "topk=nan", "topk=0.1x", "threshold=-1",
        "threshold=inf", "partial=", "partial=0", "partial=1.5", "partial=+2", "partial=99999999999", "Topk=1"}) {
    EXPECT_THROW(parse_method(text), Error) << text;
  }
}

// Rank r pulls every parameter towards target(r, i); the joint optimum is the mean of the targets.
double target(int rank, std::size_t i) { return std::sin(static_cast<double>(i)) + 0.3 * rank; }

template <typename T>
void expect_optimum(Transport& ranks, const std::string& method, double tolerance) {
  constexpr std::size_t kCount = 60;
  std::vector<T> parameters(kCount), gradient(kCount);
  DistributedOptimizer optimizer(
      [&] {
        for (std::size_t i = 0; i < kCount; ++i) parameters[i] -= static_cast<T>(0.1) * gradient[i];
      },
      parse_method(method), ranks, 64);
  optimizer.add("first", parameters.data(), gradient.data(), 20);
  optimizer.add("second", parameters.data() + 20, gradient.data() + 20, kCount - 20);
  for (int step = 0; step < 400; ++step) {
    for (std::size_t i = 0; i < kCount; ++i) gradient[i] = parameters[i] - static_cast<T>(target(ranks.rank(), i));
    optimizer.step();
  }
  optimizer.synchronise();
  expect_same_on_all(ranks, parameters);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double mean = std::sin(static_cast<double>(i)) + 0.3 * (ranks.size() - 1) / 2;
    EXPECT_NEAR(parameters[i], mean, tolerance) << method << ", parameter " << i;
  }
}

TEST(DistributedOptimizer, FindsTheOptimumOfAllRanksByEveryMethod) {
  run_ranks(3, [](Transport& ranks) {
    expect_optimum<double>(ranks, "none", 1e-9);
    expect_optimum<float>(ranks, "none", 1e-5);
    expect_optimum<float>(ranks, "fp16", 1e-3);
    expect_optimum<double>(ranks, "bf16", 1e-2);
    expect_optimum<double>(ranks, "topk=0.2", 0.15);
    expect_optimum<float>(ranks, "threshold=0.05", 0.15);
    expect_optimum<double>(ranks, "partial", 0.05);
    expect_optimum<double>(ranks, "partial=1", 1e-9);
  });
}

}  // namespace
}  // namespace drun::training_test
