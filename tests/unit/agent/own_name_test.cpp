#include "agent/own_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::agent {
namespace {

using ::testing::HasSubstr;

TEST(OwnName, LoopbackAloneIsWarnedOf) {
  const std::string loopback = "127.0.1.1       STREAM node7.example node7\n127.0.1.1       DGRAM\n";
  EXPECT_THAT(own_name_warning(loopback), HasSubstr("its own name stands for 127.0.1.1 alone"));
  EXPECT_EQ(own_name_warning(loopback + "10.0.0.7       STREAM\n"), "");
  EXPECT_EQ(own_name_warning("10.0.0.7       STREAM node7\n"), "");
  EXPECT_EQ(own_name_warning(""), "") << "no getent, or no such name";
}

TEST(OwnName, OnlyHorovodsOwnLibraryOnSeveralHostsGivesItOut) {
  EXPECT_TRUE(gives_out_own_name({{"HOROVOD_HOSTNAME", "a"}, {"HOROVOD_CROSS_SIZE", "2"}}));
  EXPECT_FALSE(gives_out_own_name({{"HOROVOD_HOSTNAME", "a"}, {"HOROVOD_CROSS_SIZE", "1"}})) << "one host";
  EXPECT_FALSE(gives_out_own_name({{"HOROVOD_CROSS_SIZE", "2"}})) << "drun's own package";
  EXPECT_FALSE(gives_out_own_name({}));
}

}  // namespace
}  // namespace drun::agent
