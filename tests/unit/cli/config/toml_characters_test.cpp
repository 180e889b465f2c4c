#include "cli/config/toml_characters.h"

#include <gtest/gtest.h>

namespace drun::cli {
namespace {

std::string error_of(std::string_view text) {
  const auto ascii = toml_to_ascii(text, "f");
  return ascii ? "" : ascii.error().message();
}

TEST(TomlCharacters, ControlCharactersAndBrokenLettersAreRefused) {
  const std::string fault = ": not valid TOML: a control character, or bytes that are not UTF-8";
  EXPECT_EQ(error_of(std::string_view("a = 1\n[\0host]", 13)), "f:2" + fault);
  EXPECT_EQ(error_of("a = \"\x7f\""), "f:1" + fault);
  EXPECT_EQ(error_of("\n\na = \"\xc3\""), "f:3" + fault);
  EXPECT_EQ(error_of("a = 1\rb = 2"), "f:1" + fault);
  EXPECT_EQ(error_of("a = 1\r\n\tb = \"ü\"\r\n"), "");
}

TEST(TomlCharacters, TheResultIsAsciiAndCanBeTakenBack) {
  const std::string text = "ü~7e ~ ~x € ~";
  const auto ascii = toml_to_ascii(text, "f");
  ASSERT_TRUE(ascii.has_value());
  for (const char c : *ascii) EXPECT_GE(c, ' ');
  EXPECT_EQ(from_toml_ascii(*ascii), text);
  EXPECT_EQ(*toml_to_ascii("\xef\xbb\xbf"
                           "a\r\n",
                           "f"),
            "a\n");
  EXPECT_EQ(from_toml_ascii("~"), "~");
  EXPECT_EQ(from_toml_ascii("~7"), "~7");
  EXPECT_EQ(from_toml_ascii("a~7e"), "a~");
}

TEST(TomlCharacters, AnEscapedTildeIsATilde) {
  const auto ascii = [](std::string_view text) { return *toml_to_ascii(text, "f"); };
  EXPECT_EQ(ascii(R"("\u007eab\u007Eab\U0000007eab\u007f\n\"\u007e\\u007e")"),
            R"("~7eab~7eab~7eab\u007f\n\"~7e\\u007e")");
  // A backslash is a letter of a literal string, and of a comment.
  EXPECT_EQ(ascii("a = '\\u007e' # it's \\u007e\nb = \"\\u007e\""), "a = '\\u007e' # it's \\u007e\nb = \"~7e\"");
  EXPECT_EQ(ascii("\"\"'\\u007e'"), "\"\"'\\u007e'") << "after an empty string";
  // Strings of several lines, which may end in a quotation mark of their own.
  EXPECT_EQ(ascii("'''\n'\\u007e''''\"\\u007e\""), "'''\n'\\u007e''''\"~7e\"");
  EXPECT_EQ(ascii("\"\"\"\n\"\\u007e\"\"\"\"\n'\\u007e'"), "\"\"\"\n\"~7e\"\"\"\"\n'\\u007e'");
  for (const char* broken : {"\"\\", "\"\\u007", "\"\\u", "'''", "\"\"\"\\", "#", "'"})
    EXPECT_EQ(ascii(broken), broken);
}

}  // namespace
}  // namespace drun::cli
