#include "cli/config/config_files.h"

#include <gtest/gtest.h>

#include "tests/temp_folder.h"

namespace drun::cli {
namespace {

std::string error_of(const std::string& path) {
  const auto read = read_named_config(path);
  if (read) return "";
  EXPECT_EQ(read.error().code, Errc::kUsage);
  return read.error().message();
}

TEST(ConfigFiles, AFileThatCanNotBeReadIsNamed) {
  const testing::TempFolder folder;
  const std::string path = folder.path("job.toml");
  EXPECT_EQ(error_of(path), "--config: " + path + ": no such file or directory");
  EXPECT_EQ(error_of(folder.path()), "--config: " + folder.path() + ": is a directory");
  EXPECT_EQ(error_of(""), "--config: the name of the file is empty");
  folder.write("job.toml", "np 4\n");
  EXPECT_EQ(error_of(path).substr(0, path.size() + 5), path + ":1:4:");
}

TEST(ConfigFiles, TheNamedFileKnowsItsFolder) {
  const testing::TempFolder folder;
  folder.write("job.toml", "np = 4\n");
  const auto read = read_named_config(folder.path("job.toml"));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->folder, folder.path());
  EXPECT_FALSE(read->is_of_project);
  EXPECT_EQ(read->entries.size(), 1u);
}

}  // namespace
}  // namespace drun::cli
