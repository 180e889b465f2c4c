#include "base/program_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace drun {
namespace {

TEST(ProgramFolder, IsThatOfThisTest) {
  EXPECT_EQ(program_folder().front(), '/');
  EXPECT_EQ(::access((program_folder() + "/base_test").c_str(), X_OK), 0);
}

}  // namespace
}  // namespace drun
