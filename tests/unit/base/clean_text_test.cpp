#include "base/clean_text.h"

#include <gtest/gtest.h>

#include "tests/hostile_text.h"

namespace drun {
namespace {

using namespace std::string_literals;

TEST(CleanText, ReplacesControlCharactersButNewlineAndTab) {
  EXPECT_EQ(clean_text("a\033]0;title\007\033[2Jb\0c\x7f"s), "a?]0;title??[2Jb?c?");
  EXPECT_EQ(clean_text("one\n\ttwo\r\nthree\rfour\n"), "one\n\ttwo\nthree?four\n");
}

TEST(CleanText, ReplacesC1ControlCharactersInBothForms) {
  EXPECT_EQ(clean_text("a\xc2\x9b"s + "2J"), "a?2J");
  EXPECT_EQ(clean_text("\xc2\x80|\xc2\x9f|\xc2\xa0|\xc2\xad"), "?|?|\xc2\xa0|\xc2\xad");
  EXPECT_EQ(clean_text("a\x9b"s + "2J"), "a?2J");
}

TEST(CleanText, KeepsValidUtf8AndReplacesTheRestByteByByte) {
  const std::string valid = "gr\u00fcn \u20ac \U0001f600 \u07ff\uffff\U0010ffff";
  EXPECT_EQ(clean_text(valid), valid);
  EXPECT_EQ(clean_text("\xc0\x9b|\xe0\x82\x9b|\xf0\x80\x82\x9b"), "??|???|????");  // overlong
  EXPECT_EQ(clean_text("\xed\xa0\x80|\xf4\x90\x80\x80|\xf8\x88\x80\x80"), "???|????|????");
  EXPECT_EQ(clean_text("a\xe2\x82"), "a??");  // cut
  EXPECT_EQ(clean_text("\xe2\x82\033[2J"), "???[2J");
  EXPECT_EQ(clean_text("\xff\xfe"), "??");
}

TEST(CleanLine, HasNoLineEnds) {
  EXPECT_EQ(clean_line("why\r\n  | forged\tline\n"), "why   | forged line ");
  EXPECT_EQ(clean_line("\033[31m\xc2\x9b\x7f\r"), "?[31m???");
}

TEST(EscapeControls, EscapesInJsonWhatTheLibraryLeaves) {
  EXPECT_EQ(escape_controls("{\"a\": \"\x7f\xc2\x80\xc2\x9bm\xc2\x9f\xc2\xa0\u20ac\"}"),
            "{\"a\": \"\\u007f\\u0080\\u009bm\\u009f\xc2\xa0\u20ac\"}");
}

TEST(CleanLine, OfAHostileText) { EXPECT_EQ(clean_line(testing::kHostile), testing::kHostileInOneLine); }

}  // namespace
}  // namespace drun
