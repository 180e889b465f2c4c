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

}  // namespace
}  // namespace drun::launcher
