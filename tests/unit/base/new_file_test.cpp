#include "base/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "tests/temp_folder.h"

namespace drun {
namespace {

class NewFileTest : public ::testing::Test {
 protected:
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) out.insert(entry.path().filename());
    return out;
  }
  testing::TempFolder folder_;
};

TEST_F(NewFileTest, TakesThePlaceOfTheOldOneWhenItIsComplete) {
  folder_.write("page", "old");
  auto file = NewFile::create(folder_.path("page"), 0640);
  ASSERT_TRUE(file);
  ASSERT_TRUE(write_all(file->fd(), "new"));
  EXPECT_EQ(folder_.read("page"), "old");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(folder_.read("page"), "new");
  EXPECT_EQ(names(), std::set<std::string>{"page"});
  struct stat s {};
  ASSERT_EQ(::stat(folder_.path("page").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07137, 0u);
}

TEST_F(NewFileTest, AFileThatIsNotCommittedIsRemoved) {
  folder_.write("page", "old");
  {
    auto file = NewFile::create(folder_.path("page"), 0600);
    ASSERT_TRUE(file);
    NewFile moved = std::move(*file);
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(names(), std::set<std::string>{"page"});
  EXPECT_EQ(folder_.read("page"), "old");
}

TEST_F(NewFileTest, ItsNameCanNotBeGuessed) {
  const auto one = NewFile::create(folder_.path("page"), 0600), other = NewFile::create(folder_.path("page"), 0600);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(names().size(), 2u);
}

// The link itself is replaced; it is not followed.
TEST_F(NewFileTest, ALinkAtThePathIsReplaced) {
  folder_.write("other", "precious");
  ASSERT_EQ(::symlink(folder_.path("other").c_str(), folder_.path("page").c_str()), 0);
  auto file = NewFile::create(folder_.path("page"), 0600);
  ASSERT_TRUE(file);
  ASSERT_TRUE(write_all(file->fd(), "new"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(folder_.read("other"), "precious");
  EXPECT_FALSE(std::filesystem::is_symlink(folder_.path("page")));
}

TEST_F(NewFileTest, ErrorsNameThePath) {
  const auto file = NewFile::create(folder_.path("missing/page"), 0600);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().cause, folder_.path("missing/page") + ": no such file or directory");
}

TEST_F(NewFileTest, AFailedCommitLeavesNothing) {
  auto file = NewFile::create(folder_.path("page"), 0600);
  ASSERT_TRUE(file);
  ASSERT_EQ(::mkdir(folder_.path("page").c_str(), 0700), 0);
  EXPECT_FALSE(file->commit());
  EXPECT_EQ(names(), std::set<std::string>{"page"});
}

}  // namespace
}  // namespace drun
