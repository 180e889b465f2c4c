#include "agent/exit_evidence.h"

#include <gtest/gtest.h>

#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

class ExitEvidenceTest : public ::testing::Test {
 protected:
  ExitEvidenceTest() { folder_.write("rank.0.error", "{}"); }
  std::string error_file_of(int wait_status, bool ended_by_drun) {
    control::Exited report;
    report.wait_status = wait_status;
    report.ended_by_drun = ended_by_drun;
    add_evidence(report, oom_, folder_.path("rank.0.error"));
    EXPECT_EQ(report.out_of_memory, "");
    return report.error_file;
  }
  testing::TempFolder folder_;
  OomWatch oom_;
};

TEST_F(ExitEvidenceTest, AFailureHasTorchsErrorFile) { EXPECT_EQ(error_file_of(1 << 8, false), "{}"); }

TEST_F(ExitEvidenceTest, ASuccessHasNone) { EXPECT_EQ(error_file_of(0, false), ""); }

TEST_F(ExitEvidenceTest, AWorkerThatDrunEndedHasNone) { EXPECT_EQ(error_file_of(15, true), ""); }

TEST_F(ExitEvidenceTest, WithoutAFileItIsEmpty) {
  control::Exited report;
  report.wait_status = 1 << 8;
  add_evidence(report, oom_, folder_.path("none"));
  add_evidence(report, oom_, "");
  EXPECT_EQ(report.error_file, "");
}

}  // namespace
}  // namespace drun::agent
