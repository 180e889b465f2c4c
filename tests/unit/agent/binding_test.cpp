#include "agent/binding.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/recorded_machine.h"

namespace drun::agent {
namespace {

using control::BindTo;
using Texts = std::vector<std::string>;

constexpr const char* kAll = "0-31";  // of the two-socket machine

BindingRequest request(BindTo to, int n_workers) {
  BindingRequest out;
  out.to = to;
  out.n_workers = n_workers;
  return out;
}

Result<std::vector<WorkerCpus>> bind(const std::string& machine, const BindingRequest& request,
                                     const std::string& usable, std::optional<double> quota = {}) {
  const RecordedMachine recorded(machine);
  const auto cpus = parse_cpu_list(usable);
  return bind_workers(request, read_cores(recorded.root(), cpus), cpus, quota);
}

// One text per worker: place, CPUs, threads, as in "cores 0-3 (0-3,16-19) 4".
Texts bound(const std::string& machine, const BindingRequest& request, const std::string& usable,
            std::optional<double> quota = {}) {
  const auto workers = bind(machine, request, usable, quota);
  if (!workers) return {workers.error().message()};
  Texts out;
  for (const auto& worker : *workers) {
    out.push_back(worker.place + " (" + ranges_text(worker.cpus) + ") " + std::to_string(worker.threads));
  }
  return out;
}

TEST(BindToCore, GivesEachWorkerAnEvenShareWithAllThreads) {
  EXPECT_EQ(bound("two_sockets", request(BindTo::kCore, 4), kAll),
            (Texts{"cores 0-3 (0-3,16-19) 4", "cores 4-7 (4-7,20-23) 4", "cores 8-11 (8-11,24-27) 4",
                   "cores 12-15 (12-15,28-31) 4"}));
  EXPECT_EQ(bound("two_sockets", request(BindTo::kCore, 1), kAll), (Texts{"cores 0-15 (0-31) 16"}));
}

TEST(BindToCore, SharesTheRemainderOut) {
  EXPECT_EQ(bound("two_sockets", request(BindTo::kCore, 3), kAll),
            (Texts{"cores 0-4 (0-4,16-20) 5", "cores 5-9 (5-9,21-25) 5", "cores 10-15 (10-15,26-31) 6"}));
  EXPECT_EQ(bound("offline", request(BindTo::kCore, 3), "0,1,3,4,6-12,15"),
            (Texts{"cores 0-1 (0,4,8,12) 2", "cores 2-3 (1,6,9) 2", "cores 4-6 (3,7,10-11,15) 3"}));
}

TEST(BindToCore, GivesNoCoreToTwoWorkersWhileThereAreEnough) {
  for (int n_workers = 1; n_workers <= 16; ++n_workers) {
    const auto workers = bind("two_sockets", request(BindTo::kCore, n_workers), kAll);
    ASSERT_TRUE(workers.has_value());
    std::vector<int> all;
    for (const auto& worker : *workers) {
      EXPECT_GE(worker.threads, 16 / n_workers);
      EXPECT_LE(worker.threads, 16 / n_workers + 1);
      all.insert(all.end(), worker.cpus.begin(), worker.cpus.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, parse_cpu_list(kAll)) << n_workers;
  }
}

TEST(BindToCore, UsesOnlyWhatTheCpusetLeaves) {
  EXPECT_EQ(bound("two_sockets", request(BindTo::kCore, 2), "6-9,22"),
            (Texts{"cores 6-7 (6-7,22) 2", "cores 8-9 (8-9) 2"}));
}

TEST(BindToCore, RefusesMoreWorkersThanCoresUnlessTheyShareThem) {
  auto many = request(BindTo::kCore, 3);
  const auto refused = bind("two_sockets", many, "0-1,16-17");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kUsage);
  EXPECT_EQ(refused.error().cause, "--bind-to core: 3 workers for 2 cores that they may use");
  EXPECT_NE(refused.error().hint.find("--oversubscribe"), std::string::npos);
  many.shares_cores = true;
  EXPECT_EQ(bound("two_sockets", many, "0-1,16-17"), (Texts{"core 0 (0,16) 1", "core 0 (0,16) 1", "core 1 (1,17) 1"}));
}

TEST(BindToNuma, SpreadsWorkersOverTheNodesInOrder) {
  const std::string first = "NUMA node 0 (0-7,16-23) ", second = "NUMA node 1 (8-15,24-31) ";
  EXPECT_EQ(bound("two_sockets", request(BindTo::kNuma, 4), kAll),
            (Texts{first + "4", first + "4", second + "4", second + "4"}));
  EXPECT_EQ(bound("two_sockets", request(BindTo::kNuma, 2), kAll), (Texts{first + "8", second + "8"}));
  EXPECT_EQ(bound("two_sockets", request(BindTo::kNuma, 1), kAll), (Texts{first + "8"}));
  EXPECT_EQ(bound("two_sockets", request(BindTo::kNuma, 3), kAll), (Texts{first + "4", first + "4", second + "8"}));
}

TEST(BindToNuma, IsTheWholeOfAMachineWithOneNode) {
  EXPECT_EQ(bound("one_node", request(BindTo::kNuma, 2), "0-19"),
            (Texts{"NUMA node 0 (0-19) 7", "NUMA node 0 (0-19) 7"}));
}

TEST(BindToNuma, FollowsTheNodesOfTheGpus) {
  auto gpus = request(BindTo::kNuma, 3);
  gpus.gpu_nodes = {1, 0, -1};
  const std::string first = "NUMA node 0 (0-7,16-23) ", second = "NUMA node 1 (8-15,24-31) ";
  EXPECT_EQ(bound("two_sockets", gpus, kAll), (Texts{second + "4", first + "8", second + "4"}));
  gpus.gpu_nodes = {255, 255, 255};  // no CPU of this node is usable
  EXPECT_EQ(bound("two_sockets", gpus, kAll), bound("two_sockets", request(BindTo::kNuma, 3), kAll));
}

// A node with one usable core of three doesn't get half of the workers.
TEST(BindToNuma, SpreadsByUsableCores) {
  EXPECT_EQ(bound("two_sockets", request(BindTo::kNuma, 3), "7-9"),
            (Texts{"NUMA node 0 (7) 1", "NUMA node 1 (8-9) 1", "NUMA node 1 (8-9) 1"}));
}

TEST(BindToNuma, RefusesMoreWorkersThanCoresOfANode) {
  auto gpus = request(BindTo::kNuma, 3);
  gpus.gpu_nodes = {0, 0, 0};
  const auto refused = bind("two_sockets", gpus, "6-9");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().cause, "--bind-to numa: on NUMA node 0 3 workers for 2 cores that they may use");
  gpus.shares_cores = true;
  EXPECT_EQ(bound("two_sockets", gpus, "6-9"), Texts(3, "NUMA node 0 (6-7) 1"));
}

TEST(Binding, CountsThreadsWithinTheQuota) {
  EXPECT_EQ(bound("two_sockets", request(BindTo::kCore, 2), kAll, 6.5),
            (Texts{"cores 0-7 (0-7,16-23) 3", "cores 8-15 (8-15,24-31) 3"}));
  EXPECT_EQ(bound("two_sockets", request(BindTo::kCore, 1), kAll, 0.5), (Texts{"cores 0-15 (0-31) 1"}));
}

TEST(Binding, FailsWhereNoCpuIsKnown) { EXPECT_FALSE(bind("two_sockets", request(BindTo::kCore, 1), "").has_value()); }

}  // namespace
}  // namespace drun::agent
