#include "cli/option_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_bench.h"
#include "cli/command_check.h"
#include "cli/command_clean.h"
#include "cli/command_rows.h"
#include "cli/options.h"

namespace drun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

const launcher::Environment kEnv = {{"PATH", "/bin"}};

TEST(OptionRows, NamesAreThoseOfTheHelp) {
  const auto rows = run_rows();
  EXPECT_EQ(find_row(rows, "--num-proc")->names, (Names{"-np", "--num-proc"}));
  EXPECT_EQ(find_row(rows, "-H")->names, (Names{"-H", "--hosts"}));
  EXPECT_EQ(find_row(rows, "--network-interface"), find_row(rows, "--network-interfaces")) << "horovodrun's spelling";
  EXPECT_EQ(find_row(rows, "--grace")->heading, kTimeLimits);
  EXPECT_THAT(find_row(rows, "--grace")->text, HasSubstr("; default: 5"));
}

TEST(OptionRows, ValuesAndFlags) {
  const auto rows = run_rows();
  EXPECT_EQ(find_row(rows, "--hostfile")->value, "FILE");
  EXPECT_EQ(find_row(rows, "--pty")->value, "");
  EXPECT_TRUE(find_row(rows, "--tag-output")->optional_value);
  EXPECT_FALSE(find_row(rows, "--check")->optional_value);
  EXPECT_THAT(choices(*find_row(rows, "--check")), ElementsAre("quick", "default", "full"));
  EXPECT_THAT(choices(*find_row(rows, "--stdin")), ElementsAre("all", "none"));
  EXPECT_THAT(choices(*find_row(rows, "--ranks")), IsEmpty());
}

// The error about `word` as the value of the option; "" = accepted.
std::string complaint(const std::string& command, const OptionRow& row, const std::string& word) {
  const std::string& name = row.names.back();
  Names args = name.size() == 2 ? Names{name, word} : Names{name + "=" + word};
  if (name == "--local_register") args.emplace_back("--backend=nccl");
  Names run = args;
  run.insert(run.end(), {"-H", "localhost", "true"});
  if (command == "run") {
    const auto parsed = parse_options(run, kEnv);
    return parsed ? "" : parsed.error().message();
  }
  const auto check = parse_check(args);
  const auto bench = parse_bench(args, kEnv);
  const auto clean = parse_clean(args);
  if (command == "check") return check ? "" : check.error().message();
  if (command == "bench") return bench ? "" : bench.error().message();
  return clean ? "" : clean.error().message();
}

TEST(OptionRows, EveryChoiceIsAcceptedAndNoOtherWord) {
  for (const std::string command : {"run", "check", "bench", "clean"}) {
    for (const auto& row : command_rows(command)) {
      if (choices(row).empty() || row.names.back() == "--compat") continue;  // needs the installed package
      for (const auto& word : choices(row)) EXPECT_EQ(complaint(command, row, word), "") << row.names.back();
      EXPECT_NE(complaint(command, row, "no-such-word"), "") << command << " " << row.names.back();
    }
  }
}

}  // namespace
}  // namespace drun::cli
