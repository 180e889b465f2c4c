#include "launcher/connect/bootstrap_answer.h"

#include <gtest/gtest.h>

#include "control/frames.h"

namespace drun::launcher {
namespace {

const std::string kMagic(control::kMagic);

BootstrapAnswer answer(const std::string& text) { return find_bootstrap_answer(text, "abc123"); }

TEST(BootstrapAnswer, TheAgentBeginsBehindItsMagic) {
  const auto found = answer("Welcome!\n" + kMagic + "hello");
  EXPECT_EQ(found.kind, BootstrapAnswer::kMagic);
  EXPECT_EQ(found.end, 9 + kMagic.size());
}

TEST(BootstrapAnswer, ALineOfTheScriptHasADetail) {
  const auto found = answer("motd\nDRUN-abc123-BROKEN /tmp: the checksum differs \r\nmore");
  EXPECT_EQ(found.kind, BootstrapAnswer::kBroken);
  EXPECT_EQ(found.detail, "/tmp: the checksum differs");
  EXPECT_EQ(answer("DRUN-abc123-CACHED /a\n").kind, BootstrapAnswer::kCached);
  EXPECT_EQ(answer("DRUN-abc123-NEED\n").kind, BootstrapAnswer::kNeed);
  EXPECT_EQ(answer("DRUN-abc123-NEEDGZ\n").kind, BootstrapAnswer::kNeedGzip);
  EXPECT_EQ(answer("DRUN-abc123-NEEDZST\n").kind, BootstrapAnswer::kNeedZstd);
  EXPECT_EQ(answer("DRUN-abc123-MACHINE arm\n").kind, BootstrapAnswer::kMachine);
  EXPECT_EQ(answer("DRUN-abc123-NOPLACE a b\n").kind, BootstrapAnswer::kNoPlace);
  EXPECT_EQ(answer("DRUN-abc123-FULL a,\n").kind, BootstrapAnswer::kFull);
}

TEST(BootstrapAnswer, AnUnfinishedLineOrAnotherNonceIsNone) {
  EXPECT_EQ(answer("DRUN-abc123-NEED").kind, BootstrapAnswer::kNone);
  EXPECT_EQ(answer("DRUN-abc124-NEED\n").kind, BootstrapAnswer::kNone);
  EXPECT_EQ(answer(kMagic.substr(0, kMagic.size() - 1)).kind, BootstrapAnswer::kNone);
  EXPECT_EQ(answer("").kind, BootstrapAnswer::kNone);
}

TEST(BootstrapAnswer, TheFirstOneCounts) {
  EXPECT_EQ(answer("DRUN-abc123-NEED\n" + kMagic).kind, BootstrapAnswer::kNeed);
  EXPECT_EQ(answer(kMagic + "DRUN-abc123-NEED\n").kind, BootstrapAnswer::kMagic);
}

// A shell that prints the commands which it executes prints the mark, too.
TEST(BootstrapAnswer, ALineWithAnotherWordIsSkipped) {
  const auto agent = answer("+ echo DRUN-abc123-WHAT\n" + kMagic + "hello");
  EXPECT_EQ(agent.kind, BootstrapAnswer::kMagic);
  EXPECT_EQ(agent.end, 24 + kMagic.size());
  EXPECT_EQ(answer("DRUN-abc123-NEED;head\nDRUN-abc123-NEED\n").kind, BootstrapAnswer::kNeed);
  EXPECT_EQ(answer("DRUN-abc123-WHAT else\n").kind, BootstrapAnswer::kNone);
}

}  // namespace
}  // namespace drun::launcher
