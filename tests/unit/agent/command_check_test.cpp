#include "agent/command_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// In a folder of its own, where the check leaves this process.
class CommandCheckTest : public ::testing::Test {
 protected:
  CommandCheckTest() {
    job_.working_directory = folder_;
    job_.argv = {"./train"};
    job_.environment = {{"PATH", folder_}};
    make("train", 0755);
  }
  ~CommandCheckTest() override { std::filesystem::current_path("/"); }

  void make(const std::string& name, int mode) {
    temp_.write(name, "#!/bin/sh\n");
    std::filesystem::permissions(folder_ + "/" + name, static_cast<std::filesystem::perms>(mode));
  }
  CommandCheck check() {
    steps_.clear();
    return check_command(job_, [this](const std::string& step) { steps_.push_back(step); });
  }

  testing::TempFolder temp_;
  const std::string folder_ = temp_.path();
  control::Prepare job_;
  std::vector<std::string> steps_;
};

TEST_F(CommandCheckTest, ReportsEachFileBeforeItLooksAtIt) {
  const auto checked = check();
  EXPECT_THAT(checked.problems, IsEmpty());
  EXPECT_EQ(checked.command, "./train");
  EXPECT_THAT(steps_, ElementsAre(folder_, folder_ + "/./train", "./train"));
}

TEST_F(CommandCheckTest, FindsTheCommandInThePathOfTheJob) {
  job_.argv = {"train"};
  EXPECT_EQ(check().command, folder_ + "/train");
}

TEST_F(CommandCheckTest, AFileThatCantBeExecutedIsAProblem) {
  make("train", 0644);
  const auto checked = check();
  ASSERT_THAT(checked.problems, SizeIs(1));
  EXPECT_EQ(checked.problems[0].kind, control::ProblemKind::kNotExecutable);
  EXPECT_EQ(checked.command, "");
}

TEST_F(CommandCheckTest, ThePackageOfCompatMustBeThere) {
  job_.compat_folder = folder_ + "/compat";
  const auto without = check();
  ASSERT_THAT(without.problems, SizeIs(1));
  EXPECT_EQ(without.problems[0].kind, control::ProblemKind::kCompat);
  EXPECT_THAT(without.problems[0].cause, HasSubstr("--compat: no '" + folder_ + "/compat/horovod/__init__.py'"));
  make("compat/horovod/__init__.py", 0644);
  EXPECT_THAT(check().problems, IsEmpty());
}

}  // namespace
}  // namespace drun::agent
