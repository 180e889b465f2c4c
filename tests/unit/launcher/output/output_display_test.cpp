#include "launcher/output/output_display.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace drun::launcher {
namespace {

using control::Stream;

const std::vector<RankLabel> kTwo = {{"gpu1", 0}, {"gpu2", 1}};

class Display : public ::testing::Test {
 protected:
  void make(TagStyle style, bool timestamp = false, Screen screen = {}, std::size_t n_ranks = 2) {
    display = std::make_unique<OutputDisplay>(OutputTags(style, timestamp, kTwo), n_ranks, screen);
  }
  void put(int rank, std::string_view bytes, Stream stream = Stream::kStdout, std::uint64_t time_ns = 0) {
    display->put(rank, stream, time_ns, bytes);
  }
  std::unique_ptr<OutputDisplay> display;
};

TEST_F(Display, TagsWithTheRankOrTheHostAndTheRank) {
  make(TagStyle::kRank);
  put(0, "a\nb\n");
  put(1, "c\n");
  EXPECT_EQ(display->out(), "[0] a\n[0] b\n[1] c\n");
  make(TagStyle::kHost);
  put(1, "c\n");
  EXPECT_EQ(display->out(), "[gpu2:1] c\n");
}

TEST_F(Display, OneRankWithoutATagKeepsItsBytes) {
  make(TagStyle::kNone, false, {}, 1);
  const std::string bytes("\r\0\xff no end", 10);
  put(0, bytes);
  display->end(0, Stream::kStdout);
  EXPECT_EQ(display->out(), bytes);
}

TEST_F(Display, MergedStderrGoesToStdoutInLinesOfItsOwn) {
  Screen screen;
  screen.merges_stderr = true;
  screen.color_err = true;
  make(TagStyle::kRank, false, screen);
  put(0, "half ");
  put(0, "error\n", Stream::kStderr);
  put(0, "line\n");
  display->put_own("drun: note\n");
  EXPECT_EQ(display->out(), "[0] error\n[0] half line\n");
  EXPECT_EQ(display->err(), "drun: note\n");
  make(TagStyle::kNone, false, screen, 1);
  put(0, "a");
  put(0, "b", Stream::kStderr);
  EXPECT_EQ(display->out(), "ab");
}

TEST_F(Display, WithoutTagsTheLinesOfSeveralRanksStayWhole) {
  make(TagStyle::kNone);
  put(0, "one ");
  put(1, "two\nend");
  put(0, "line\n");
  display->end(1, Stream::kStdout);
  EXPECT_EQ(display->out(), "two\none line\nend");
}

TEST_F(Display, ALineThatOthersBrokeGoesOnWithAPlus) {
  make(TagStyle::kRank);
  put(0, "Name: ");
  put(0, "");
  put(1, "x\n");
  put(0, "Ada\nnext\n");
  EXPECT_EQ(display->out(), "[0] Name: \n[1] x\n[0+] Ada\n[0] next\n");
}

TEST_F(Display, ALineThatNobodyBrokeGoesOnInPlace) {
  make(TagStyle::kRank);
  put(0, "Name: ");
  put(0, "");
  put(0, "Ada\n");
  EXPECT_EQ(display->out(), "[0] Name: Ada\n");
}

TEST_F(Display, PiecesOfAnOverlongLineAreMarkedWhereOthersCameInBetween) {
  make(TagStyle::kHost);
  const std::string piece(LineAssembler::kLimit, 'x');
  put(0, piece + "yy");
  put(1, "z\n");
  put(0, "!\n");
  EXPECT_EQ(display->out(), "[gpu1:0] " + piece + "\n[gpu2:1] z\n[gpu1:0+] yy!\n");
}

TEST_F(Display, TheEndOfAStreamEndsItsLine) {
  make(TagStyle::kRank);
  put(0, "half");
  display->end(0, Stream::kStdout);
  put(1, "prompt");
  display->show_all_unfinished();
  display->end(1, Stream::kStdout);
  EXPECT_EQ(display->out(), "[0] half\n[1] prompt\n");
}

TEST_F(Display, StreamsGoTheirOwnWaysUnlessTheyAreOneScreen) {
  make(TagStyle::kRank);
  put(0, "out\n");
  put(0, "err\n", Stream::kStderr);
  display->put_own("drun: note\n");
  EXPECT_EQ(display->out(), "[0] out\n");
  EXPECT_EQ(display->err(), "[0] err\ndrun: note\n");
  Screen screen;
  screen.is_one = true;
  make(TagStyle::kRank, false, screen);
  put(0, "half");
  display->show_all_unfinished();
  put(1, "err\n", Stream::kStderr);
  display->put_own("drun: note\n");
  EXPECT_EQ(display->out(), "[0] half\n[1] err\ndrun: note\n");
  EXPECT_EQ(display->err(), "");
}

TEST_F(Display, ColoursDifferByHostAndOnlyWhereTheyAreWanted) {
  Screen screen;
  screen.color_out = true;
  make(TagStyle::kRank, false, screen);
  put(0, "a\n");
  put(1, "b\n");
  put(0, "c\n", Stream::kStderr);
  EXPECT_EQ(display->out(), "\033[36m[0]\033[0m a\n\033[32m[1]\033[0m b\n");
  EXPECT_EQ(display->err(), "[0] c\n");
}

class Times : public Display {
 protected:
  void SetUp() override { set_zone("UTC-2"); }
  void TearDown() override { set_zone(nullptr); }
  static void set_zone(const char* zone) {
    zone != nullptr ? ::setenv("TZ", zone, 1) : ::unsetenv("TZ");
    ::tzset();
  }
  static constexpr std::uint64_t kAt = 1'000'000'123'456'789u;  // 1970-01-12 13:46:40.123 UTC
};

TEST_F(Times, AreLocalWithMilliseconds) {
  make(TagStyle::kRank, true);
  put(0, "a\n", Stream::kStdout, kAt);
  EXPECT_EQ(display->out(), "15:46:40.123 [0] a\n");
  make(TagStyle::kNone, true, {}, 1);
  put(0, "a\n", Stream::kStdout, kAt);
  EXPECT_EQ(display->out(), "15:46:40.123 a\n");
}

TEST_F(Times, ALineHasTheTimeOfItsFirstBytes) {
  make(TagStyle::kRank, true);
  put(0, "a", Stream::kStdout, kAt);
  put(0, "b\nc\n", Stream::kStdout, kAt + 1'000'000'000u);
  EXPECT_EQ(display->out(), "15:46:40.123 [0] ab\n15:46:41.123 [0] c\n");
}

TEST_F(Times, ThePlusStandsAfterTheTimeWhereThereIsNoTag) {
  make(TagStyle::kNone, true);
  put(0, "a", Stream::kStdout, kAt);
  display->show_all_unfinished();
  put(1, "b\n", Stream::kStdout, kAt);
  put(0, "c\n", Stream::kStdout, kAt);
  EXPECT_EQ(display->out(), "15:46:40.123 a\n15:46:40.123 b\n15:46:40.123 + c\n");
}

}  // namespace
}  // namespace drun::launcher
