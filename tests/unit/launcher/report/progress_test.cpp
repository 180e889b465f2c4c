#include "launcher/report/progress.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

const Progress::Time kStart{};

Progress connecting(std::vector<std::string> names) {
  Progress progress;
  progress.begin(Stage::kConnect, std::move(names), kStart);
  return progress;
}

TEST(Progress, HasNoLineBeforeAStage) { EXPECT_EQ(Progress().line(kStart, 80), ""); }

TEST(Progress, CountsHostsThatAreDone) {
  Progress progress = connecting({"a", "b", "c"});
  progress.enter(0, transport::Phase::kResolve, kStart);
  progress.done(0, kStart + milliseconds(100));
  EXPECT_EQ(progress.line(kStart + milliseconds(500), 80), "connecting 1/3");
}

TEST(Progress, NamesTheSlowOnesAndTheirPhaseAfterTwoSeconds) {
  Progress progress = connecting({"node1", "node7", "node9"});
  progress.done(0, kStart + milliseconds(100));
  progress.enter(1, transport::Phase::kConnect, kStart);
  progress.enter(1, transport::Phase::kLogin, kStart + milliseconds(20));
  progress.enter(2, transport::Phase::kConnect, kStart);
  EXPECT_EQ(progress.line(kStart + milliseconds(1999), 80), "connecting 1/3");
  EXPECT_EQ(progress.line(kStart + milliseconds(2000), 80),
            "connecting 1/3: waiting for node7 (login), node9 (connect)");
}

TEST(Progress, CountsFailedHostsApartAndDoesNotWaitForThem) {
  Progress progress = connecting({"a", "b", "c"});
  progress.failed(0, kStart);
  progress.done(1, kStart);
  progress.enter(2, transport::Phase::kAgent, kStart);
  EXPECT_EQ(progress.line(kStart + milliseconds(3000), 80), "connecting 1/3, 1 failed: waiting for c (agent)");
}

TEST(Progress, FitsTheWidthAndCountsWhomItLeavesOut) {
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back("node" + std::to_string(i));
  Progress progress = connecting(std::move(names));
  for (std::size_t i = 0; i < 200; ++i) progress.enter(i, transport::Phase::kConnect, kStart);
  const std::string line = progress.line(kStart + milliseconds(2500), 73);
  EXPECT_EQ(line, "connecting 0/200: waiting for node0 (connect) and 199 more");
  for (std::size_t width = 0; width < 200; ++width) {
    EXPECT_LE(progress.line(kStart + milliseconds(2500), width).size(), width);
  }
}

TEST(Progress, ASecondRoundMakesAHostWaitedForAgain) {
  Progress progress;
  progress.begin(Stage::kProbe, {"a", "b"}, kStart);
  progress.enter(0, transport::Phase::kProbe, kStart);
  progress.enter(1, transport::Phase::kProbe, kStart);
  progress.done(0, kStart + milliseconds(400));
  progress.done(1, kStart + milliseconds(400));
  progress.enter(1, transport::Phase::kProbe, kStart + milliseconds(400));
  EXPECT_EQ(progress.line(kStart + milliseconds(2600), 80), "probing the network 1/2: waiting for b");
}

TEST(Progress, SummaryNamesTheSlowestHost) {
  Progress progress = connecting({"a", "node7", "c"});
  progress.done(0, kStart + milliseconds(100));
  progress.done(1, kStart + milliseconds(190));
  progress.done(2, kStart + milliseconds(20));
  EXPECT_EQ(progress.summary(kStart + milliseconds(210)), "connect 3 hosts 210 ms (slowest node7 190 ms)");
}

TEST(Progress, SummaryOfOneHostNamesNobody) {
  Progress progress = connecting({"a"});
  progress.done(0, kStart + milliseconds(100));
  EXPECT_EQ(progress.summary(kStart + milliseconds(100)), "connect 1 host 100 ms");
}

TEST(Progress, TimesOfPhasesAddUpOverRetries) {
  Progress progress = connecting({"a"});
  progress.enter(0, transport::Phase::kConnect, kStart);
  progress.enter(0, transport::Phase::kHandshake, kStart + milliseconds(100));
  progress.enter(0, transport::Phase::kConnect, kStart + milliseconds(300));
  progress.enter(0, transport::Phase::kHandshake, kStart + milliseconds(350));
  progress.enter(0, transport::Phase::kHandshake, kStart + milliseconds(360));  // no change of phase
  progress.done(0, kStart + milliseconds(1350));
  EXPECT_EQ(progress.host_summary(0), "a: connect 150 ms, handshake 1.2 s");
}

}  // namespace
}  // namespace drun::launcher
