#include "launcher/output/line_assembler.h"

#include <gtest/gtest.h>

#include <vector>

namespace drun::launcher {
namespace {

std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  LineAssembler lines;
  std::vector<std::string> out;
  for (const auto& piece : pieces) {
    lines.push(piece, [&](std::string_view line) { out.emplace_back(line); });
  }
  if (const std::string rest = lines.take_rest(); !rest.empty()) out.push_back("rest:" + rest);
  return out;
}

TEST(LineAssembler, CutsAtNewlinesWhateverThePieces) {
  const std::vector<std::string> expected = {"one\n", "\n", "two\n", "rest:three"};
  EXPECT_EQ(lines_of({"one\n\ntwo\nthree"}), expected);
  EXPECT_EQ(lines_of({"o", "ne", "\n", "\nt", "wo\nth", "ree"}), expected);
}

TEST(LineAssembler, CarriageReturnEndsADisplayedLine) {
  const std::vector<std::string> expected = {"10%\r", "20%\r", "done\n"};
  EXPECT_EQ(lines_of({"10%\r20%\rdone\n"}), expected);
  EXPECT_EQ(lines_of({"10%", "\r", "20%\r", "done\n"}), expected);
}

TEST(LineAssembler, CrLfIsOneEndEvenWhenCutInBetween) {
  const std::vector<std::string> expected = {"a\r\n", "b\r\n"};
  EXPECT_EQ(lines_of({"a\r", "\nb\r\n"}), expected);
  EXPECT_EQ(lines_of({"a\r\nb\r\n"}), expected);
  EXPECT_EQ(lines_of({"a\r\r\n"}), (std::vector<std::string>{"a\r", "\r\n"}));
}

TEST(LineAssembler, AReturnWithNothingBeforeItBelongsToTheLineThatFollows) {
  EXPECT_EQ(lines_of({"\r", "\r 10%", "\r", " 20%\n"}), (std::vector<std::string>{"\r\r 10%\r", " 20%\n"}));
  EXPECT_EQ(lines_of({"\r\r\n\r"}), (std::vector<std::string>{"\r\r\n"})) << "the rest is kept";
  LineAssembler lines;
  std::vector<std::string> out;
  const auto sink = [&](std::string_view line) { out.emplace_back(line); };
  lines.push("\r 10%", sink);
  EXPECT_EQ(lines.take_rest(), "\r 10%");
  lines.push("\r 20%\n", sink);
  EXPECT_EQ(out, (std::vector<std::string>{"\r", " 20%\n"})) << "it ends the line whose beginning was shown";
}

// Every cut of a text into three parts gives the same lines.
TEST(LineAssembler, CutsDoNotMatter) {
  const std::string text = "a\r\nbc\rd\n\n\r\r\nefg\r\n\rh";
  const auto expected = lines_of({text});
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      EXPECT_EQ(lines_of({text.substr(0, i), text.substr(i, j - i), text.substr(j)}), expected) << i << " " << j;
    }
  }
}

TEST(LineAssembler, AnOverlongLineComesInBoundedPiecesWithAllItsBytes) {
  constexpr std::size_t kLimit = LineAssembler::kLimit;
  std::string line;
  while (line.size() < 5 * kLimit) line += "0123456789abc";
  line += "\n";
  for (const std::size_t chunk : {std::size_t{1000}, kLimit - 1, kLimit, kLimit + 1, line.size()}) {
    LineAssembler lines;
    std::string all;
    for (std::size_t at = 0; at < line.size(); at += chunk) {
      lines.push(std::string_view(line).substr(at, chunk), [&](std::string_view piece) {
        EXPECT_LE(piece.size(), kLimit);
        all += piece;
      });
    }
    EXPECT_EQ(all, line) << "in chunks of " << chunk;
    EXPECT_FALSE(lines.has_rest());
  }
}

TEST(LineAssembler, AnOverlongLineIsNotCutInsideOfACharacter) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string line(shift, 'x');
    while (line.size() < 2 * LineAssembler::kLimit) line += "\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9";
    LineAssembler lines;
    std::string all;
    lines.push(line, [&](std::string_view piece) {
      EXPECT_NE(static_cast<unsigned char>(piece[0]) & 0xC0, 0x80) << "begins inside of a character";
      all += piece;
    });
    EXPECT_EQ(all + lines.take_rest(), line);
  }
}

TEST(LineAssembler, BytesThatAreNoTextAreCutAnywhere) {
  const std::string bytes(3 * LineAssembler::kLimit, '\x80');
  LineAssembler lines;
  std::size_t n = 0;
  lines.push(bytes, [&](std::string_view piece) { n += piece.size(); });
  EXPECT_EQ(n + lines.take_rest().size(), bytes.size());
}

TEST(LineAssembler, ALineOfExactlyTheLimitIsNotHeldBack) {
  for (const std::size_t n_pieces : {1u, 3u}) {
    LineAssembler lines;
    const std::string text = std::string(n_pieces * LineAssembler::kLimit, 'x') + "\n";
    std::string shown;
    for (std::size_t at = 0; at < text.size(); at += LineAssembler::kLimit) {
      lines.push(std::string_view(text).substr(at, LineAssembler::kLimit), [&](std::string_view s) { shown += s; });
    }
    EXPECT_EQ(shown.size(), text.size());
    EXPECT_FALSE(lines.has_rest());
  }
}

TEST(TaggedOutput, TagsEveryLineOnce) {
  TaggedOutput out;
  out.put(0, "[0] ", "a\n");
  out.put(2, "[1] ", "b\n");
  EXPECT_EQ(out.bytes(), "[0] a\n[1] b\n");
}

TEST(TaggedOutput, ContinuesAnUnfinishedLineOfTheSameStream) {
  TaggedOutput out;
  out.put(0, "[0] ", "Name: ");
  out.put(0, "[0] ", "Ada\n");
  EXPECT_EQ(out.bytes(), "[0] Name: Ada\n");
}

TEST(TaggedOutput, BreaksAnUnfinishedLineForAnotherStreamAlsoAfterItWasWritten) {
  TaggedOutput out;
  out.put(0, "[0] ", "half");
  out.clear();
  out.put(2, "[1] ", "whole\n");
  out.put(0, "[0+] ", "rest\n");
  EXPECT_EQ(out.bytes(), "\n[1] whole\n[0+] rest\n");
}

TEST(TaggedOutput, ClosesOnlyTheLineOfItsOwner) {
  TaggedOutput out;
  out.put(0, "", "half");
  out.close_line(2);
  EXPECT_EQ(out.bytes(), "half");
  out.close_line(0);
  out.close_line(0);
  EXPECT_EQ(out.bytes(), "half\n");
}

TEST(TaggedOutput, KeepsBytes) {
  TaggedOutput out;
  const std::string bytes("\0\xff\x80 x\n", 6);
  out.put(0, "", bytes);
  EXPECT_EQ(out.bytes(), bytes);
}

}  // namespace
}  // namespace drun::launcher
