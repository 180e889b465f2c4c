#include "cli/config/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::cli {
namespace {

using ::testing::StartsWith;
using Kind = ConfigValue::Kind;
using Shape = ConfigEntry::Shape;

std::string error_of(const std::string& text) {
  const auto parsed = parse_config(text, "f");
  if (parsed) return "";
  EXPECT_EQ(parsed.error().code, Errc::kUsage);
  return parsed.error().message();
}

TEST(ConfigText, EntriesInTheOrderOfTheFileWithTheirLines) {
  const auto parsed =
      parse_config("# a comment\nnp = 4\n\nhosts = [\n  \"a:2\",\n  \"b\",\n]\npty = true\ngrace = 0.1\n", "f");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  ASSERT_EQ(parsed->size(), 4u);
  EXPECT_EQ(parsed->at(0).key, "np");
  EXPECT_EQ(parsed->at(0).line, 2);
  EXPECT_EQ(parsed->at(0).values.at(0).text, "4");
  EXPECT_EQ(parsed->at(0).values.at(0).kind, Kind::kNumber);
  EXPECT_EQ(parsed->at(1).line, 4);
  EXPECT_EQ(parsed->at(1).shape, Shape::kList);
  EXPECT_EQ(parsed->at(1).values.at(1).text, "b");
  EXPECT_EQ(parsed->at(2).values.at(0).kind, Kind::kBool);
  EXPECT_EQ(parsed->at(3).values.at(0).text, "0.1");
}

TEST(ConfigText, ATableIsOneEntry) {
  const auto parsed = parse_config("[ssh]\nport = 1\n", "f");
  ASSERT_TRUE(parsed.has_value());
  ASSERT_EQ(parsed->size(), 1u);
  EXPECT_EQ(parsed->at(0).shape, Shape::kTable);
  EXPECT_EQ(parsed->at(0).line, 1);
  ASSERT_EQ(parsed->at(0).children.size(), 1u);
  EXPECT_EQ(parsed->at(0).children.at(0).key, "port");
  EXPECT_EQ(parsed->at(0).children.at(0).line, 2);
  EXPECT_EQ(error_of("[hosts.gpu]\nhosts = [[\"a\"]]"), "f:2: 'hosts.gpu.hosts': a list inside a list");
}

// toml++ has assertions that these refute.
TEST(ConfigText, ATableWithoutANameIsASyntaxError) {
  for (const char* text : {"[=]", "[!]", "[[=]]", "{", "a = {=}", "= 1", ".a = 1", "a. = 1", "[a.]"}) {
    EXPECT_THAT(error_of(text), StartsWith("f:1:")) << text;
  }
}

TEST(ConfigText, CharactersThatTomlLacksAreRefused) {
  EXPECT_THAT(error_of("a\x01 = 1"), StartsWith("f:1: not valid TOML: a control character"));
  EXPECT_THAT(error_of("a = 1\n\u045c = 1"), StartsWith("f:2:1: not valid TOML: "));
  EXPECT_THAT(error_of("a = \u045c"), StartsWith("f:1:5: not valid TOML: "));
}

TEST(ConfigText, StringsAndCommentsHaveAnyLetters) {
  const auto parsed = parse_config("# \u00fc\n\"\u00fc\" = ['\u00fc~7e', \"\\u00fc~\"]\n", "f");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(parsed->at(0).key, "\u00fc");
  EXPECT_EQ(parsed->at(0).values.at(0).text, "\u00fc~7e");
  EXPECT_EQ(parsed->at(0).values.at(1).text, "\u00fc~");
}

TEST(ConfigText, AnEscapedTildeMayComeBeforeDigits) {
  const auto parsed = parse_config("'a\\u007eab' = [\"\\u007eab\", \"\"\"\\U0000007Eab\"\"\", '\\u007eab']\n", "f");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(parsed->at(0).key, "a\\u007eab");
  EXPECT_EQ(parsed->at(0).values.at(0).text, "~ab");
  EXPECT_EQ(parsed->at(0).values.at(1).text, "~ab");
  EXPECT_EQ(parsed->at(0).values.at(2).text, "\\u007eab");
}

TEST(ConfigText, AKeyOfThousandsOfPartsIsRead) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "a.";
  EXPECT_EQ(parse_config(text + "a = 1", "f")->size(), 1u);
  EXPECT_EQ(parse_config("[" + text + "a]", "f")->size(), 1u);
}

TEST(ConfigText, AListAndGroupsOfHostsGetAHint) {
  const auto parsed = parse_config("hosts = [\"a\"]\n[hosts.gpu]\nhosts = [\"b\"]\n", "f");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().hint, "beside [hosts.NAME], the hosts without -H are: [hosts] default = [\"host1:8\"]");
}

TEST(ConfigText, ASyntaxErrorNamesItsPlace) {
  EXPECT_THAT(error_of("np = 1\nnp 4\n"), StartsWith("f:2:4: not valid TOML: "));
  EXPECT_THAT(error_of("hosts = [\"a\""), StartsWith("f:1:13: not valid TOML: "));
  EXPECT_THAT(error_of("np = 1\nnp = 2\n"), StartsWith("f:2:"));
  EXPECT_THAT(error_of("a = \"\xff\"\n"), StartsWith("f:1:"));
}

TEST(ConfigText, AValueOfNoOptionNamesItsKey) {
  EXPECT_EQ(error_of("hosts = [[\"a\"]]"), "f:1: 'hosts': a list inside a list");
  EXPECT_EQ(error_of("hosts = [{a = 1}]"), "f:1: 'hosts': a table inside a list");
  EXPECT_EQ(error_of("wdir = \"a\\u0000b\""), "f:1: 'wdir': the value contains a NUL character");
  EXPECT_THAT(error_of("\ngrace = 2000-01-01"), StartsWith("f:2: 'grace': a date"));
}

}  // namespace
}  // namespace drun::cli
