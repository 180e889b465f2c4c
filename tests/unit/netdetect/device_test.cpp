#include "netdetect/device.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace drun::netdetect {
namespace {

namespace fs = std::filesystem;

// A made-up sysfs.
class SysfsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/drun-sysfs-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    root_ = path;
    link_.index = 3;
    link_.name = "eth0";
    link_.mac = std::string("\x02\x00\x00\x00\x00\xfe", 6);
    put("class/net/eth0/ifindex", "3\n");
    put("class/net/eth0/address", "02:00:00:00:00:fe\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  Device device() const { return Sysfs(root_.string()).device(link_); }

  fs::path root_;
  KernelLink link_;
};

TEST_F(SysfsTest, KnowsNothingOfAMissingInterface) {
  link_.name = "eth1";
  EXPECT_FALSE(device().known);
}

TEST_F(SysfsTest, DistrustsAnotherNamespacesInterfaceOfTheSameName) {
  EXPECT_TRUE(device().known);
  put("class/net/eth0/address", "02:00:00:00:00:ff\n");
  EXPECT_FALSE(device().known);
  put("class/net/eth0/address", "02:00:00:00:00:fe\n");
  put("class/net/eth0/ifindex", "4\n");
  EXPECT_FALSE(device().known);
}

TEST_F(SysfsTest, TellsHardwareByItsDevice) {
  EXPECT_FALSE(device().hardware);
  put("class/net/eth0/device/vendor", "0x15b3\n");
  EXPECT_TRUE(device().hardware);
  EXPECT_FALSE(device().rdma);
}

TEST_F(SysfsTest, FindsRdmaOnTheDeviceItself) {
  put("class/net/eth0/device/infiniband/mlx5_0/node_type", "1: CA\n");
  EXPECT_TRUE(device().rdma);
}

TEST_F(SysfsTest, FindsRdmaByTheGidsOfABond) {
  put("class/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/0", "eth0\n");
  EXPECT_TRUE(device().rdma);
  put("class/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/0", "eth5\n");
  EXPECT_FALSE(device().rdma);
}

TEST(LinkSpeed, IsUnknownForWhatDoesNotExist) {
  EXPECT_EQ(link_speed_mbps("lo"), 0);
  EXPECT_EQ(link_speed_mbps("nosuch0"), 0);
  EXPECT_EQ(link_speed_mbps("a-name-that-is-too-long"), 0);
}

}  // namespace
}  // namespace drun::netdetect
