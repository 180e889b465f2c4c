#include "cli/config/config_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/command_rows.h"

namespace drun::cli {
namespace {

using ::testing::UnorderedElementsAreArray;

// "--hosts" of -H, --hosts.
std::string longest_name(const OptionRow& row) { return row.names.back(); }

TEST(ConfigRules, EveryOptionHasOneRuleAndEveryRuleAnOption) {
  std::set<std::string> options;
  for (const std::string command : {"run", "check", "bench", "clean", "init"}) {
    for (const auto& row : command_rows(command)) options.insert(longest_name(row));
  }
  std::vector<std::string> ruled;
  for (const auto& rule : config_rules()) ruled.emplace_back(rule.option);
  EXPECT_THAT(ruled, UnorderedElementsAreArray(options))
      << "a new option needs a row in cli/config/config_rules.cpp: may a drun.toml of a cloned repository set it?";
}

// A refused option without a reason would give an error that explains nothing.
TEST(ConfigRules, EveryRefusalHasAReason) {
  for (const auto& rule : config_rules()) {
    EXPECT_EQ(rule.reason.empty(), rule.scope != ConfigScope::kOwnFile) << rule.option;
  }
}

// The options that take a file, a directory, a command or a path; those that a working directory may choose are listed.
TEST(ConfigRules, OptionsThatNameFilesOrProgramsAreRefused) {
  const std::set<std::string> only_read = {"--hostfile", "--baseline"};
  for (const std::string command : {"run", "check", "bench", "clean", "init"}) {
    for (const auto& row : command_rows(command)) {
      const std::string name = longest_name(row);
      const bool names_one = row.value.find("FILE") == 0 || row.value == "DIR" || row.value == "PATH" ||
                             row.value == "CMD" || row.value == "NAME[=V]";
      if (!names_one || only_read.count(name) > 0) continue;
      const ConfigRule* rule = find_rule(name.substr(name.find_first_not_of('-')));
      ASSERT_NE(rule, nullptr) << name;
      EXPECT_NE(rule->scope, ConfigScope::kAnyFile) << name;
    }
  }
}

TEST(ConfigRules, AKeyIsTheLongName) {
  EXPECT_EQ(find_rule("np")->option, "--num-proc");
  EXPECT_EQ(find_rule("x")->option, "-x");
  EXPECT_EQ(find_rule("H"), nullptr);
  EXPECT_EQ(find_rule(""), nullptr);
}

}  // namespace
}  // namespace drun::cli
