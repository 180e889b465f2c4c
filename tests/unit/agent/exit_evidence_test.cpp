#include "agent/exit_evidence.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

std::string error_file_of(int wait_status, bool ended_by_drun) {
  control::Exited report;
  report.wait_status = wait_status;
  report.ended_by_drun = ended_by_drun;
  OomWatch oom(read_cgroup_files());
  add_evidence(report, oom, [] { return std::string("{}"); });
  EXPECT_EQ(report.out_of_memory, "");
  return report.error_file;
}

TEST(ExitEvidence, AFailureHasTorchsErrorFile) { EXPECT_EQ(error_file_of(1 << 8, false), "{}"); }

TEST(ExitEvidence, ASuccessHasNone) { EXPECT_EQ(error_file_of(0, false), ""); }

TEST(ExitEvidence, AWorkerThatDrunEndedHasNone) { EXPECT_EQ(error_file_of(15, true), ""); }

// The evidence that a worker has which ends after a kill for want of memory.
std::string out_of_memory_of(int wait_status) {
  const testing::TempFolder folder;
  folder.write("slice/memory.events", "oom_kill 0\n");
  OomWatch oom(CgroupFiles{"0::/slice\n", "30 23 0:26 / " + folder.path() + " rw - cgroup2 none rw\n"});
  folder.write("slice/memory.events", "oom_kill 1\n");
  control::Exited report;
  report.pid = 1 << 22;
  report.wait_status = wait_status;
  add_evidence(report, oom, [] { return std::string(); });
  return report.out_of_memory;
}

TEST(ExitEvidence, AKilledWorkerMayHaveRunOutOfMemory) {
  EXPECT_NE(out_of_memory_of(SIGKILL), "");
  EXPECT_NE(out_of_memory_of((128 + SIGKILL) << 8), "") << "as a shell says it of its child";
  EXPECT_EQ(out_of_memory_of(SIGTERM), "");
  EXPECT_EQ(out_of_memory_of(1 << 8), "");
}

class ErrorFileTest : public ::testing::Test {
 protected:
  ErrorFileTest() : directory_(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  std::string read() { return read_error_file(directory_.get(), "rank.0.error"); }

  testing::TempFolder folder_;
  Fd directory_;
};

TEST_F(ErrorFileTest, ARegularFileIsRead) {
  folder_.write("rank.0.error", "{}");
  EXPECT_EQ(read(), "{}");
}

TEST_F(ErrorFileTest, WithoutAFileItIsEmpty) { EXPECT_EQ(read(), ""); }

TEST_F(ErrorFileTest, AFileLargerThanTheLimitIsNotRead) {
  folder_.write("rank.0.error", std::string(64 << 10, 'x'));
  EXPECT_EQ(read().size(), 64u << 10);
  folder_.write("rank.0.error", std::string((64 << 10) + 1, 'x'));
  EXPECT_EQ(read(), "");
}

// Without a writer, opening it would wait forever.
TEST_F(ErrorFileTest, AFifoIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(folder_.path("rank.0.error").c_str(), 0600), 0);
  EXPECT_EQ(read(), "");
}

TEST_F(ErrorFileTest, ALinkIsNotFollowed) {
  folder_.write("elsewhere", "{}");
  ASSERT_EQ(::symlink(folder_.path("elsewhere").c_str(), folder_.path("rank.0.error").c_str()), 0);
  EXPECT_EQ(read(), "");
}

}  // namespace
}  // namespace drun::agent
