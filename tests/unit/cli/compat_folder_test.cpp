#include "cli/compat_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace drun::cli {
namespace {

using ::testing::HasSubstr;

class CompatFolder : public ::testing::Test {
 protected:
  CompatFolder() {
    char name[] = "/tmp/drun-compat-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~CompatFolder() override { std::filesystem::remove_all(root_); }

  void make_package(const std::string& folder) {
    std::filesystem::create_directories(root_ + folder + "/horovod");
    std::ofstream(root_ + folder + "/horovod/__init__.py") << "";
  }

  std::string root_;
};

TEST_F(CompatFolder, IsThatOfTheWheelOfTheExecutable) {
  make_package("/site-packages/drun/compat");
  make_package("/python/drun/compat");
  EXPECT_EQ(find_compat_folder(root_ + "/site-packages/drun/bin").value(), root_ + "/site-packages/drun/compat");
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
