#include "cli/options_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"

namespace drun::cli {
namespace {

using ::testing::HasSubstr;

TEST(OptionsPage, HasValuesAndDefaults) {
  const std::string page = options_page();
  EXPECT_THAT(page, HasSubstr("| `-np`, `--num-proc` | `N` | workers to start | all slots |\n"));
  EXPECT_THAT(page, HasSubstr("| `--grace` | `S` | seconds between TERM and KILL | 5 |\n"));
  EXPECT_THAT(page, HasSubstr("| `--bind-to` | `core`, `numa`, `none` |"));
  EXPECT_THAT(page, HasSubstr("\n## drun clean\n"));
}

TEST(OptionsPage, ThePageInTheTreeIsUpToDate) {
  const auto page = read_file(DRUN_OPTIONS_PAGE);
  ASSERT_TRUE(page.has_value()) << page.error().message();
  EXPECT_TRUE(*page == options_page())
      << "docs/options.md is stale; renew it: cmake --build --preset release --target drun-man-page && "
         "build/release/packaging/drun-man-page --options-page docs/options.md";
}

}  // namespace
}  // namespace drun::cli
