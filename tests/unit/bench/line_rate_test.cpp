#include "bench/line_rate.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace drun::bench {
namespace {

namespace fs = std::filesystem;

// A tree like /sys.
class LineRate : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "line-rate-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  // `mark`: "device", "bonding", "lower_NAME" or nothing.
  void add(const std::string& name, const std::string& mark, const std::string& speed) {
    const fs::path directory = fs::path(root_) / "class/net" / name;
    fs::create_directories(mark.empty() ? directory : directory / mark);
    if (!speed.empty()) std::ofstream(directory / "speed") << speed << "\n";
  }
  std::optional<std::uint64_t> rate(const std::string& name) const { return line_rate(root_, name); }

  std::string root_;
};

TEST_F(LineRate, IsThatOfADevice) {
  add("eth0", "device", "25000");
  EXPECT_EQ(rate("eth0"), 25000000000u);
  add("bond0", "bonding", "50000");
  EXPECT_EQ(rate("bond0"), 50000000000u);
}

TEST_F(LineRate, IsUnknownWhereTheKernelDoesNotKnow) {
  add("virtio", "device", "-1");
  add("old", "device", "4294967295");
  add("down", "device", "");
  for (const char* name : {"virtio", "old", "down", "absent", "", "../eth0"}) EXPECT_FALSE(rate(name)) << name;
}

TEST_F(LineRate, OfWhatIsNoHardwareMeansNothing) {
  add("veth0", "", "10000");
  EXPECT_FALSE(rate("veth0"));
}

TEST_F(LineRate, OfAVlanIsThatOfWhatIsBelow) {
  add("eth0", "device", "100000");
  add("eth0.7", "lower_eth0", "");
  EXPECT_EQ(rate("eth0.7"), 100000000000u);
  add("loop", "lower_loop", "");
  EXPECT_FALSE(rate("loop"));
  add("br0", "lower_eth0", "");
  add("br0", "lower_veth0", "");
  EXPECT_FALSE(rate("br0"));
}

}  // namespace
}  // namespace drun::bench
