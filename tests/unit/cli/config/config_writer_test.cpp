#include "cli/config/config_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/config/config_text.h"
#include "cli/options.h"

namespace drun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ConfigWriter, StringsAreReadBackAsTheyWere) {
  for (const std::string text : {"", "a b", "C:\\x \"q\" #", "tab\there", "\x7f", "ä~7e"}) {
    const auto entries = parse_config("key = " + toml_string(text) + "\n", "f");
    ASSERT_TRUE(entries) << entries.error().message();
    EXPECT_EQ(entries->front().values.front().text, text);
  }
}

TEST(ConfigWriter, ListsHaveALineForEachItemWithComments) {
  EXPECT_EQ(toml_list({{"a:1", ""}, {"b:2", ""}}), "[\"a:1\", \"b:2\"]");
  EXPECT_EQ(toml_list({{"a:1", ""}, {"b:2", "8 GPUs"}}), "[\n  \"a:1\",\n  \"b:2\",  # 8 GPUs\n]");
}

// "KEY = VALUE" of each option.
std::vector<std::string> given(const std::vector<std::string>& args) {
  const auto lines = given_run_options(args);
  EXPECT_TRUE(lines) << lines.error().message();
  std::vector<std::string> out;
  if (!lines) return out;
  for (const auto& line : *lines) out.push_back(line.key + " = " + line.value);
  return out;
}

TEST(ConfigWriter, GivenOptionsAreLines) {
  EXPECT_THAT(given({"-H", "a:2", "-p", "12345", "--grace", "0.5", "--pty", "-vv", "--tag-output=host", "-x", "A=1",
                     "-x", "B", "--timeline", "5", "--dry-run"}),
              ElementsAre("ssh-port = 12345", "x = [\"A=1\", \"B\"]", "tag-output = \"host\"", "pty = true",
                          "grace = 0.5", "verbose = 2", "timeline = \"5\""));
  EXPECT_THAT(given({}), ElementsAre());
}

TEST(ConfigWriter, WhatAFoundFileMayNotHaveIsAComment) {
  const std::vector<ConfigLine> lines = {{"ssh-port", "22", {"of every host"}}, {"x", "[\n  \"A\",\n]", {}}};
  std::vector<std::string> disabled;
  const std::string found = config_file_text({"head"}, lines, true, disabled);
  EXPECT_THAT(disabled, ElementsAre("x"));
  EXPECT_THAT(found, HasSubstr("# head\n\n# of every host\nssh-port = 22\n"));
  EXPECT_THAT(found, HasSubstr("# x = [\n#   \"A\",\n# ]\n"));
  ASSERT_TRUE(parse_config(found, "f"));
  EXPECT_EQ(parse_config(found, "f")->size(), 1U);
  disabled.clear();
  EXPECT_EQ(parse_config(config_file_text({}, lines, false, disabled), "f")->size(), 2U);
  EXPECT_THAT(disabled, ElementsAre());
}

}  // namespace
}  // namespace drun::cli
