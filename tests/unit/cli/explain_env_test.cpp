#include "cli/explain_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/temp_folder.h"

namespace drun::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ExplainedRank sample() {
  ExplainedRank out;
  out.rank = 2;
  out.host = "h1";
  out.local_size = 2;
  out.variables = {
      {"A", "b c\x1b[2J\nRANK=9", "-x", "why"}, {"HF_TOKEN", "abc", "drun", "why"}, {"Z", {}, "drun", "why"}};
  return out;
}

Result<ExplainedRank> explain(std::vector<std::string> args) {
  args.insert(args.end(), {"true"});
  const auto options = parse_options(args, {{"PATH", "/bin"}});
  if (!options) return fail(options.error());
  return explain_rank(*options);
}

TEST(ExplainEnv, TwoLinesForEachVariableAndNoSecret) {
  EXPECT_EQ(explained_text(sample()),
            "rank 2 on h1, local rank 0 of 2:\n"
            "  A='b c?[2J RANK=9'\n      -x: why\n"
            "  HF_TOKEN=... (hidden)\n      drun: why\n"
            "  Z (set when the job starts)\n      drun: why\n");
}

TEST(ExplainEnv, JsonHasTheStateOfEachValue) {
  const auto json = nlohmann::json::parse(explained_json(sample()));
  EXPECT_EQ(json["rank"], 2);
  EXPECT_EQ(json["variables"][0]["value"], "b c\x1b[2J\nRANK=9");
  EXPECT_EQ(json["variables"][0]["state"], "known");
  EXPECT_TRUE(json["variables"][1]["value"].is_null());
  EXPECT_EQ(json["variables"][1]["state"], "hidden");
  EXPECT_EQ(json["variables"][2]["state"], "set at the start");
}

TEST(ExplainEnv, TheRankHasItsPlace) {
  const auto found = explain({"-H", "a:1,b:2", "--explain-env", "2"});
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_EQ(found->host, "b");
  EXPECT_EQ(found->local_rank, 1);
  EXPECT_EQ(found->local_size, 2);
}

TEST(ExplainEnv, AFileIsTheSourceOfWhatItSets) {
  const testing::TempFolder folder;
  folder.write("job.toml", "np = 2\nx = [\"A=1\"]\n");
  const auto found = explain({"--config", folder.path("job.toml"), "--explain-env", "0"});
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_THAT(explained_text(*found), HasSubstr("  A=1\n      " + folder.path("job.toml") + ":2: 'x': -x A=VALUE\n"));
  EXPECT_THAT(explained_text(*explain({"-x", "A=1", "--explain-env", "0"})), Not(HasSubstr("toml")));
}

TEST(ExplainEnv, ARankThatIsNotThereIsRefused) {
  const auto found = explain({"-np", "2", "--explain-env", "2"});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().message(), "--explain-env: there is no rank 2 among 2 workers");
  EXPECT_EQ(explain({"--explain-env", "-1"}).error().code, Errc::kUsage);
}

}  // namespace
}  // namespace drun::cli
