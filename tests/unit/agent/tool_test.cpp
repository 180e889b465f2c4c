#include "agent/tool.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>

#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

class ToolsTest : public ::testing::Test {
 protected:
  ~ToolsTest() override {
    tools_.stop();
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
  }
  FoundTool find(std::vector<std::string> names) {
    TaskGroup tasks(io_.get_executor());
    tasks.spawn(keep(std::move(names)));
    io_.restart();
    io_.run_for(std::chrono::seconds(30));
    return found_;
  }
  Task<void> keep(std::vector<std::string> names) {
    found_ = co_await tools_.find(std::move(names), Clock::now() + std::chrono::seconds(30));
  }

  testing::TempFolder folder_;
  asio::io_context io_{1};
  Tools tools_{io_, folder_.path()};
  FoundTool found_;
};

TEST_F(ToolsTest, TheFirstThatIsThereIsFound) {
  folder_.write("drun-test-b", "");
  ::chmod(folder_.path("drun-test-b").c_str(), 0755);
  const FoundTool found = find({"drun-test-a", "drun-test-b"});
  EXPECT_EQ(found.path, folder_.path("drun-test-b"));
  EXPECT_EQ(found.problem, "");
}

TEST_F(ToolsTest, OneThatIsNotThereIsNoProblem) {
  const FoundTool found = find({"drun-test-a"});
  EXPECT_EQ(found.path, "");
  EXPECT_EQ(found.problem, "");
}

// A directory of PATH may be on a dead network file system.
TEST_F(ToolsTest, OneThatWasNotFoundInTimeIsNotSaidToBeAbsent) {
  tools_.stop();  // as late as one can be
  const FoundTool found = find({"drun-test-a"});
  EXPECT_EQ(found.path, "");
  EXPECT_EQ(found.problem, "looking for drun-test-a did not end in time");
}

}  // namespace
}  // namespace drun::agent
