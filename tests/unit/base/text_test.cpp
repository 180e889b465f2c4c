#include "base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace drun {
namespace {

TEST(Text, TrimsBlanksAndCarriageReturns) {
  EXPECT_EQ(trim(" \ta b\r"), "a b");
  EXPECT_EQ(trim("   "), "");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("a\n"), "a\n");
}

TEST(Text, SplitsAndJoins) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
  EXPECT_EQ(join({"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(join({}, ","), "");
}

TEST(Text, ComparesBeginningsAndLowersAscii) {
  EXPECT_TRUE(starts_with("abc", "ab"));
  EXPECT_TRUE(starts_with("abc", ""));
  EXPECT_FALSE(starts_with("a", "ab"));
  EXPECT_EQ(lower("AbZ-\xc3\x84"), "abz-\xc3\x84");
}

TEST(ParseNumber, TakesDigitsOnly) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("007"), 7u);
  EXPECT_EQ(parse_number("18446744073709551615"), 18446744073709551615ull);
  for (const char* bad :
       {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "1e3", "18446744073709551616", "99999999999999999999", "abc"}) {
    EXPECT_FALSE(parse_number(bad)) << bad;
  }
}

TEST(GlobMatch, KnowsStarsAndQuestionMarks) {
  struct Row {
    const char *pattern, *text;
    bool match;
  };
  const Row table[] = {
      {"*", "", true},
      {"*", "abc", true},
      {"", "", true},
      {"", "a", false},
      {"a*", "a", true},
      {"a*", "ba", false},
      {"*a", "bba", true},
      {"*a", "ab", false},
      {"a?c", "abc", true},
      {"a?c", "ac", false},
      {"?", "", false},
      {"a*b*c", "aXbYbZc", true},
      {"a*b*c", "aXbYbZ", false},
      {"**", "x", true},
      {"*_IFNAME", "NCCL_SOCKET_IFNAME", true},
      {"[ab]", "a", false},
      {"[ab]", "[ab]", true},
      {"SSH_*", "SSH", false},
      {"*ab", "aab", true},
  };
  for (const auto& t : table) EXPECT_EQ(glob_match(t.pattern, t.text), t.match) << t.pattern << " on " << t.text;
  EXPECT_FALSE(glob_match("*a*a*a*a*a*a*a*b", std::string(5000, 'a'))) << "and in bounded time";
}

TEST(Nearest, FindsATypingErrorAndNothingElse) {
  const std::vector<std::string> options{"--hosts", "--hostfile", "--num-proc", "--verbose"};
  EXPECT_EQ(nearest("--hotsfile", options), "--hostfile");
  EXPECT_EQ(nearest("--host", options), "--hosts");
  EXPECT_EQ(nearest("--hosts", options), "--hosts");
  EXPECT_EQ(nearest("--nump-roc", options), "--num-proc");
  EXPECT_EQ(nearest("cehck", {"bench", "check", "clean"}), "check");
  EXPECT_FALSE(nearest("--xyzzyxyzzy", options));
  EXPECT_FALSE(nearest("x", {}));
}

TEST(ShellQuote, MakesOneWord) {
  EXPECT_EQ(shell_quote("plain-1.2/x:y=z,@%+"), "plain-1.2/x:y=z,@%+");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("a b"), "'a b'");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote("$(x)"), "'$(x)'");
  EXPECT_EQ(shell_quote("a\nb"), "'a\nb'");
  EXPECT_EQ(shell_quote("~"), "'~'");
}

TEST(Text, CountsInWords) {
  EXPECT_EQ(plural(0, "host"), "0 hosts");
  EXPECT_EQ(plural(1, "host"), "1 host");
  EXPECT_EQ(plural(2, "slot"), "2 slots");
  EXPECT_EQ(plural(2, "process"), "2 processes");
}

TEST(Text, ShowsBytesAndAddresses) {
  EXPECT_EQ(hex(std::string("\x00\xff\x1a", 3)), "00ff1a");
  EXPECT_EQ(hex(""), "");
  EXPECT_EQ(host_port("fd00::2", 22), "[fd00::2]:22");
  EXPECT_EQ(host_port("10.0.0.1", 22), "10.0.0.1:22");
  EXPECT_EQ(host_port("node1", 0), "node1:0");
}

}  // namespace
}  // namespace drun
