#include "agent/gpu_nodes.h"

#include <gtest/gtest.h>

#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

// The files of NVIDIA's driver for four GPUs; the firmware doesn't report the node of the last one.
class GpuNodes : public ::testing::Test {
 protected:
  GpuNodes() {
    add("0000:c1:00.0", "GPU-cccc", "1");
    add("0000:1B:00.0", "GPU-aaaa", "0");
    add("0000:41:00.0", "GPU-bbbb", "0");
    add("0001:01:00.0", "GPU-dddd", "-1");
  }
  void add(const std::string& address, const std::string& uuid, const std::string& node) {
    folder_.write(
        "proc/driver/nvidia/gpus/" + address + "/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 300\nGPU UUID: \t " + uuid + "\nDevice Minor: \t 0\n");
    folder_.write("sys/bus/pci/devices/" + lower_case(address) + "/numa_node", node + "\n");
  }
  static std::string lower_case(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(c));
    return text;
  }
  std::vector<int> nodes(const std::vector<std::string>& named,
                         const std::map<std::string, std::string>& environment = {}) const {
    return nodes_of_workers(named, read_gpu_nodes(folder_.path()), environment);
  }
  drun::testing::TempFolder folder_;
};

TEST_F(GpuNodes, AreCounted) {
  EXPECT_EQ(count_gpus(folder_.path()), 4u);
  const drun::testing::TempFolder without_driver;
  EXPECT_EQ(count_gpus(without_driver.path()), 0u);
}

TEST_F(GpuNodes, AreInTheOrderOfPciAddresses) {
  const auto gpus = read_gpu_nodes(folder_.path());
  ASSERT_EQ(gpus.size(), 4u);
  EXPECT_EQ(gpus[0].uuid, "GPU-aaaa");
  EXPECT_EQ(gpus[0].node, 0);
  EXPECT_EQ(gpus[2].uuid, "GPU-cccc");
  EXPECT_EQ(gpus[2].node, 1);
  EXPECT_EQ(gpus[3].node, -1);
}

TEST_F(GpuNodes, BelongToWorkersByLocalRank) {
  EXPECT_EQ(nodes({"", "", ""}), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(nodes({"", "", "", "", ""}), (std::vector<int>{-1, -1, -1, -1, -1}));  // the sharing is unknown
}

TEST_F(GpuNodes, BelongToWorkersByTheHostList) {
  EXPECT_EQ(nodes({"2", "0"}), (std::vector<int>{1, 0}));
  EXPECT_EQ(nodes({"GPU-cccc", "GPU-a", "MIG-1", "9"}), (std::vector<int>{1, 0, -1, -1}));
}

TEST_F(GpuNodes, BelongToWorkersByTheEnvironment) {
  const auto visible = [](const std::string& list) {
    return std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", list}};
  };
  EXPECT_EQ(nodes({"", ""}, visible("2,1")), (std::vector<int>{1, 0}));
  EXPECT_EQ(nodes({"", ""}, visible("GPU-cccc, 0")), (std::vector<int>{1, 0}));
  EXPECT_EQ(nodes({"", ""}, visible("2,-1,0")), (std::vector<int>{-1, -1}));
  EXPECT_EQ(nodes({""}, visible("")), (std::vector<int>{-1}));
  EXPECT_EQ(nodes({"0"}, visible("2")), (std::vector<int>{0}));
}

TEST(NoGpuNodes, AreNotKnown) {
  const drun::testing::TempFolder empty;
  EXPECT_TRUE(read_gpu_nodes(empty.path()).empty());
  EXPECT_EQ(nodes_of_workers({"", "0"}, {}, {}), (std::vector<int>{-1, -1}));
}

TEST_F(GpuNodes, AreMissingIfNoGpuHasTheNumberOrTheUuid) {
  const auto missing = [&](const std::vector<std::string>& named) {
    return missing_gpus(named, read_gpu_nodes(folder_.path()));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(missing({"0", "3", "", "GPU-aaaa", "GPU-c", "MIG-1"}), Names());
  EXPECT_EQ(missing({"0", "4", "GPU-e", "12"}), (Names{"4", "GPU-e", "12"}));
  add("0002:01:00.0", "GPU-????????", "0");
  EXPECT_EQ(missing({"4", "GPU-e", "5"}), Names{"5"}) << "a UUID that the driver has not read yet may be any";
}

TEST(NoGpus, NobodyKnowsWhichAreMissing) {
  const drun::testing::TempFolder without_driver;
  EXPECT_TRUE(missing_gpus({"0", "7", "GPU-a"}, read_gpu_nodes(without_driver.path())).empty());
}

}  // namespace
}  // namespace drun::agent
