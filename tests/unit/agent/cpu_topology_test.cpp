#include "agent/cpu_topology.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/recorded_machine.h"

namespace drun::agent {
namespace {

// "0.0: 0,16" for each core: package, node, CPUs.
std::vector<std::string> texts(const std::vector<Core>& cores) {
  std::vector<std::string> out;
  for (const auto& core : cores) {
    out.push_back(std::to_string(core.package) + "." + std::to_string(core.node) + ": " + ranges_text(core.cpus));
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(CpuList, IsNumbersAndRanges) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("7"), (std::vector<int>{7}));
  for (const char* text : {"", "\n", "x", "-1", "3-", "5-2", "0-99999999999", "0-70000"}) {
    EXPECT_EQ(parse_cpu_list(text), std::vector<int>{}) << text;
  }
  EXPECT_EQ(parse_cpu_list("1,x,2"), (std::vector<int>{1}));
}

TEST(CpuList, IsBoundedWhateverTheTextRepeats) {
  std::string text = "0-65535";
  for (int i = 0; i < 9; ++i) text += "," + text;
  EXPECT_EQ(parse_cpu_list(text).size(), 65536u);
}

TEST(CpuTopology, HasTheTwoThreadsOfEachCoreTogether) {
  const RecordedMachine machine("two_sockets");
  const auto cores = texts(read_cores(machine.root(), parse_cpu_list("0-31")));
  ASSERT_EQ(cores.size(), 16u);
  EXPECT_EQ(cores[0], "0.0: 0,16");
  EXPECT_EQ(cores[7], "0.0: 7,23");
  EXPECT_EQ(cores[8], "1.1: 8,24");
  EXPECT_EQ(cores[15], "1.1: 15,31");
}

TEST(CpuTopology, NumbersCoresOfAllThatAreOnlineWhateverIsUsable) {
  const RecordedMachine machine("two_sockets");
  EXPECT_EQ(read_cores(machine.root(), {9}).size(), 16u);
}

TEST(CpuTopology, MixesCoresWithOneThreadAndWithTwo) {
  const RecordedMachine machine("one_node");
  EXPECT_EQ(texts(read_cores(machine.root(), parse_cpu_list("0-19"))),
            (Texts{"0.0: 0-1", "0.0: 2-3", "0.0: 4-5", "0.0: 6-7", "0.0: 8-9", "0.0: 10-11", "0.0: 12", "0.0: 13",
                   "0.0: 14", "0.0: 15", "0.0: 16", "0.0: 17", "0.0: 18", "0.0: 19"}));
}

// This machine numbers its CPUs round-robin over its sockets.
TEST(CpuTopology, LeavesOutWhatIsOffline) {
  const RecordedMachine machine("offline");
  EXPECT_EQ(texts(read_cores(machine.root(), {0, 1, 3, 4, 6, 7, 8, 9, 10, 11, 12, 15})),
            (Texts{"0.0: 0,8", "0.0: 4,12", "1.0: 1,9", "2.0: 6", "2.0: 10", "3.0: 3,11", "3.0: 7,15"}));
}

TEST(CpuTopology, TakesNodesThatAreMemoryOnlyForNone) {
  const RecordedMachine machine("gpu_memory_nodes");
  EXPECT_EQ(texts(read_cores(machine.root(), parse_cpu_list("0-15,88-103"))),
            (Texts{"0.0: 0-3", "0.0: 4-7", "0.0: 8-11", "0.0: 12-15", "8.8: 88-91", "8.8: 92-95", "8.8: 96-99",
                   "8.8: 100-103"}));
}

TEST(CpuTopology, IsOneCorePerCpuWhereNothingIsTold) {
  const drun::testing::TempFolder empty;
  EXPECT_EQ(texts(read_cores(empty.path(), {2, 5})), (Texts{"0.0: 2", "0.0: 5"}));
}

}  // namespace
}  // namespace drun::agent
