#include "base/text_width.h"

#include <gtest/gtest.h>

namespace drun {
namespace {

using Rows = std::vector<std::string>;

TEST(TextWidth, CountsColumnsAndNotBytes) {
  EXPECT_EQ(text_width(""), 0u);
  EXPECT_EQ(text_width("abc"), 3u);
  EXPECT_EQ(text_width("\xc3\xa9\xe2\x96\x88"), 2u);          // e with an accent, a block
  EXPECT_EQ(text_width("\xe4\xb8\xad\xf0\x9f\x9a\x80"), 4u);  // a Chinese character, a rocket
  EXPECT_EQ(text_width("e\xcc\x81"), 1u);                     // a combining accent
  EXPECT_EQ(text_width("\033[1;31mred\033[0m"), 3u);
  EXPECT_EQ(text_width("\xff\x80\xe2\x96"), 4u) << "no UTF-8";
}

TEST(TextWidth, CutsBetweenCharactersAndKeepsColors) {
  EXPECT_EQ(cut_to_width("abc", 3), "abc");
  EXPECT_EQ(cut_to_width("abcd", 3), "abc");
  EXPECT_EQ(cut_to_width("ab\xe4\xb8\xad"
                         "d",
                         3),
            "ab")
      << "half of a wide one does not fit, and nothing stands in for it";
  EXPECT_EQ(cut_to_width("\033[31m[0]\033[0m abcdef\033[0m", 5), "\033[31m[0]\033[0m a\033[0m");
  EXPECT_EQ(cut_to_width("a\tb\ac\033", 9), "a bc\033");
}

TEST(TextWidth, WrapsWordsAndCutsLongOnes) {
  EXPECT_EQ(wrap_text("one two  three", 8), (Rows{"one two", "three"}));
  EXPECT_EQ(wrap_text("one two  three", 14), (Rows{"one two  three"}));
  EXPECT_EQ(wrap_text("", 8), (Rows{""}));
  EXPECT_EQ(wrap_text("abcdefghij k", 4), (Rows{"abcd", "efgh", "ij k"}));
  EXPECT_EQ(wrap_text("  File \"/a/very/long/path\", line 3", 12),
            (Rows{"  File", "  \"/a/very/l", "  ong/path\",", "  line 3"}));
  EXPECT_EQ(wrap_text("\xc3\xa9\xc3\xa9\xc3\xa9", 2), (Rows{"\xc3\xa9\xc3\xa9", "\xc3\xa9"}));
  EXPECT_EQ(wrap_text("ab", 0), (Rows{"a", "b"}));
}

}  // namespace
}  // namespace drun
