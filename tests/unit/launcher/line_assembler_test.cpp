#include "launcher/line_assembler.h"

#include <gtest/gtest.h>

#include <vector>

namespace drun::launcher {
namespace {

std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  LineAssembler lines;
  std::vector<std::string> out;
  for (const auto& piece : pieces) {
    lines.push(piece);
    for (std::string line = lines.next(); !line.empty(); line = lines.next()) out.push_back(line);
  }
  if (lines.has_rest()) out.push_back("rest:" + lines.take_rest());
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
}

TEST(LineAssembler, CrLfIsOneEndEvenWhenCutInBetween) {
  const std::vector<std::string> expected = {"a\r\n", "b\r\n"};
  EXPECT_EQ(lines_of({"a\r", "\nb\r\n"}), expected);
}

TEST(LineAssembler, AnOverlongLineComesInBoundedPieces) {
  LineAssembler lines;
  lines.push(std::string(3 * LineAssembler::kLimit, 'x'));
  std::size_t total = 0;
  for (std::string piece = lines.next(); !piece.empty(); piece = lines.next()) {
    EXPECT_LE(piece.size(), LineAssembler::kLimit);
    total += piece.size();
  }
  EXPECT_EQ(total + lines.take_rest().size(), 3 * LineAssembler::kLimit);
}

TEST(TaggedOutput, TagsEveryLineOnce) {
  TaggedOutput out;
  out.put(0, "[0] ", "a\n");
  out.put(2, "[1] ", "b\n");
  EXPECT_EQ(out.take(), "[0] a\n[1] b\n");
}

TEST(TaggedOutput, ContinuesAnUnfinishedLineOfTheSameStream) {
  TaggedOutput out;
  out.put(0, "[0] ", "Name: ");
  out.put(0, "[0] ", "Ada\n");
  EXPECT_EQ(out.take(), "[0] Name: Ada\n");
}

TEST(TaggedOutput, BreaksAnUnfinishedLineForAnotherStream) {
  TaggedOutput out;
  out.put(0, "[0] ", "half");
  out.put(2, "[1] ", "whole\n");
  out.put(0, "[0] ", "rest\n");
  EXPECT_EQ(out.take(), "[0] half\n[1] whole\n[0] rest\n");
}

TEST(TaggedOutput, KeepsBytes) {
  TaggedOutput out;
  const std::string bytes("\0\xff\x80 x\n", 6);
  out.put(0, "", bytes);
  EXPECT_EQ(out.take(), bytes);
}

}  // namespace
}  // namespace drun::launcher
