// The training headers over the C functions, between processes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/integration/runtime/job_server.h"

namespace drun {
namespace {

using testing::JobOptions;
using testing::run_job;

double error_by(const std::string& output, const std::string& method) {
  const auto place = output.find(method + ": ");
  if (place == std::string::npos) return 1e9;
  return std::strtod(output.c_str() + place + method.size() + 2, nullptr);
}

class Training : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Hosts, Training, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "OneHost" : "ThreeHosts"; });

TEST_P(Training, EveryMethodGivesTheMeanOfAllRanks) {
  JobOptions job;
  job.size = 3;
  job.ranks_per_host = GetParam() ? 0 : 1;
  job.shares_memory = GetParam();
  for (const auto& end : run_job({TRAINING_WORKER_PATH}, job)) {
    ASSERT_EQ(end.status, 0) << end.output;
    EXPECT_LT(error_by(end.output, "none"), 1e-6) << end.output;
    EXPECT_LT(error_by(end.output, "fp16"), 1e-3) << end.output;
    EXPECT_LT(error_by(end.output, "bf16"), 8e-3) << end.output;
    EXPECT_LT(error_by(end.output, "topk=1"), 1e-6) << end.output;
    EXPECT_LT(error_by(end.output, "threshold=0"), 1e-6) << end.output;
    EXPECT_LT(error_by(end.output, "partial=3"), 1e-6) << end.output;
  }
}

TEST_P(Training, ATensorOfAnotherSizeAndItsRankAreNamedOnEveryRank) {
  JobOptions job;
  job.size = 3;
  job.ranks_per_host = GetParam() ? 0 : 1;
  job.shares_memory = GetParam();
  for (const auto& end : run_job({TRAINING_WORKER_PATH, "mismatch"}, job)) {
    EXPECT_EQ(end.status, 3);
    EXPECT_NE(end.output.find("error -6 of rank 2: ranks disagree on tensor #1: rank 2 has 'b' of 5 f64, ranks 0, 1 "
                              "have 'b' of 6 f64\n"),
              std::string::npos)
        << end.output;
  }
}

}  // namespace
}  // namespace drun
