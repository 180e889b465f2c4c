#include "runtime/src/gpu/nccl_conf.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace drun::runtime::gpu {
namespace {

TEST(NcclConf, TheFirstLineOfAVariableCounts) {
  const char* const text =
      "# NCCL_HOSTID=comment\nNCCL_HOSTIDS=other\nNCCL_HOSTID=a=b\nNCCL_HOSTID=second\nNCCL_DEBUG=WARN";
  EXPECT_EQ(nccl_conf_value(text, "NCCL_HOSTID"), "a=b");
  EXPECT_EQ(nccl_conf_value(text, "NCCL_DEBUG"), "WARN");
  EXPECT_EQ(nccl_conf_value(text, "NCCL"), "");
  EXPECT_EQ(nccl_conf_value("", "NCCL_HOSTID"), "");
}

class Files : public ::testing::Test {
 protected:
  Files() {
    std::filesystem::create_directories(folder_);
    ::setenv("HOME", folder_.c_str(), 1);
    ::unsetenv("NCCL_CONF_FILE");
    ::unsetenv("NCCL_HOSTID");
  }
  ~Files() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("NCCL_CONF_FILE");
    ::unsetenv("NCCL_HOSTID");
    if (!home_.empty()) ::setenv("HOME", home_.c_str(), 1);
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }

  const std::string home_ = ::getenv("HOME") == nullptr ? "" : ::getenv("HOME");
  const std::string folder_ = "/tmp/nccl-conf-test-" + std::to_string(::getpid());
};

TEST_F(Files, TheEnvironmentComesFirstThenTheUsersFile) {
  EXPECT_EQ(nccl_setting("NCCL_HOSTID"), "");
  write(".nccl.conf", "NCCL_HOSTID=of the user\n");
  write("other", "NCCL_HOSTID=of a file\n");
  EXPECT_EQ(nccl_setting("NCCL_HOSTID"), "of the user");
  ::setenv("NCCL_CONF_FILE", (folder_ + "/other").c_str(), 1);
  EXPECT_EQ(nccl_setting("NCCL_HOSTID"), "of a file");
  ::setenv("NCCL_HOSTID", "given", 1);
  EXPECT_EQ(nccl_setting("NCCL_HOSTID"), "given");
}

}  // namespace
}  // namespace drun::runtime::gpu
