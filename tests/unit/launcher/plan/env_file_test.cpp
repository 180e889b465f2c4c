#include <gtest/gtest.h>

#include <string>

#include "launcher/plan/worker_env.h"

namespace drun::launcher {
namespace {

TEST(EnvFile, ReadsNamesAndValues) {
  const auto env = parse_env_file(
      "# a comment\n"
      "\n"
      "A=1\n"
      "export B=two words\n"
      "  C = 3  \n"
      "D=\n"
      "E=\"  kept  \"\n"
      "F='x=y'\n"
      "G=a#b\r\n"
      "H={\"k\": 1}\n"
      "exported=yes\n"
      "with.dots=ok\n"
      "export\tI=tab\n"
      "export=word\n"
      "A=last one wins",
      "job.env");
  ASSERT_TRUE(env) << env.error().message();
  const Environment expected{{"A", "last one wins"}, {"B", "two words"},  {"C", "3"},   {"D", ""},
                             {"E", "  kept  "},      {"F", "x=y"},        {"G", "a#b"}, {"H", "{\"k\": 1}"},
                             {"exported", "yes"},    {"with.dots", "ok"}, {"I", "tab"}, {"export", "word"}};
  EXPECT_EQ(*env, expected);
}

TEST(EnvFile, MayBeEmpty) { EXPECT_TRUE(parse_env_file("", "f")->empty()); }

TEST(EnvFile, SkipsAByteOrderMark) {
  EXPECT_EQ(parse_env_file("\xef\xbb\xbf"
                           "A=1",
                           "f")
                ->count("A"),
            1u);
}

TEST(EnvFile, RefusesWithFileLineAndColumn) {
  struct Bad {
    std::string text, message;
  };
  const Bad table[] = {
      {"A=1\nB\n", "job.env:2:1: 'B' is not NAME=VALUE"},
      {"export B\n", "job.env:1:8: 'B' is not NAME=VALUE"},
      {"  =1\n", "job.env:1:3: the name in front of '=' is missing"},
      {"A B=1\n", "job.env:1:1: a space in the name 'A B'"},
      {"A=\"open\n", "job.env:1:3: a quote that is not closed on this line"},
      {"A='\n", "job.env:1:3: a quote that is not closed on this line"},
      {std::string("A=1\nB=\0\n", 8), "job.env:2:3: a NUL byte"},
  };
  for (const auto& t : table) {
    const auto env = parse_env_file(t.text, "job.env");
    ASSERT_FALSE(env) << t.text;
    EXPECT_EQ(env.error().code, Errc::kUsage);
    EXPECT_EQ(env.error().message(), t.message);
    EXPECT_FALSE(env.error().hint.empty());
  }
}

}  // namespace
}  // namespace drun::launcher
