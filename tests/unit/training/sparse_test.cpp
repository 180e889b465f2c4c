// Sparse sums with error feedback: the applied part and the kept part add up to the input.
#include <limits>

#include "tests/unit/training/ranks.h"

namespace drun::training_test {
namespace {

using Indices = std::vector<std::uint32_t>;

std::string name_of(const Selection& selection) { return training::in_words(selection); }

const std::vector<Selection>& selections() {
  static const std::vector<Selection> all{TopK{0},      TopK{0.01},      TopK{0.3},        TopK{1},
                                          Threshold{0}, Threshold{0.01}, Threshold{1e-30}, Threshold{1e300}};
  return all;
}

template <typename T>
void expect_balance(Transport& ranks, const Selection& selection, std::size_t bucket_bytes, bool wide) {
  constexpr int kSteps = 6;
  const std::vector<std::size_t> counts{7, 0, 100, 1, 33};
  std::vector<std::vector<T>> data, applied, given;
  for (const auto count : counts) {
    data.emplace_back(count);
    applied.emplace_back(count);
    given.emplace_back(count);
  }
  SparseAllreduce sparse(selection, ranks, bucket_bytes);
  if (wide) sparse.set_most_short(10);
  for (std::size_t i = 0; i < counts.size(); ++i) sparse.add("t" + std::to_string(i), data[i].data(), counts[i]);
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      for (int rank = 0; rank < ranks.size(); ++rank) {
        const auto one = exact_gradients<T>(counts[i], rank, step);
        for (std::size_t k = 0; k < counts[i]; ++k) given[i][k] += one[k];
        if (rank == ranks.rank()) std::copy(one.begin(), one.end(), data[i].begin());
      }
    }
    sparse.allreduce(DRUN_SUM);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      for (std::size_t k = 0; k < counts[i]; ++k) applied[i][k] += data[i][k];
      expect_same_on_all(ranks, data[i]);
      auto kept = sparse.residual<T>(i);
      ranks.allreduce(kept.data(), kept.size(), dtype_of<T>(), DRUN_SUM, "kept");
      for (std::size_t k = 0; k < counts[i]; ++k) {
        ASSERT_EQ(applied[i][k] + kept[k], given[i][k]) << name_of(selection) << ", t" << i << "[" << k << "]";
      }
    }
  }
}

TEST(Sparse, WhatIsAppliedAndWhatIsKeptAreWhatWasGiven) {
  for (const int size : {1, 3}) {
    run_ranks(size, [](Transport& ranks) {
      for (const auto& selection : selections()) {
        expect_balance<float>(ranks, selection, kBucketBytes, false);
        expect_balance<double>(ranks, selection, 100, true);
      }
    });
  }
}

// Computes whole steps in the order of the ranks, and expects the same bits.
template <typename T>
void expect_steps(Transport& ranks, const Selection& selection, drun_op op) {
  constexpr std::size_t kCount = 500;
  const auto size = static_cast<std::size_t>(ranks.size());
  std::vector<T> data(kCount);
  SparseAllreduce sparse(selection, ranks);
  sparse.add("t", data.data(), kCount);
  std::vector<std::vector<T>> kept(size, std::vector<T>(kCount));
  for (int step = 0; step < 4; ++step) {
    const auto given = gradients<T>(kCount, ranks.rank(), step);
    std::copy(given.begin(), given.end(), data.begin());  // the tensor stays in place
    sparse.allreduce(op);
    std::vector<T> expected(kCount);
    for (std::size_t rank = 0; rank < size; ++rank) {
      auto& own = kept[rank];
      const auto fresh = gradients<T>(kCount, static_cast<int>(rank), step);
      for (std::size_t k = 0; k < kCount; ++k) own[k] += fresh[k];
      std::vector<std::size_t> order(kCount);
      for (std::size_t k = 0; k < kCount; ++k) order[k] = k;
      std::stable_sort(order.begin(), order.end(),
                       [&own](auto a, auto b) { return std::fabs(own[a]) > std::fabs(own[b]); });
      for (std::size_t place = 0; place < kCount; ++place) {
        const std::size_t k = order[place];
        const bool is_sent = std::holds_alternative<TopK>(selection)
                                 ? place < training::top_k_count(kCount, std::get<TopK>(selection).fraction)
                                 : std::fabs(own[k]) >= std::get<Threshold>(selection).value;
        if (!is_sent) continue;
        expected[k] += own[k];
        own[k] = 0;
      }
    }
    if (op == DRUN_AVG) {
      for (T& one : expected) one /= static_cast<T>(size);
    }
    EXPECT_TRUE(bytes_of(data) == bytes_of(expected)) << name_of(selection) << ", step " << step;
    EXPECT_TRUE(bytes_of(sparse.residual<T>(0)) == bytes_of(kept[static_cast<std::size_t>(ranks.rank())]));
  }
}

TEST(Sparse, EveryStepIsWhatTheRuleSays) {
  run_ranks(4, [](Transport& ranks) {
    for (const Selection selection : {Selection(TopK{0.02}), Selection(TopK{0.5}), Selection(Threshold{0.01})}) {
      expect_steps<float>(ranks, selection, DRUN_AVG);
      expect_steps<double>(ranks, selection, DRUN_SUM);
    }
  });
}

TEST(Sparse, ASumOfEverythingIsTheDenseSum) {
  run_ranks(3, [](Transport& ranks) {
    for (const Selection selection : {Selection(TopK{1}), Selection(Threshold{0})}) {
      auto data = gradients<double>(1000, ranks.rank());
      SparseAllreduce sparse(selection, ranks);
      sparse.add("t", data.data(), data.size());
      sparse.allreduce(DRUN_AVG);
      std::vector<double> expected(data.size());
      for (int rank = 0; rank < 3; ++rank) {
        const auto given = gradients<double>(1000, rank);
        for (std::size_t k = 0; k < given.size(); ++k) expected[k] += given[k];
      }
      for (std::size_t k = 0; k < data.size(); ++k) EXPECT_EQ(data[k], expected[k] / 3);
      EXPECT_EQ(sparse.residual<double>(0), std::vector<double>(1000));
    }
  });
}

TEST(Sparse, InfinitiesAndNanAreSeenByAllAndAreNotKept) {
  run_ranks(3, [](Transport& ranks) {
    for (const Selection selection : {Selection(TopK{0.2}), Selection(Threshold{1000})}) {
      std::vector<float> data(10, 0.5f);
      if (ranks.rank() == 1) data[3] = std::numeric_limits<float>::quiet_NaN();
      if (ranks.rank() == 2) data[4] = -std::numeric_limits<float>::infinity();
      SparseAllreduce sparse(selection, ranks);
      sparse.add("t", data.data(), data.size());
      sparse.allreduce();
      EXPECT_TRUE(std::isnan(data[3]));
      EXPECT_EQ(data[4], -std::numeric_limits<float>::infinity());
      for (const float kept : sparse.residual<float>(0)) EXPECT_TRUE(kept == 0 || kept == 0.5f) << kept;
      std::fill(data.begin(), data.end(), 0.0f);
      sparse.allreduce();
      for (const float value : data) EXPECT_TRUE(std::isfinite(value));
    }
  });
}

TEST(Sparse, NumbersNearZeroAreKeptToTheBit) {
  run_ranks(2, [](Transport& ranks) {
    const double least = std::numeric_limits<double>::denorm_min();
    std::vector<double> data{1, least, -3 * least, 0};
    SparseAllreduce sparse(TopK{0.25}, ranks);
    sparse.add("t", data.data(), data.size());
    sparse.allreduce();
    EXPECT_EQ(data, (std::vector<double>{1, 0, 0, 0}));
    EXPECT_EQ(sparse.residual<double>(0), (std::vector<double>{0, least, -3 * least, 0}));
    std::fill(data.begin(), data.end(), 0.0);
    sparse.allreduce(DRUN_SUM);
    EXPECT_EQ(data, (std::vector<double>{0, 0, -6 * least, 0}));
  });
}

// Simulates a rank with broken memory or a broken program: changes the data it sends, on arrival.
class Bent final : public Forwarding {
 public:
  using Change = std::function<void(std::uint32_t* indices)>;
  Bent(Transport& to, std::uint64_t count_of_rank_1, Change change)
      : Forwarding(to), count_of_rank_1_(count_of_rank_1), change_(std::move(change)) {}
  void allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype, const std::string& name) override {
    Forwarding::allgather(send, recv, count, dtype, name);
    if (count_of_rank_1_ != 0 && name != "registered tensors") {
      static_cast<std::uint64_t*>(recv)[count + 1] = count_of_rank_1_;
    }
  }
  void allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                  drun_dtype dtype, const std::string& name) override {
    Forwarding::allgatherv(send, send_count, recv, recv_counts, dtype, name);
    if (dtype == DRUN_UINT32) change_(static_cast<std::uint32_t*>(recv) + recv_counts[0]);
  }

 private:
  std::uint64_t count_of_rank_1_;
  Change change_;
};

TEST(Sparse, WhatIsOutOfBoundsNamesItsRankAndTouchesNothing) {
  struct Case {
    std::uint64_t count;
    Bent::Change change;
    std::string text;
  };
  // Each rank sends two elements of 'a' and two of 'b': the indices of 'a' come first, then those of 'b'.
  const std::vector<Case> cases{{0, [](std::uint32_t* indices) { indices[3] = 10; },
                                 "tensor 'b': rank 1 sent index 10 where one from 1 to 10 (exclusive) can be"},
                                {0, [](std::uint32_t* indices) { indices[1] = 0xffffffffu; },
                                 "tensor 'a': rank 1 sent index 4294967295 where one from 1 to 20 (exclusive) can be"},
                                {0, [](std::uint32_t* indices) { indices[1] = indices[0]; },
                                 "tensor 'a': rank 1 sent index 0 where one from 1 to 20 (exclusive) can be"},
                                {11, [](std::uint32_t*) {}, "tensor 'b': rank 1 sent 11 values of 10 elements"},
                                {0xffffffffffffffffu, [](std::uint32_t*) {},
                                 "tensor 'b': rank 1 sent 18446744073709551615 values of 10 elements"}};
  for (const auto& one : cases) {
    for (const auto& error : errors_of_ranks(2, [&one](Transport& ranks) {
           std::vector<float> a(20), b(10);
           a[0] = a[1] = b[0] = b[1] = 1;
           Bent bent(ranks, one.count, one.change);
           SparseAllreduce sparse(Threshold{1}, bent);
           sparse.add("a", a.data(), a.size());
           sparse.add("b", b.data(), b.size());
           try {
             sparse.allreduce();
           } catch (const Error&) {
             EXPECT_EQ(b[0] + b[1], 2);
             throw;
           }
         })) {
      ASSERT_TRUE(error) << one.text;
      EXPECT_EQ(error->what(), one.text);
      EXPECT_EQ(error->code, DRUN_ERROR_PEER);
      EXPECT_EQ(error->rank, 1);
    }
  }
}

TEST(Sparse, RefusesSettingsThatMeanNothing) {
  run_ranks(1, [](Transport& ranks) {
    for (const Selection& selection : {Selection(TopK{-0.1}), Selection(TopK{1.1}), Selection(TopK{std::nan("")}),
                                       Selection(Threshold{-1}), Selection(Threshold{std::nan("")})}) {
      EXPECT_THROW(SparseAllreduce(selection, ranks), Error) << name_of(selection);
    }
    SparseAllreduce sparse(TopK{1}, ranks);
    EXPECT_THROW(sparse.allreduce(DRUN_MAX), Error);
  });
}

}  // namespace
}  // namespace drun::training_test
