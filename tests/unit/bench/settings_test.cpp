#include "bench/settings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace drun::bench {
namespace {

TEST(BenchSettings, SizesHaveBinaryUnits) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"0", 0}, {"8", 8}, {"64k", 65536}, {"64K", 65536}, {"1.5M", 1572864}, {"128M", 134217728}, {"2g", 2147483648}};
  for (const auto& [text, n_bytes] : cases) {
    const auto size = parse_size(text);
    ASSERT_TRUE(size.has_value()) << text;
    EXPECT_EQ(*size, n_bytes) << text;
  }
}

TEST(BenchSettings, OtherSizesAreRefused) {
  for (const char* text : {"", "K", "-1", "1Q", "1.M", ".5M", "1e6", "0x8", "8 K", "1KB", "99999999G", "1.5.5"}) {
    EXPECT_FALSE(parse_size(text).has_value()) << text;
  }
}

TEST(BenchSettings, SizesGrowByFactorOrStep) {
  Settings s;
  s.min_bytes = 8;
  s.max_bytes = 100;
  s.factor = 2;
  EXPECT_EQ(sizes(s), (std::vector<std::uint64_t>{8, 16, 32, 64}));
  s.factor = 1;
  s.step_bytes = 40;
  EXPECT_EQ(sizes(s), (std::vector<std::uint64_t>{8, 48, 88}));
  EXPECT_EQ(warmup_sizes(s), (std::vector<std::uint64_t>{8, 16, 32, 64}));
  s.min_bytes = s.max_bytes = 0;
  EXPECT_EQ(sizes(s), (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(warmup_sizes(s), (std::vector<std::uint64_t>{0}));
}

TEST(BenchSettings, DefaultIsOneSize) {
  EXPECT_TRUE(check(Settings()).has_value());
  EXPECT_EQ(sizes(Settings()), (std::vector<std::uint64_t>{32u << 20}));
}

TEST(BenchSettings, SizesThatNeverEndAreRefused) {
  Settings s;
  s.min_bytes = 9;
  s.max_bytes = 8;
  EXPECT_EQ(check(s).error().subject, "-b");
  s.min_bytes = 0;
  s.factor = 2;
  EXPECT_EQ(check(s).error().subject, "-b");
  s.factor = 1;
  s.step_bytes = 0;
  EXPECT_EQ(check(s).error().subject, "-i");
  s.step_bytes = 1;
  s.max_bytes = 1u << 30;
  EXPECT_EQ(check(s).error().subject, "-i");
  s.factor = 0;
  EXPECT_EQ(check(s).error().subject, "-f");
}

TEST(BenchSettings, TypesHaveNamesOfNcclTestsAndLibdrun) {
  EXPECT_EQ(*parse_dtypes("half"), (std::vector<drun_dtype>{DRUN_FLOAT16}));
  EXPECT_EQ(*parse_dtypes("bf16"), (std::vector<drun_dtype>{DRUN_BFLOAT16}));
  EXPECT_EQ(*parse_dtypes("uint64"), (std::vector<drun_dtype>{DRUN_UINT64}));
  EXPECT_EQ(parse_dtypes("all")->size(), 10u);
  EXPECT_FALSE(parse_dtypes("float16").has_value());
  EXPECT_EQ(dtype_name(DRUN_FLOAT32), "float");
  EXPECT_EQ(element_size(DRUN_BFLOAT16), 2u);
}

TEST(BenchSettings, ReductionsAndRootsMayBeAll) {
  EXPECT_EQ(*parse_ops("max"), (std::vector<drun_op>{DRUN_MAX}));
  EXPECT_EQ(parse_ops("all")->size(), 5u);
  EXPECT_FALSE(parse_ops("mulsum").has_value());
  EXPECT_EQ(*parse_ops("adasum"), (std::vector<drun_op>{DRUN_ADASUM}));
  EXPECT_TRUE(is_op_name("avg"));
  EXPECT_FALSE(is_op_name("all"));
  EXPECT_EQ(*parse_root("3"), 3);
  EXPECT_EQ(*parse_root("all"), kAllRoots);
  EXPECT_EQ(*parse_root("-1"), kAllRoots);
  EXPECT_FALSE(parse_root("-2").has_value());
}

TEST(BenchSettings, AdasumIsForAllreducesOfTwoTypes) {
  Settings s;
  s.ops = {DRUN_ADASUM};
  s.dtypes = {DRUN_FLOAT32, DRUN_FLOAT64};
  EXPECT_TRUE(check(s).has_value());
  s.dtypes.push_back(DRUN_FLOAT16);
  EXPECT_FALSE(check(s).has_value());
  s.dtypes = {DRUN_FLOAT32};
  s.kind = Kind::kReduce;
  EXPECT_FALSE(check(s).has_value());
}

TEST(BenchSettings, NcclIsAskedForWhatItDoes) {
  Settings s;
  s.backend = Backend::kNccl;
  EXPECT_TRUE(check(s).has_value());
  s.ops = {DRUN_SUM, DRUN_AVG};
  EXPECT_TRUE(check(s).has_value());
  s.dtypes = {DRUN_BFLOAT16, DRUN_UINT8};
  EXPECT_FALSE(check(s).has_value());
  s.kind = Kind::kBroadcast;  // it has no reduction
  EXPECT_TRUE(check(s).has_value());
  s.kind = Kind::kBarrier;
  EXPECT_FALSE(check(s).has_value());
  s.backend = Backend::kCpu;
  EXPECT_TRUE(check(s).has_value());
}

TEST(BenchSettings, WordsGoThereAndBack) {
  Settings s;
  s.kind = Kind::kScatter;
  s.ops = {DRUN_SUM, DRUN_AVG};
  s.dtypes = {DRUN_BFLOAT16, DRUN_INT8};
  s.root = kAllRoots;
  s.min_bytes = 8;
  s.max_bytes = 1ull << 33;
  s.step_bytes = 7;
  s.factor = 3;
  s.n_iterations = 5;
  s.n_warmups = 0;
  s.n_checks = 2;
  s.json = true;
  EXPECT_EQ(from_words(to_words({s}))->front().backend, Backend::kCpu);
  s.backend = Backend::kNccl;
  Settings second = s;
  second.kind = Kind::kAlltoall;
  const auto words = to_words({s, second});
  EXPECT_EQ(std::count(words.begin(), words.end(), kNcclWord), 1);  // the agent searches for this word
  const auto back = from_words(words);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(to_words(*back), words);
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ(back->at(0).kind, Kind::kScatter);
  EXPECT_EQ(back->at(1).kind, Kind::kAlltoall);
  for (const auto& one : *back) {
    EXPECT_EQ(one.backend, Backend::kNccl);
    EXPECT_EQ(one.max_bytes, 1ull << 33);
    EXPECT_EQ(one.dtypes, s.dtypes);
  }
}

TEST(BenchSettings, OtherWordsAreRefused) {
  for (const char* word : {"", "min", "min=", "min=x", "backend=", "backend=gpu", "kind=dance", "kind=reduce,dance",
                           "kind=", "ops=9", "dtypes=", "what=1", "checks=99999999999"}) {
    EXPECT_FALSE(from_words({word}).has_value()) << word;
  }
}

}  // namespace
}  // namespace drun::bench
