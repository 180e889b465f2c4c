// The reductions that NCCL carries out, and the operations that are made for scales. The table of NCCL's functions is
// the test's own.
#include "runtime/src/gpu/nccl_reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace drun::runtime::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Operation reduction(drun_op op, drun_dtype dtype, double prescale = 1, double postscale = 1) {
  Operation operation;
  operation.op = op;
  operation.dtype = dtype;
  operation.prescale = prescale;
  operation.postscale = postscale;
  return operation;
}

TEST(NcclCanReduce, EverythingWithoutAScaleExceptAveragesOfIntegers) {
  for (const drun_op op : {DRUN_SUM, DRUN_PROD, DRUN_MIN, DRUN_MAX}) {
    for (const drun_dtype dtype : {DRUN_INT8, DRUN_UINT64, DRUN_FLOAT16, DRUN_BFLOAT16, DRUN_FLOAT32, DRUN_FLOAT64}) {
      EXPECT_TRUE(nccl_can_reduce(reduction(op, dtype))) << op << " of " << dtype;
    }
  }
  EXPECT_TRUE(nccl_can_reduce(reduction(DRUN_AVG, DRUN_BFLOAT16)));
  EXPECT_FALSE(nccl_can_reduce(reduction(DRUN_AVG, DRUN_INT32)));
}

TEST(NcclCanReduce, ScaledSumsAndAveragesOfWideFloatsOnly) {
  for (const drun_dtype dtype : {DRUN_FLOAT32, DRUN_FLOAT64}) {
    EXPECT_TRUE(nccl_can_reduce(reduction(DRUN_SUM, dtype, 0.5)));
    EXPECT_TRUE(nccl_can_reduce(reduction(DRUN_AVG, dtype, 1, 3)));
    EXPECT_FALSE(nccl_can_reduce(reduction(DRUN_MAX, dtype, 0.5)));
    EXPECT_TRUE(nccl_can_reduce(reduction(DRUN_MAX, dtype, 0.5, 2))) << "the scales cancel";
  }
  EXPECT_FALSE(nccl_can_reduce(reduction(DRUN_SUM, DRUN_FLOAT16, 0.5)));
}

TEST(NcclReducesAtOnce, WholeBlocksIfItScalesTheDataOfOneRank) {
  const auto at_once = [](std::size_t count, drun_dtype dtype, double scale, int n_members) {
    Operation operation = reduction(DRUN_SUM, dtype, scale);
    operation.count = count;
    return n_reduced_at_once(operation, n_members);
  };
  EXPECT_EQ(at_once(0, DRUN_FLOAT32, 0.5, 1), 0u);
  EXPECT_EQ(at_once(4095, DRUN_FLOAT32, 0.5, 1), 4095u);
  EXPECT_EQ(at_once(4097, DRUN_FLOAT32, 0.5, 1), 4096u);
  EXPECT_EQ(at_once(100'000, DRUN_FLOAT64, 0.5, 1), 98'304u);
  EXPECT_EQ(at_once(4097, DRUN_FLOAT32, 1, 1), 4097u);
  EXPECT_EQ(at_once(4097, DRUN_FLOAT32, 0.5, 2), 4097u);
}

// The requests to the fake NCCL.
struct Asked {
  std::vector<double> scales;
  std::vector<NcclRedOp> destroyed;
  NcclResult answer = kNcclSuccess;
};
Asked asked;

Nccl fake_nccl() {
  asked = {};
  Nccl nccl{};
  nccl.RedOpCreatePreMulSum = [](NcclRedOp* op, void* scalar, int dtype, int, NcclHandle) -> NcclResult {
    float narrow = 0;
    double wide = 0;
    std::memcpy(&narrow, scalar, sizeof narrow);
    std::memcpy(&wide, scalar, sizeof wide);
    asked.scales.push_back(dtype == nccl_type_of(DRUN_FLOAT64) ? wide : static_cast<double>(narrow));
    *op = 100 + static_cast<NcclRedOp>(asked.scales.size());
    return asked.answer;
  };
  nccl.RedOpDestroy = [](NcclRedOp op, NcclHandle) -> NcclResult {
    asked.destroyed.push_back(op);
    return kNcclSuccess;
  };
  return nccl;
}

TEST(NcclReductions, MakeNothingForNcclsOwnOperations) {
  const Nccl nccl = fake_nccl();
  {
    NcclReductions reductions(nccl, nullptr, 4);
    NcclRedOp op = -1;
    const auto made = [&](drun_op given) {
      EXPECT_EQ(reductions.add(reduction(given, DRUN_FLOAT32), op), kNcclSuccess);
      return op;
    };
    EXPECT_EQ(made(DRUN_SUM), kNcclSum);
    EXPECT_EQ(made(DRUN_PROD), kNcclProd);
    EXPECT_EQ(made(DRUN_MIN), kNcclMin);
    EXPECT_EQ(made(DRUN_MAX), kNcclMax);
    EXPECT_EQ(made(DRUN_AVG), kNcclAvg);
  }
  EXPECT_THAT(asked.scales, IsEmpty());
  EXPECT_THAT(asked.destroyed, IsEmpty());
}

TEST(NcclReductions, SumWhereOneRankAverages) {
  const Nccl nccl = fake_nccl();
  NcclReductions reductions(nccl, nullptr, 1);
  NcclRedOp op = -1;
  EXPECT_EQ(reductions.add(reduction(DRUN_AVG, DRUN_BFLOAT16), op), kNcclSuccess);
  EXPECT_EQ(op, kNcclSum);
}

TEST(NcclReductions, ScaleByOneFactorAndAreDestroyedTogether) {
  const Nccl nccl = fake_nccl();
  {
    NcclReductions reductions(nccl, nullptr, 4);
    NcclRedOp sum = 0, average = 0;
    EXPECT_EQ(reductions.add(reduction(DRUN_SUM, DRUN_FLOAT32, 0.5, 3), sum), kNcclSuccess);
    EXPECT_EQ(reductions.add(reduction(DRUN_AVG, DRUN_FLOAT64, 2), average), kNcclSuccess);
    EXPECT_EQ(sum, 101);
    EXPECT_EQ(average, 102);
    EXPECT_THAT(asked.destroyed, IsEmpty());
  }
  EXPECT_THAT(asked.scales, ElementsAre(1.5, 0.5));
  EXPECT_THAT(asked.destroyed, ElementsAre(101, 102));
}

TEST(NcclReductions, DestroyNoneThatWasNotMade) {
  const Nccl nccl = fake_nccl();
  asked.answer = 5;
  {
    NcclReductions reductions(nccl, nullptr, 2);
    NcclRedOp op = 0;
    EXPECT_EQ(reductions.add(reduction(DRUN_SUM, DRUN_FLOAT64, 2), op), 5);
  }
  EXPECT_THAT(asked.destroyed, IsEmpty());
}

}  // namespace
}  // namespace drun::runtime::gpu
