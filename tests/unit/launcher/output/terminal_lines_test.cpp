#include "launcher/output/terminal_lines.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using Strings = std::vector<std::string>;

class Stream : public ::testing::Test {
 protected:
  TerminalLines::Sink sink() {
    return [this](const TerminalLines::Line& line) {
      given.push_back(std::string(line.replaces_part  ? "!"
                                  : line.is_continued ? "+"
                                                      : "") +
                      std::string(line.text) + (line.is_ended ? "." : "~"));
    };
  }
  void write(std::string_view bytes) { lines.push(bytes, sink()); }
  Strings take() { return std::exchange(given, {}); }

  TerminalLines lines;
  Strings given;  // "." ends a whole line, "~" a partial one; "+" starts a continuation, "!" a replacement
};

TEST_F(Stream, GivesWholeLines) {
  write("a\nb");
  write("c\n\r\n\nx\r\n");
  EXPECT_EQ(take(), (Strings{"a.", "bc.", ".", ".", "x."}));
  EXPECT_TRUE(lines.bars().empty());
}

TEST_F(Stream, WhatIsReturnedToIsABar) {
  write("\r");
  EXPECT_TRUE(lines.bars().empty()) << "tqdm begins with one";
  write("\r  0%|    |");
  EXPECT_EQ(lines.bars(), Strings{"  0%|    |"});
  write("\r 50%|##  |");
  EXPECT_EQ(lines.bars(), Strings{" 50%|##  |"});
  EXPECT_TRUE(given.empty());
  write("\r100%|####|\n");
  EXPECT_EQ(take(), Strings{"100%|####|."});
  EXPECT_TRUE(lines.bars().empty());
}

TEST_F(Stream, AReturnAtTheEndOfABarKeepsIt) {
  write("10%\r");
  EXPECT_EQ(lines.bars(), Strings{"10%"});
  write("20%\r");
  EXPECT_EQ(lines.bars(), Strings{"20%"});
  write("\n");
  EXPECT_EQ(take(), Strings{"20%."});
}

TEST_F(Stream, ABarThatIsWipedOutLeavesNothing) {
  write("\r 10%|#  |\r          \r");
  EXPECT_TRUE(lines.bars().empty());
  write("message\n\r 20%|## |");
  EXPECT_EQ(take(), Strings{"message."});
  EXPECT_EQ(lines.bars(), Strings{" 20%|## |"});
  write("\r\033[K");
  lines.end(sink());
  EXPECT_TRUE(take().empty());
}

// Two nested tqdm bars: "\n" before the inner bar, and back up after it.
TEST_F(Stream, BarsInsideOfBarsStandBelowEachOther) {
  write("\r  0%|outer|");
  for (int epoch = 1; epoch <= 3; ++epoch) {
    write("\n\r  0%|inner|\033[A");
    write("\n\r 50%|inner|\033[A");
    EXPECT_EQ(lines.bars().back(), " 50%|inner|");
    write("\n\r           \r\033[A");
    write("\r 33%|outer|");
    EXPECT_EQ(lines.bars(), Strings{" 33%|outer|"});
  }
  EXPECT_EQ(take(), Strings{"  0%|outer|."}) << "once: the first time nobody knows that the stream goes back";
  // A message of tqdm.write: tqdm clears all bars and draws them again after the message. The message may go to another
  // stream.
  for (const std::string message : {"message\n", ""}) {
    write("\r           \r\n\r           \r\033[A");
    write(message);
    write("\r 66%|outer|\n\r 10%|inner|\033[A");
    EXPECT_EQ(take(), message.empty() ? Strings{} : Strings{"message."});
    EXPECT_EQ(lines.bars(), (Strings{" 66%|outer|", " 10%|inner|"}));
  }
  write("and print\n\r 70%|outer|\n\r 20%|inner|\033[A");
  EXPECT_EQ(take(), Strings{" 66%|outer|and print."}) << "as a terminal would show it";
  EXPECT_EQ(lines.bars(), (Strings{" 70%|outer|", " 20%|inner|"}));
  write("\n\r           \r\033[A");
  write("\r100%|outer|\n");
  lines.end(sink());
  EXPECT_EQ(take(), Strings{"100%|outer|."});
}

TEST_F(Stream, ManyRowsThatAreRewrittenAreGivenOutInTheEnd) {
  write("x\033[A");
  Strings expected;
  for (int i = 0; i < 20; ++i) {
    write("\rbar " + std::to_string(i) + "\rBar " + std::to_string(i) + "\n");
    expected.push_back("Bar " + std::to_string(i) + ".");
  }
  EXPECT_LE(lines.bars().size(), TerminalLines::kMaxRows);
  lines.end(sink());
  EXPECT_EQ(take(), expected);
}

TEST_F(Stream, AnUnfinishedLineIsGivenOnceAndGoesOn) {
  write("Name: ");
  lines.give_unfinished(sink());
  lines.give_unfinished(sink());
  EXPECT_EQ(take(), Strings{"Name: ~"});
  write("Ada\nnext\n");
  EXPECT_EQ(take(), (Strings{"+Ada.", "next."}));
  write("half");
  lines.give_unfinished(sink());
  take();
  lines.end(sink());
  EXPECT_EQ(take(), Strings{"+."});
}

TEST_F(Stream, AnUnfinishedLineThatBecomesABarIsReplaced) {
  write("loading");
  lines.give_unfinished(sink());
  write("\r10%");
  EXPECT_EQ(lines.bars(), Strings{"10%"});
  lines.give_unfinished(sink());
  EXPECT_EQ(take(), Strings{"loading~"});
  write("\rdone\n");
  EXPECT_EQ(take(), Strings{"!done."});
}

TEST_F(Stream, BackspaceTakesCharactersBack) {
  write("|\b/\b\xc3\xa9\b-");
  EXPECT_EQ(lines.bars(), Strings{"-"});
  write("\b\b\b\bdone\n");
  EXPECT_EQ(take(), Strings{"done."});
}

TEST_F(Stream, ColorsEndWithTheirLineAndGoOnInTheNext) {
  write("\033[31mred\nstill\033[0m plain\n\033[1mbold\033[0m\nplain\n");
  EXPECT_EQ(take(), (Strings{"\033[31mred\033[0m.", "\033[31mstill\033[0m plain.", "\033[1mbold\033[0m.", "plain."}));
}

TEST_F(Stream, OtherEscapeSequencesAreLeftOutHoweverTheyAreCut) {
  const std::string text =
      "a\033[2J\033[10;1Hb\033[?1049h\033]0;title\ac\033]8;;http://x\033\\link\033]8;;\033\\\033(B\033M\x0e\x01z\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    write(text.substr(0, cut));
    write(text.substr(cut));
    EXPECT_EQ(take(), Strings{"abclinkz."}) << cut;
  }
}

TEST_F(Stream, ASequenceWithoutAnEndEndsWithItsLine) {
  write("a\033]0;no end\nb\n\033[1;2\nc\n");
  EXPECT_EQ(take(), (Strings{"a.", "b.", ".", "c."}));
}

TEST_F(Stream, CutsDoNotMatter) {
  const std::string text = "a\r\n\r10%\r\xe2\x82\xac 20%\033[32mx\033[A\n\rb\033[Kc\033[0m\b\n\n\td\n";
  write(text);
  lines.end(sink());
  const Strings expected = take();
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      lines = TerminalLines();
      for (const auto& part : {text.substr(0, i), text.substr(i, j - i), text.substr(j)}) write(part);
      lines.end(sink());
      EXPECT_EQ(take(), expected) << i << " " << j;
    }
  }
}

TEST_F(Stream, AnOverlongLineComesInParts) {
  for (const std::string character : {"x", "\xe2\x82\xac", "\x80"}) {
    std::string line;
    while (line.size() < 3 * TerminalLines::kLimit) line += character;
    write(line);
    write("\n");
    std::string all;
    for (const auto& part : take()) {
      EXPECT_LE(part.size(), TerminalLines::kLimit + 2);
      all += part.substr(all.empty() ? 0 : 1, part.size() - (all.empty() ? 1 : 2));
    }
    EXPECT_EQ(all, line);
  }
}

}  // namespace
}  // namespace drun::launcher
