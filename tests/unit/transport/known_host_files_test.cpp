#include "transport/known_host_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/temp_folder.h"

namespace drun::transport {
namespace {

class KnownHostFilesTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path("known_hosts"); }
  std::vector<int> lines(const std::string& name) {
    std::vector<int> out;
    for (const auto& key : files_.find({folder_.path("absent"), path()}, name, "")) out.push_back(key.line);
    return out;
  }
  // As another program does.
  void append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }

  static Task<void> store_into(KnownHostFiles& files, std::string path, std::string name, bool hashed,
                               Result<Stored>& result) {
    HostKey key("t", "K");
    result = co_await files.store(std::move(path), std::move(name), std::move(key), hashed);
  }
  Result<Stored> store(const std::string& name, bool hashed = false) {
    asio::io_context io(1);
    Result<Stored> result = fail(Errc::kInternal, "not run");
    run_on_loop(io, store_into(files_, path(), name, hashed, result));
    return result;
  }

  const drun::testing::TempFolder folder_;
  KnownHostFiles files_;
};

TEST_F(KnownHostFilesTest, FileIsReadOnceForAllHosts) {
  folder_.write("known_hosts", "a t K\nb t K\n*.x t K\n");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(lines("a"), std::vector<int>{1});
    EXPECT_EQ(lines("b"), std::vector<int>{2});
    EXPECT_EQ(lines("c.x"), std::vector<int>{3});
    EXPECT_TRUE(lines("c").empty());
  }
  EXPECT_EQ(files_.n_parsed(), 3);
}

TEST_F(KnownHostFilesTest, LinesThatOthersAddAreParsedAlone) {
  folder_.write("known_hosts", "a t K\n");
  EXPECT_TRUE(lines("b").empty());
  append("b t K\n");
  EXPECT_EQ(lines("b"), std::vector<int>{2});
  EXPECT_EQ(files_.n_parsed(), 2);
  append("c t");
  EXPECT_TRUE(lines("c").empty());
  append(" K\n");  // the rest of a line that was there: everything is parsed again
  EXPECT_EQ(lines("c"), std::vector<int>{3});
  EXPECT_EQ(files_.n_parsed(), 6);
}

TEST_F(KnownHostFilesTest, EveryOtherChangeIsSeen) {
  folder_.write("known_hosts", "a t K\nb t K\n");
  EXPECT_EQ(lines("b"), std::vector<int>{2});
  folder_.write("other", "b t K\na t K\n");
  std::filesystem::rename(folder_.path("other"), path());  // as ssh-keygen -R does
  EXPECT_EQ(lines("b"), std::vector<int>{1});
  folder_.write("known_hosts", "@revoked a t K\nb t K\n");
  EXPECT_EQ(lines("b"), std::vector<int>{2});
  EXPECT_TRUE(files_.find({path()}, "a", "").at(0).revoked);
  std::filesystem::remove(path());
  EXPECT_TRUE(lines("b").empty());
  folder_.write("known_hosts", "b t K\n");
  EXPECT_EQ(lines("b"), std::vector<int>{1});
}

TEST_F(KnownHostFilesTest, StoredKeysAreFoundAndNothingIsReadAgain) {
  folder_.write("known_hosts", "a t K\n");
  EXPECT_TRUE(lines("b").empty());
  for (int host = 0; host < 20; ++host) {
    const std::string name = "[host" + std::to_string(host) + "]:22022";
    ASSERT_EQ(store(name, host % 2 == 1).value_or(Stored::kAlreadyThere), Stored::kAdded);
    EXPECT_EQ(lines(name), std::vector<int>{host + 2});
    EXPECT_EQ(store(name).value_or(Stored::kAdded), Stored::kAlreadyThere);
  }
  EXPECT_EQ(files_.n_parsed(), 21);
  KnownHostFiles fresh;
  EXPECT_EQ(fresh.find({path()}, "[host7]:22022", "").at(0).line, 9);
}

TEST_F(KnownHostFilesTest, StoresBehindWhatOthersWrote) {
  EXPECT_EQ(store("a").value_or(Stored::kAlreadyThere), Stored::kAdded);
  append("b t K\nc t K");
  EXPECT_EQ(store("b").value_or(Stored::kAdded), Stored::kAlreadyThere);
  EXPECT_EQ(store("other").value_or(Stored::kAlreadyThere), Stored::kAdded);
  EXPECT_EQ(folder_.read("known_hosts"), "a t K\nb t K\nc t K\nother t K\n");
  EXPECT_EQ(lines("c"), std::vector<int>{3});
  EXPECT_EQ(lines("other"), std::vector<int>{4});
}

}  // namespace
}  // namespace drun::transport
