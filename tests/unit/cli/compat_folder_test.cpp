#include "cli/compat_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/temp_folder.h"

namespace drun::cli {
namespace {

using ::testing::HasSubstr;

class CompatFolder : public ::testing::Test {
 protected:
  void make_package(const std::string& folder) { folder_.write(folder + "/horovod/__init__.py", ""); }

  testing::TempFolder folder_;
  const std::string root_ = folder_.path();
};

TEST_F(CompatFolder, IsThatOfTheWheelOfTheExecutable) {
  make_package("/site-packages/drun/compat");
  make_package("/python/drun/compat");
  EXPECT_EQ(find_compat_folder(root_ + "/site-packages/drun/bin").value(), root_ + "/site-packages/drun/compat");
}

TEST_F(CompatFolder, IsThatOfAnInstalledExecutable) {
  make_package("/opt/lib/python/drun/compat");
  make_package("/usr/lib/python3/dist-packages/drun/compat");
  EXPECT_EQ(find_compat_folder(root_ + "/opt/bin").value(), root_ + "/opt/lib/python/drun/compat");
  EXPECT_EQ(find_compat_folder(root_ + "/usr/bin").value(), root_ + "/usr/lib/python3/dist-packages/drun/compat");
}

TEST_F(CompatFolder, IsThatOfTheTreeInWhichTheExecutableWasBuilt) {
  make_package("/python/drun/compat");
  EXPECT_EQ(find_compat_folder(root_ + "/build/release/bin").value(), root_ + "/python/drun/compat");
  EXPECT_EQ(find_compat_folder(root_ + "/bin").value(), root_ + "/python/drun/compat");
  EXPECT_EQ(find_compat_folder(root_).value(), root_ + "/python/drun/compat");
}

TEST_F(CompatFolder, IsNotSearchedAnywhereElse) {
  const auto found = find_compat_folder(root_ + "/bin");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::kUsage);
  EXPECT_THAT(found.error().message(),
              HasSubstr("drun's Python package is not beside this drun, in " + root_ + "/bin"));
}

}  // namespace
}  // namespace drun::cli
