#include "agent/facts_text.h"

#include <gtest/gtest.h>

namespace drun::agent {
namespace {

TEST(FactsText, VersionOfTheDriver) {
  EXPECT_EQ(first_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
                          "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"),
            "535.104.05");
  EXPECT_EQ(first_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (d@b)\n"),
            "550.54.15");
  EXPECT_EQ(first_version("glibc 2.36\n"), "2.36");
  EXPECT_EQ(first_version("ldd (Debian GLIBC 2.36-9+deb12u4) 2.36\n"), "2.36");
  EXPECT_EQ(first_version(""), "");
  EXPECT_EQ(first_version("no version 5 here. \n"), "");
}

TEST(FactsText, VersionOfCuda) {
  EXPECT_EQ(cuda_version(R"({"cuda_cccl":{"name":"CCCL","version":"9.9.9"},
    "cuda" : { "name" : "CUDA SDK", "version" : "12.2.1" }, "x": {"version": "1"}})"),
            "12.2.1");
  EXPECT_EQ(cuda_version(""), "");
  EXPECT_EQ(cuda_version(R"({"cuda": {"version": "12)"), "");
}

TEST(FactsText, VersionsOfPython) {
  const auto versions = parse_versions("python 3.11.2\ntorch 2.3.1+cu121\nTraceback (most recent call last):\n");
  EXPECT_EQ(versions.at("python"), "3.11.2");
  EXPECT_EQ(versions.at("torch"), "2.3.1+cu121");
  EXPECT_EQ(versions.size(), 2u);
}

TEST(FactsText, LibraryVersionsAreInFileNames) {
  EXPECT_EQ(library_version("libnccl.so.2.18.3", "libnccl.so."), "2.18.3");
  EXPECT_EQ(library_version("libnccl.so.2", "libnccl.so."), "");
  EXPECT_EQ(library_version("libnccl.so.2.18.3.backup", "libnccl.so."), "");
  EXPECT_EQ(library_version("libdrun.so.0.1.0", "libdrun.so."), "0.1.0");
}

TEST(FactsText, Memory) {
  const std::string meminfo = "MemTotal:       24683520 kB\nMemFree:  100 kB\nMemAvailable:   23276928 kB\n";
  EXPECT_EQ(meminfo_mib(meminfo, "MemTotal"), 24105);
  EXPECT_EQ(meminfo_mib(meminfo, "MemAvailable"), 22731);
  EXPECT_EQ(meminfo_mib(meminfo, "Mem"), -1);
}

constexpr const char* kUuid = "GPU-5e2a7c6e-8d0c-4f0c-9a53-1f0b7a3d2c10";

TEST(FactsText, Gpus) {
  const std::string line =
      std::string("0, ") + kUuid + ", NVIDIA H100 80GB HBM3, 81559, 61954, 8, 16, [N/A], 0x0000000000000048\n";
  auto gpus = parse_gpus(line);
  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus->size(), 1u);
  EXPECT_EQ((*gpus)[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ((*gpus)[0].memory_used_mib, 61954);
  EXPECT_EQ((*gpus)[0].pcie_width, 8);
  EXPECT_EQ((*gpus)[0].pcie_width_max, 16);
  EXPECT_EQ((*gpus)[0].ecc_uncorrected, -1);
  EXPECT_EQ((*gpus)[0].throttle_reasons, 0x48u);
  add_gpu_processes(std::string(kUuid) + ", 23117, /opt/my, tool/python3, 61944\nGPU-other, 1, x, 2\nnonsense\n",
                    *gpus);
  ASSERT_EQ((*gpus)[0].processes.size(), 1u);
  EXPECT_EQ((*gpus)[0].processes[0].pid, 23117);
  EXPECT_EQ((*gpus)[0].processes[0].name, "/opt/my,tool/python3");
  EXPECT_EQ((*gpus)[0].processes[0].used_mib, 61944);
  add_row_remaps(std::string(kUuid) + ", Yes, 0\n", *gpus);
  EXPECT_TRUE((*gpus)[0].remap_pending);
  EXPECT_FALSE((*gpus)[0].remap_failed);
}

TEST(FactsText, AnErrorIsNoListOfGpus) {
  EXPECT_FALSE(parse_gpus("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"));
  EXPECT_FALSE(parse_gpus("Field \"clocks_event_reasons.active\" is not a valid field to query.\n"));
  const auto none = parse_gpus("No devices were found\n");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

TEST(FactsText, XidsOfTheKernelsLog) {
  std::vector<control::XidFacts> xids;
  add_xids(
      "6,1234,5000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
      " SUBSYSTEM=pci\n"
      "6,1235,6000000,-;eth0: NVRM: no such thing\n"
      "6,1236,65000000,-;NVRM: Xid (PCI:0000:86:00): 13, Graphics Exception\n",
      125'000'000, xids);
  ASSERT_EQ(xids.size(), 2u);
  EXPECT_EQ(xids[0].number, 79);
  EXPECT_EQ(xids[0].device, "PCI:0000:3b:00");
  EXPECT_EQ(xids[0].age_s, 120);
  EXPECT_EQ(xids[1].number, 13);
  EXPECT_EQ(xids[1].age_s, 60);
  for (std::size_t i = 0; i < 2 * kMaxXids; ++i) add_xids("6,1,1,-;NVRM: Xid (PCI:0): 31, x\n", 0, xids);
  EXPECT_EQ(xids.size(), kMaxXids);
}

TEST(FactsText, XidsOfAnImpossibleTime) {
  std::vector<control::XidFacts> xids;
  add_xids("6,1,9223372036854775808,-;NVRM: Xid (PCI:0): 31, x\n", 1'000'000, xids);
  ASSERT_EQ(xids.size(), 1u);
  EXPECT_EQ(xids[0].age_s, 1);
}

TEST(FactsText, Bonds) {
  const auto bond =
      parse_bond("bond0",
                 "Ethernet Channel Bonding Driver: v6.1.0\n\nBonding Mode: IEEE 802.3ad Dynamic link aggregation\n"
                 "MII Status: up\n\nSlave Interface: eth0\nMII Status: up\nSpeed: 25000 Mbps\nDuplex: full\n\n"
                 "Slave Interface: eth1\nMII Status: down\nSpeed: Unknown\nDuplex: Unknown\n");
  EXPECT_EQ(bond.mode, "IEEE 802.3ad Dynamic link aggregation");
  ASSERT_EQ(bond.slaves.size(), 2u);
  EXPECT_TRUE(bond.slaves[0].up);
  EXPECT_EQ(bond.slaves[0].speed_mbps, 25000);
  EXPECT_FALSE(bond.slaves[1].up);
  EXPECT_EQ(bond.slaves[1].speed_mbps, 0);
}

TEST(FactsText, Ahosts) {
  const auto addresses =
      parse_ahosts("127.0.1.1       STREAM host2\n127.0.1.1       DGRAM  \n127.0.1.1       RAW    \nfd00::2 STREAM\n");
  EXPECT_EQ(addresses, (std::vector<std::string>{"127.0.1.1", "fd00::2"}));
  EXPECT_TRUE(parse_ahosts("").empty());
}

TEST(FactsText, ConfLines) {
  EXPECT_EQ(conf_lines("# all\n\n  NCCL_DEBUG=INFO \nNCCL_SOCKET_IFNAME=eth0"),
            (std::vector<std::string>{"NCCL_DEBUG=INFO", "NCCL_SOCKET_IFNAME=eth0"}));
}

TEST(FactsText, Rdma) {
  EXPECT_EQ(rdma_rate_mbps("200 Gb/sec (4X HDR)\n"), 200000);
  EXPECT_EQ(rdma_rate_mbps("2.5 Gb/sec (1X SDR)"), 2500);
  EXPECT_EQ(rdma_rate_mbps(""), -1);
  EXPECT_TRUE(gid_is_ipv4("0000:0000:0000:0000:0000:ffff:0a00:0001"));
  EXPECT_FALSE(gid_is_ipv4("fe80:0000:0000:0000:526b:4bff:fe12:3456"));
}

TEST(FactsText, FileSystems) {
  const auto disk = parse_file_system("/work", "4096 262144 131072\nwritable\n");
  EXPECT_EQ(disk.size_mib, 1024);
  EXPECT_EQ(disk.free_mib, 512);
  EXPECT_TRUE(disk.writable);
  EXPECT_EQ(parse_file_system("/x", "stat: cannot read file system information for '/x': No such file or directory\n")
                .size_mib,
            -1);
}

}  // namespace
}  // namespace drun::agent
