#include "launcher/connect/host_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/hostile_text.h"

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HostWords, AreLinesWithoutBannersAndBlankLines) {
  EXPECT_THAT(lines_of_host("@@@@@@\n@  W  @\n\n first \r\nlast\n"), ElementsAre("@  W  @", "first", "last"));
  EXPECT_THAT(lines_of_host(""), IsEmpty());
}

TEST(HostWords, AreCleanAndBounded) {
  EXPECT_THAT(lines_of_host(testing::kHostile), ElementsAre("why ?]0;EVIL??[2J ?31m ?32m ? ?", "| forged"));
  EXPECT_THAT(lines_of_host(std::string(kShownBytes, 'x') + "y"), ElementsAre(std::string(kShownBytes, 'x')));
}

TEST(HostWords, OfStderrTheLastOnesCount) {
  const std::string banner = "Welcome\n" + std::string(kShownBytes - 10, 'x') + "\n";
  EXPECT_THAT(last_lines_of_host(banner + "Permission denied\n"), ElementsAre("Permission denied"));
  EXPECT_THAT(last_lines_of_host("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(last_lines_of_host(std::string(kShownBytes, 'x') + "y"),
              ElementsAre(std::string(kShownBytes - 1, 'x') + "y"));
}

}  // namespace
}  // namespace drun::launcher
