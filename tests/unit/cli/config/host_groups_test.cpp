#include "cli/config/host_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

Result<HostTable> table(const std::string& text) {
  auto entries = parse_config(text, "f");
  EXPECT_TRUE(entries.has_value());
  return entries ? read_host_table(entries->at(0), "f") : HostTable();
}

std::string table_error(const std::string& text) {
  const auto read = table(text);
  return read ? "" : read.error().message();
}

TEST(HostGroups, AGroupIsATextAListOrATable) {
  const auto read = table("[hosts]\na = \"h:2\"\nb = [\"h1\", \"h2\"]\n[hosts.c]\nhosts = [\"h3\"]\n");
  ASSERT_TRUE(read.has_value()) << read.error().message();
  ASSERT_EQ(read->groups.size(), 3u);
  EXPECT_THAT(read->groups.at(0).hosts, ElementsAre("h:2"));
  EXPECT_THAT(read->groups.at(1).hosts, ElementsAre("h1", "h2"));
  EXPECT_EQ(read->groups.at(2).name, "c");
  EXPECT_THAT(read->groups.at(2).hosts, ElementsAre("h3"));
  EXPECT_EQ(read->groups.at(2).line, 5);
  EXPECT_FALSE(read->chosen.has_value());
}

TEST(HostGroups, TheDefaultGroupIsTheKeyHosts) {
  const auto read = table("[hosts]\ndefault = [\"h1\"]\n");
  ASSERT_TRUE(read.has_value());
  ASSERT_TRUE(read->chosen.has_value());
  EXPECT_EQ(read->chosen->key, "hosts");
  EXPECT_EQ(read->chosen->line, 2);
  EXPECT_EQ(read->groups.size(), 1u);
}

TEST(HostGroups, FaultsNameTheGroup) {
  EXPECT_EQ(table_error("[hosts]\na = 3"), "f:2: 'hosts.a': needs a list of hosts");
  EXPECT_EQ(table_error("[hosts]\na = []"), "f:2: 'hosts.a': needs a list of hosts");
  EXPECT_EQ(table_error("[hosts]\na = [1]"), "f:2: 'hosts.a': needs a list of hosts");
  EXPECT_EQ(table("[hosts]\nnp = 3").error().hint, "options stand above the first [table] of the file");
  EXPECT_EQ(table_error("[hosts.a]\nhost = \"h\""), "f:2: 'hosts.a': unknown key 'host' of a group");
  EXPECT_EQ(table_error("[hosts.a]\n"), "f:1: 'hosts.a': the key hosts is missing");
  EXPECT_EQ(table_error("[hosts]\n\"a,b\" = \"h\""),
            "f:2: 'hosts.a,b': the name of a group has letters, digits, '_', '-', '.'");
}

std::vector<HostGroup> groups() {
  return {{"gpu", {"g[1-2]:8"}, "f", 3}, {"bad", {"h:x"}, "f", 4}, {"nest", {"@gpu"}, "f", 5}};
}

// The expanded list, or the error and its hint.
Words expanded(const Words& list, const std::vector<HostGroup>& known = groups()) {
  auto out = expand_groups(list, known);
  if (out) return *out;
  EXPECT_EQ(out.error().code, Errc::kUsage);
  return {out.error().message(), out.error().hint};
}

TEST(HostGroups, AGroupIsReplacedByItsHosts) {
  EXPECT_THAT(expanded({"@gpu"}), ElementsAre("g[1-2]:8"));
  EXPECT_THAT(expanded({"a:2,@gpu", "h9:2"}), ElementsAre("a:2", "g[1-2]:8", "h9:2"));
  EXPECT_THAT(expanded({"@gpu, @gpu"}), ElementsAre("g[1-2]:8", "g[1-2]:8"));
  EXPECT_THAT(expanded({"me@a,c:gpus=0,2"}), ElementsAre("me@a", "c:gpus=0", "2"));
  EXPECT_THAT(expanded({}), IsEmpty());
}

TEST(HostGroups, AnUnknownGroupNamesThoseThatThereAre) {
  EXPECT_THAT(expanded({"@gpx"}), ElementsAre("-H: there is no group @gpx among @bad, @gpu, @nest", "-H @gpu"));
  EXPECT_THAT(expanded({"@gpu:4"}), ElementsAre("-H: there is no group @gpu:4 among @bad, @gpu, @nest",
                                                "-H @gpu; its hosts have their slots in f"));
  EXPECT_THAT(expanded({"@gpu"}, {}),
              ElementsAre("-H: there is no group @gpu: no drun.toml that was read has groups of hosts",
                          "hosts.gpu = [\"host1:8\"] in drun.toml"));
  EXPECT_EQ(expanded({"@"}).front(), "-H: there is no group @ among @bad, @gpu, @nest");
}

TEST(HostGroups, AFaultInAGroupNamesItsFile) {
  EXPECT_EQ(expanded({"@bad"}).front(), "f:4: 'hosts.bad': item 1 'h:x', column 3: 'x' is not a slot count");
  EXPECT_EQ(expanded({"@nest"}).front(), "f:5: 'hosts.nest': a group can't contain another group");
}

}  // namespace
}  // namespace drun::cli
