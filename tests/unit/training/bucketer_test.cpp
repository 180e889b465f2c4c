// Fused tensors: the results, and the errors if ranks disagree.
#include "tests/unit/training/ranks.h"

namespace drun::training_test {
namespace {

class Counting final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  void allreduce(void* data, std::size_t count, drun_dtype dtype, drun_op op, const std::string& name) override {
    ++n_allreduces;
    names.push_back(name);
    Forwarding::allreduce(data, count, dtype, op, name);
  }
  void allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype, const std::string& name) override {
    ++n_allgathers;
    Forwarding::allgather(send, recv, count, dtype, name);
  }
  int n_allreduces = 0, n_allgathers = 0;
  std::vector<std::string> names;
};

TEST(Bucketer, AveragesManyTensorsInFewCalls) {
  constexpr int kSize = 3;
  run_ranks(kSize, [](Transport& ranks) {
    Counting counting(ranks);
    Bucketer bucketer(counting, 256);
    const std::vector<std::size_t> counts = {5, 0, 17, 1, 100, 40, 2};
    std::vector<std::vector<float>> singles;
    std::vector<std::vector<double>> doubles;
    std::vector<std::int32_t> whole{1, -2, 3};
    for (const auto count : counts) {
      singles.push_back(gradients<float>(count, ranks.rank()));
      doubles.push_back(gradients<double>(count, ranks.rank()));
    }
    for (std::size_t i = 0; i < counts.size(); ++i) bucketer.add("f" + std::to_string(i), singles[i].data(), counts[i]);
    for (std::size_t i = 0; i < counts.size(); ++i) bucketer.add("d" + std::to_string(i), doubles[i].data(), counts[i]);
    bucketer.add("i", whole.data(), whole.size());
    for (int step = 0; step < 2; ++step) {
      const auto before_singles = singles;
      const auto before_doubles = doubles;
      bucketer.allreduce(step == 0 ? DRUN_AVG : DRUN_SUM);
      for (std::size_t i = 0; i < counts.size(); ++i) {
        for (std::size_t k = 0; k < counts[i]; ++k) {
          double single = 0, twice = 0;
          for (int rank = 0; rank < kSize; ++rank) {
            single += step == 0 ? gradients<float>(counts[i], rank)[k] : before_singles[i][k];
            twice += step == 0 ? gradients<double>(counts[i], rank)[k] : before_doubles[i][k];
          }
          const double divisor = step == 0 ? kSize : 1;
          EXPECT_NEAR(singles[i][k], single / divisor, 1e-6);
          EXPECT_NEAR(doubles[i][k], twice / divisor, 1e-15);
        }
        expect_same_on_all(ranks, singles[i]);
        expect_same_on_all(ranks, doubles[i]);
      }
    }
    EXPECT_EQ(whole, (std::vector<std::int32_t>{3, -6, 9}));
    EXPECT_EQ(counting.n_allgathers, 1) << "checked once";
    EXPECT_EQ(counting.n_allreduces, 2 * static_cast<int>(bucketer.buckets().size()));
    EXPECT_EQ(counting.names.front(), "f0..f3");
    EXPECT_EQ(counting.names[1], "f4") << "of 400 bytes, in two";
    EXPECT_EQ(counting.names[2], "f4");
    EXPECT_EQ(counting.names[3], "f5..f6");
  });
}

class GapsAreZeros final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  void allreduce(void* data, std::size_t count, drun_dtype dtype, drun_op op, const std::string& name) override {
    if (name == "b..c") {
      const char* const gap = static_cast<const char*>(data) + 3 * training::size_of(dtype);
      EXPECT_EQ(std::string(gap, 5 * training::size_of(dtype)), std::string(5 * training::size_of(dtype), '\0'));
      ++n_seen;
    }
    Forwarding::allreduce(data, count, dtype, op, name);
  }
  int n_seen = 0;
};

// The memory of a bucket has data of the one before. Adasum, for one, would take it into account.
TEST(Bucketer, WhatIsBetweenTensorsTravelsAsZeros) {
  run_ranks(2, [](Transport& ranks) {
    GapsAreZeros checking(ranks);
    Bucketer bucketer(checking, 64);
    std::vector<float> a(8, 1), a2(8, 1), b(3, 2), c(4, 3);
    bucketer.add("a", a.data(), a.size());
    bucketer.add("a2", a2.data(), a2.size());
    bucketer.add("b", b.data(), b.size());
    bucketer.add("c", c.data(), c.size());
    bucketer.allreduce(DRUN_SUM);
    bucketer.allreduce(DRUN_SUM, Compression::bf16);
    EXPECT_EQ(checking.n_seen, 2);
    EXPECT_EQ(a2, std::vector<float>(8, 4));
    EXPECT_EQ(b, std::vector<float>(3, 8));
    EXPECT_EQ(c, std::vector<float>(4, 12));
  });
}

TEST(Bucketer, TensorsThatComeTooLateAreRefused) {
  run_ranks(1, [](Transport& ranks) {
    Bucketer bucketer(ranks);
    bucketer.allreduce();  // without any tensor
    float value = 1;
    try {
      bucketer.add("late", &value, 1);
      ADD_FAILURE() << "it was taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.code, DRUN_ERROR_STATE);
      EXPECT_STREQ(e.what(), "tensor 'late': it comes too late: the first step has been made");
    }
  });
}

struct Given {
  std::string name;
  std::size_t count;
};

// Expects that every rank gets an error with `text` and the rank `attribution`, and can go on using the transport.
void expect_mismatch(int size, const std::function<std::vector<Given>(int rank)>& given, const std::string& text,
                     int attribution) {
  run_ranks(size, [&](Transport& ranks) {
    std::vector<float> memory(100);
    Bucketer bucketer(ranks);
    for (const auto& [name, count] : given(ranks.rank())) bucketer.add(name, memory.data(), count);
    try {
      bucketer.allreduce();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.what(), text);
      EXPECT_EQ(e.code, DRUN_ERROR_MISMATCH);
      EXPECT_EQ(e.rank, attribution);
    }
    double one = 1;
    ranks.allreduce(&one, 1, DRUN_FLOAT64, DRUN_SUM, "after");
    EXPECT_EQ(one, ranks.size());
  });
}

TEST(Bucketer, ARankWithATensorOfAnotherSizeIsNamed) {
  expect_mismatch(
      4,
      [](int rank) {
        return std::vector<Given>{{"fc.weight", 20}, {"fc.bias", rank == 2 ? 12u : 10u}, {"out", rank == 2 ? 5u : 4u}};
      },
      "ranks disagree on tensor #1: rank 2 has 'fc.bias' of 12 f32, ranks 0, 1, 3 have 'fc.bias' of 10 f32", 2);
}

TEST(Bucketer, ARankWithAnotherOrderIsNamed) {
  expect_mismatch(
      3,
      [](int rank) {
        return rank == 0 ? std::vector<Given>{{"b", 4}, {"a", 4}} : std::vector<Given>{{"a", 4}, {"b", 4}};
      },
      "ranks disagree on tensor #0: rank 0 has 'b' of 4 f32, ranks 1, 2 have 'a' of 4 f32", 0);
}

TEST(Bucketer, ARankWithFewerTensorsIsNamed) {
  expect_mismatch(
      2,
      [](int rank) {
        return rank == 1 ? std::vector<Given>{{"a", 4}} : std::vector<Given>{{"a", 4}, {"b", 4}};
      },
      "ranks disagree on tensor #1: rank 1 has none, rank 0 has 'b' of 4 f32", 1);
}

TEST(Bucketer, RanksThatAllDisagreeAreAllNamed) {
  expect_mismatch(
      3,
      [](int rank) {
        return std::vector<Given>{{"a", static_cast<std::size_t>(rank)}};
      },
      "ranks disagree on tensor #0: rank 1 has 'a' of 1 f32, rank 2 has 'a' of 2 f32, rank 0 has 'a' of 0 f32", 1);
}

TEST(Bucketer, RanksWithOtherSettingsAreNamed) {
  for (const auto& error : errors_of_ranks(3, [](Transport& ranks) {
         std::vector<double> memory(4);
         DistributedOptimizer optimizer([] {}, ranks.rank() == 1 ? Method(TopK{0.5}) : Compression::bf16, ranks, 1024);
         optimizer.add("a", memory.data(), memory.data(), 4);
         optimizer.step();
       })) {
    ASSERT_TRUE(error);
    EXPECT_STREQ(error->what(),
                 "ranks disagree on their settings: rank 1 has topk=0.5, buckets of 1024 bytes, ranks 0, 2 have bf16, "
                 "buckets of 1024 bytes");
    EXPECT_EQ(error->rank, 1);
  }
}

TEST(Agreement, RanksAreWrittenAsRanges) {
  EXPECT_EQ(training::ranks_in_words({4}), "rank 4");
  EXPECT_EQ(training::ranks_in_words({0, 1}), "ranks 0, 1");
  EXPECT_EQ(training::ranks_in_words({0, 1, 2, 5, 7, 8, 9}), "ranks 0-2, 5, 7-9");
}

TEST(Agreement, EntriesSurviveTheJourney) {
  const training::Registered own{"settings", {"'a' of 3 f32", "", "'b'"}};
  const std::string bytes = training::packed(own);
  const auto back = training::unpacked(bytes.data(), bytes.size());
  EXPECT_EQ(back.settings, own.settings);
  EXPECT_EQ(back.tensors, own.tensors);
  EXPECT_EQ(training::unpacked("", 0).tensors.size(), 0u);
  EXPECT_NE(training::digest({"", {"ab", "c"}}), training::digest({"", {"a", "bc"}}));
}

}  // namespace
}  // namespace drun::training_test
