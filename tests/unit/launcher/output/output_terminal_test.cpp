// The view of a terminal that several ranks share: the display's bytes, shown by a small emulator.
#include <gtest/gtest.h>

#include "launcher/output/output_display.h"
#include "terminal_emulator.h"

namespace drun::launcher {
namespace {

using control::Stream;
using Rows = std::vector<std::string>;

class Terminal : public ::testing::Test {
 protected:
  void SetUp() override { make(60, 24, 4); }
  void make(int columns, int rows, std::size_t n_ranks, std::size_t max_bars = OutputDisplay::kMaxBars,
            TagStyle style = TagStyle::kRank) {
    Screen screen;
    screen.is_one = true;
    screen.out = screen.err = Screen::Kind::kTerminal;
    screen.bars_out = screen.bars_err = max_bars;
    std::vector<RankLabel> labels(n_ranks, RankLabel{"gpu1", 0});
    display = std::make_unique<OutputDisplay>(OutputTags(style, false, labels), n_ranks, screen);
    emulator = std::make_unique<TerminalEmulator>(static_cast<std::size_t>(columns), static_cast<std::size_t>(rows));
    size.columns = columns;
    size.rows = rows;
  }
  void put(int rank, std::string_view bytes, Stream stream = Stream::kStdout) { display->put(rank, stream, 0, bytes); }
  void flush(bool changed_too = true) {
    display->resize(size, size);
    display->draw(changed_too);
    emulator->write(display->out());
    n_bytes += display->out().size();
    display->clear();
  }
  Rows shown() {
    flush();
    return emulator->rows();
  }
  void end(int rank) {
    display->end(rank, Stream::kStdout);
    display->end(rank, Stream::kStderr);
  }

  std::unique_ptr<OutputDisplay> display;
  std::unique_ptr<TerminalEmulator> emulator;
  TerminalSize size;
  std::size_t n_bytes = 0;
};

TEST_F(Terminal, LinesOfOthersStandAboveABar) {
  for (int i = 0; i < 3; ++i) {
    put(0, "\r " + std::to_string(i) + "0%|###|", Stream::kStderr);
    flush();
    put(1, "epoch " + std::to_string(i) + "\n");
    EXPECT_EQ(shown().back(), "[0]  " + std::to_string(i) + "0%|###|");
  }
  EXPECT_EQ(shown(), (Rows{"[1] epoch 0", "[1] epoch 1", "[1] epoch 2", "[0]  20%|###|"}));
  put(0, "\r100%|###|\n", Stream::kStderr);
  put(1, "over\n");
  EXPECT_EQ(shown(), (Rows{"[1] epoch 0", "[1] epoch 1", "[1] epoch 2", "[0] 100%|###|", "[1] over"}));
}

TEST_F(Terminal, BarsOfManyRanksAreRewrittenInPlaceAndNothingScrolls) {
  for (int i = 0; i <= 100; ++i) {
    for (const int rank : {2, 0, 3, 1}) {
      put(rank, "\r" + std::to_string(i) + "%", Stream::kStderr);
      flush();
    }
  }
  EXPECT_EQ(shown(), (Rows{"[0] 100%", "[1] 100%", "[2] 100%", "[3] 100%"}));
  put(1, "\n", Stream::kStderr);
  EXPECT_EQ(shown(), (Rows{"[1] 100%", "[0] 100%", "[2] 100%", "[3] 100%"}));
  for (const int rank : {0, 1, 2, 3}) end(rank);
  EXPECT_EQ(shown(), (Rows{"[1] 100%", "[0] 100%", "[2] 100%", "[3] 100%"}));
  EXPECT_EQ(emulator->column(), 0u);
}

TEST_F(Terminal, ABarIsCutToTheColumnsAndALineIsNot) {
  const std::string wide(100, 'x');
  for (int i = 0; i < 5; ++i) {
    put(0, "\r" + std::to_string(i) + wide);
    put(1, "\r" + std::to_string(i) + wide);
    flush();
  }
  EXPECT_EQ(shown(), (Rows{"[0] 4" + wide.substr(0, 55), "[1] 4" + wide.substr(0, 55)}));
  put(0, "\n");
  EXPECT_EQ(shown(), (Rows{"[0] 4" + wide.substr(0, 55), wide.substr(55), "[1] 4" + wide.substr(0, 55)}));
}

TEST_F(Terminal, BarsThatDoNotFitAreCounted) {
  make(60, 10, 64);
  for (int rank = 63; rank >= 0; --rank) put(rank, "\r10%");
  EXPECT_EQ(shown(), (Rows{"[0] 10%", "[1] 10%", "[2] 10%", "[3] 10%", "... and 60 more progress bars"}));
  put(40, "\n");
  EXPECT_EQ(shown(), (Rows{"[40] 10%", "[0] 10%", "[1] 10%", "[2] 10%", "[3] 10%", "... and 59 more progress bars"}));
}

TEST_F(Terminal, ManyLinesAtOnceScrollAboveTheBars) {
  make(60, 10, 4);
  put(0, "\r10%");
  flush();
  Rows expected;
  for (int i = 0; i < 50; ++i) {
    put(1, "line " + std::to_string(i) + "\n");
    expected.push_back("[1] line " + std::to_string(i));
    if (i % 7 == 0) flush();
  }
  expected.push_back("[0] 10%");
  EXPECT_EQ(shown(), expected);
}

TEST_F(Terminal, AnUnfinishedLineIsNoBarAndIsBrokenByOthers) {
  put(0, "Name: ");
  put(0, "");
  EXPECT_EQ(shown(), Rows{"[0] Name:"});
  EXPECT_EQ(emulator->column(), 10u) << "behind the prompt";
  put(1, "\r10%");
  EXPECT_EQ(shown(), (Rows{"[0] Name:", "[1] 10%"}));
  put(0, "Ada\n");
  EXPECT_EQ(shown(), (Rows{"[0] Name:", "[0+] Ada", "[1] 10%"}));
}

TEST_F(Terminal, AnAnswerGoesOnBehindItsPrompt) {
  put(0, "Name: ");
  put(0, "");
  flush();
  put(0, "Ada\n");
  EXPECT_EQ(shown(), Rows{"[0] Name: Ada"});
}

TEST_F(Terminal, ALineThatBecomesABarIsTakenAwayWhereItStands) {
  put(0, "loading");
  put(0, "");
  EXPECT_EQ(shown(), Rows{"[0] loading"});
  put(0, "\r10%");
  EXPECT_EQ(shown(), Rows{"[0] 10%"});
}

TEST_F(Terminal, OwnWordsBeginALineAndBarsStandBelowThem) {
  put(0, "\r10%");
  flush();
  display->put_own("drun: warning: first\n  second\n");
  EXPECT_EQ(shown(), (Rows{"drun: warning: first", "  second", "[0] 10%"}));
  EXPECT_FALSE(display->own_words_break_a_line());
}

TEST_F(Terminal, AtTheEndBarsStayAsLines) {
  put(0, "\r10%");
  put(1, "\r20%");
  flush();
  display->show_all_unfinished();
  EXPECT_EQ(shown(), (Rows{"[0] 10%", "[1] 20%"}));
  EXPECT_EQ(emulator->column(), 0u);
  EXPECT_FALSE(display->own_words_break_a_line());
}

TEST_F(Terminal, ChangedBarsWaitAndBarsThatLinesTookAwayDoNot) {
  put(0, "\r10%");
  EXPECT_EQ(shown(), Rows{"[0] 10%"});
  put(0, "\r20%");
  EXPECT_TRUE(display->has_changed_bars());
  flush(false);
  EXPECT_EQ(emulator->rows(), Rows{"[0] 10%"});
  put(1, "line\n");
  flush(false);
  EXPECT_EQ(emulator->rows(), (Rows{"[1] line", "[0] 20%"}));
  EXPECT_FALSE(display->has_changed_bars());
  n_bytes = 0;
  put(0, "\r20%");
  flush();
  EXPECT_EQ(n_bytes, 0u) << "nothing has changed";
}

TEST_F(Terminal, AfterTheShellWroteNothingOfItIsOverwritten) {
  put(0, "\r10%");
  put(1, "\r10%");
  flush();
  emulator->write("^Z\n[1]+  Stopped\n$ fg\n");
  display->forget_screen();
  EXPECT_EQ(shown(), (Rows{"[0] 10%", "[1] 10%^Z", "[1]+  Stopped", "$ fg", "[0] 10%", "[1] 10%"}));
}

TEST_F(Terminal, OnADumbTerminalABarIsShownWhenItIsOver) {
  make(60, 24, 4, 0);
  put(0, "\r\r10%");
  flush();
  put(1, "line\n");
  put(0, "\r20%");
  flush();
  put(0, "\r100%\n");
  put(2, "loading");
  put(2, "");
  put(2, "\rdone\n");
  display->resize(size, size);
  display->draw(true);
  EXPECT_EQ(display->out().find('\033'), std::string::npos);
  EXPECT_EQ(shown(), (Rows{"[1] line", "[0] 100%", "[2] loading", "[2] done"}));
}

TEST_F(Terminal, WithoutTagsBarsAndLinesDoNotMixEither) {
  make(60, 24, 2, OutputDisplay::kMaxBars, TagStyle::kNone);
  put(0, "\r10%");
  put(1, "line\n");
  EXPECT_EQ(shown(), (Rows{"line", "10%"}));
}

TEST_F(Terminal, OfOneRankWithoutATagTheBytesStayAndOwnWordsBeginALine) {
  make(60, 24, 1, OutputDisplay::kMaxBars, TagStyle::kNone);
  for (const std::string bar : {"\r10%", "20%\r"}) {
    put(0, bar);
    EXPECT_TRUE(display->own_words_break_a_line());
    display->put_own("drun: note\n");
    EXPECT_EQ(display->out(), bar + "\ndrun: note\n");
    EXPECT_FALSE(display->own_words_break_a_line());
    display->clear();
  }
}

// A file gets every byte; a carriage return alone is no line.
TEST_F(Terminal, InAFileEveryPieceOfABarStays) {
  std::vector<RankLabel> labels(2);
  display = std::make_unique<OutputDisplay>(OutputTags(TagStyle::kRank, false, labels), 2, Screen());
  put(0, "\r");
  put(0, "");
  EXPECT_EQ(display->out(), "");
  put(0, "\r 0%");
  put(0, "");
  put(0, "\r50%\r100%\n");
  put(0, "\r");
  display->end(0, Stream::kStdout);
  EXPECT_EQ(display->out(), "[0] \r\r 0%\r[0] 50%\r[0] 100%\n[0] \r");
}

}  // namespace
}  // namespace drun::launcher
