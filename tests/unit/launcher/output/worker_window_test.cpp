#include "launcher/output/worker_window.h"

#include <gtest/gtest.h>

#include "launcher/output/output_tag.h"

namespace drun::launcher {
namespace {

TEST(WorkerWindow, IsTheTerminalLessTheTag) {
  EXPECT_EQ(worker_window(TerminalSize{110, 50}, 4), (TerminalSize{106, 50}));
  EXPECT_EQ(worker_window(TerminalSize{110, 50}, 0), (TerminalSize{110, 50}));
  EXPECT_EQ(worker_window(std::nullopt, 4), (TerminalSize{80, 24}));
}

TEST(WorkerWindow, HasRoomForSomethingWhateverTheTag) {
  EXPECT_EQ(worker_window(TerminalSize{30, 10}, 25).columns, 20);
  EXPECT_EQ(worker_window(TerminalSize{12, 10}, 25).columns, 12);
}

TEST(WorkerWindow, TheWidestTagCounts) {
  std::vector<RankLabel> labels(11, RankLabel{"gpu1", 0});
  EXPECT_EQ(OutputTags(TagStyle::kRank, false, labels).width(), 5u);  // "[10] "
  EXPECT_EQ(OutputTags(TagStyle::kHost, true, labels).width(), 23u);  // "09:30:00.123 [gpu1:10] "
  EXPECT_EQ(OutputTags(TagStyle::kNone, false, labels).width(), 0u);
  EXPECT_EQ(OutputTags(TagStyle::kNone, true, labels).width(), 13u);
}

}  // namespace
}  // namespace drun::launcher
