#include "launcher/report/last_lines.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using control::Stream;
using Lines = std::vector<std::string>;

TEST(LastLines, KeepsTheLastTwenty) {
  LastLines last;
  for (int i = 0; i < 100; ++i) last.push(Stream::kStdout, "line " + std::to_string(i) + "\n");
  const auto lines = last.lines();
  ASSERT_EQ(lines.size(), LastLines::kLines);
  EXPECT_EQ(lines.front(), "line 80");
  EXPECT_EQ(lines.back(), "line 99");
}

TEST(LastLines, JoinsWhatComesInPieces) {
  LastLines last;
  last.push(Stream::kStderr, "Value");
  last.push(Stream::kStderr, "Error: x\nno newline");
  EXPECT_EQ(last.lines(), (Lines{"ValueError: x", "no newline"}));
}

TEST(LastLines, NeverMixesTheStreamsWithinALine) {
  LastLines last;
  last.push(Stream::kStdout, "progress 3/");
  last.push(Stream::kStderr, "boom\n");
  EXPECT_EQ(last.lines(), (Lines{"progress 3/", "boom"}));
}

TEST(LastLines, IsBoundedWhateverComes) {
  LastLines last;
  for (int i = 0; i < 100; ++i) last.push(Stream::kStdout, std::string(100000, 'x'));
  last.push(Stream::kStdout, "\nend\n");
  const auto lines = last.lines();
  EXPECT_EQ(lines.back(), "end");
  std::size_t n_bytes = 0;
  for (const auto& line : lines) n_bytes += line.size();
  EXPECT_LE(n_bytes, 2 * LastLines::kBytes);
}

TEST(LastLines, LeavesOutTheRestOfALineWhoseStartIsGone) {
  LastLines last;
  last.push(Stream::kStdout, std::string(3 * LastLines::kBytes, 'x') + "tail\nwhole\n");
  EXPECT_EQ(last.lines(), (Lines{"whole"}));
}

TEST(LastLines, ShowsWhatATerminalWouldShowOfAProgressBar) {
  LastLines last;
  last.push(Stream::kStdout, " 1%\r 2%\r 3%\r\nbell\a\033[31m\tred\n\n\n");
  EXPECT_EQ(last.lines(), (Lines{" 3%", "bell? red"}));
  last.push(Stream::kStdout,
            "\xc2\x9b"
            "2J\xff\x7f\n");
  EXPECT_EQ(last.lines().back(), "?2J??");
}

TEST(LastLines, CutsALongLineWithAMark) {
  LastLines last;
  last.push(Stream::kStdout, std::string(5000, 'y') + "\n");
  ASSERT_EQ(last.lines().size(), 1u);
  EXPECT_EQ(last.lines()[0], std::string(LastLines::kLineBytes, 'y') + "...");
}

TEST(LastLines, OfNothingAreNone) {
  LastLines last;
  EXPECT_TRUE(last.lines().empty());
  last.push(Stream::kStdout, "\n\n");
  EXPECT_TRUE(last.lines().empty());
}

}  // namespace
}  // namespace drun::launcher
