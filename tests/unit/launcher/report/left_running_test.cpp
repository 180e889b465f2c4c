#include "launcher/report/left_running.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

constexpr const char* kWhy =
    ": a job is over when its workers are. What has to go on must stay in the foreground, or be started without drun";

TEST(LeftRunning, NamesHostAndProcess) {
  EXPECT_EQ(left_running_text({{"node1", 1, "raylet"}}),
            std::string("ended 1 process that the workers had left in the background on node1 (raylet)") + kWhy);
}

TEST(LeftRunning, AddsUpHostsAndNamesEachProgramOnce) {
  EXPECT_EQ(
      left_running_text({{"a", 4, "gcs_server"}, {"b", 2, "raylet"}, {"c", 2, "raylet"}}),
      std::string("ended 8 processes that the workers had left in the background on a, b and c (gcs_server, raylet)") +
          kWhy);
}

TEST(LeftRunning, IsOneLineForManyHosts) {
  std::vector<LeftRunning> hosts;
  for (int i = 0; i < 64; ++i) hosts.push_back({"node" + std::to_string(i), 1, "daemon" + std::to_string(i)});
  EXPECT_EQ(left_running_text(hosts), std::string("ended 64 processes that the workers had left in the background on "
                                                  "64 hosts (daemon0, daemon1, daemon2, ...)") +
                                          kWhy);
}

TEST(LeftRunning, DoesWithoutAName) {
  EXPECT_EQ(left_running_text({{"a", 1, ""}, {"b", 1, ""}}),
            std::string("ended 2 processes that the workers had left in the background on a and b") + kWhy);
}

}  // namespace
}  // namespace drun::launcher
