// The agent gathers facts: real children, files below the test's own folder.
#include "agent/facts.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/fd.h"

namespace drun::agent {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Facts : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "drun-facts-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    fs::create_directories(root_ / "bin");
  }
  void TearDown() override {
    ::unsetenv("DRUN_FAKE_GPUS");
    fs::remove_all(root_);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void use_gpus(const char* kind) const {
    fs::create_symlink(DRUN_TEST_FAKES "/nvidia-smi", root_ / "bin/nvidia-smi");
    ::setenv("DRUN_FAKE_GPUS", kind, 1);
  }
  control::HostFacts gather(control::AskFacts question, std::optional<milliseconds> stop_after = {}) {
    asio::io_context io(1);
    FactsRoot root;
    root.folder = root_.string();
    FactsGatherer gatherer(io, (root_ / "bin").string(), root);
    control::HostFacts facts;
    bool done = false;
    TaskGroup group(io.get_executor());
    if (stop_after == milliseconds(0)) gatherer.stop();
    group.spawn(keep(gatherer, std::move(question), facts, done));
    Timer timer(io);
    if (stop_after) {
      timer.expires_after(*stop_after);
      timer.async_wait([&](const boost::system::error_code& ec) {
        if (!ec) gatherer.stop();
      });
    }
    io.run_for(std::chrono::seconds(30));
    EXPECT_TRUE(done);
    return facts;
  }
  static Task<void> keep(FactsGatherer& gatherer, control::AskFacts question, control::HostFacts& facts, bool& done) {
    facts = co_await gatherer.gather(std::move(question));
    done = true;
  }
  static control::AskFacts question() {
    control::AskFacts q;
    q.tool_ms = 20000;
    return q;
  }

  fs::path root_;
};

TEST_F(Facts, OfAPlainHost) {
  write("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
  const auto facts = gather(question());
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  EXPECT_EQ(facts.host_name, name);
  EXPECT_EQ(facts.versions.count("kernel"), 1u);
  EXPECT_EQ(facts.versions.count("glibc"), 1u);
  EXPECT_EQ(facts.memory_total_mib, 1024);
  EXPECT_EQ(facts.memory_available_mib, 512);
  EXPECT_GT(facts.open_files, 0);
  EXPECT_FALSE(facts.has_nvidia_smi);
  EXPECT_TRUE(facts.gpus.empty());
  ASSERT_EQ(facts.disks.size(), 3u);
  EXPECT_EQ(facts.disks[0].path, ".");
  EXPECT_GT(facts.disks[0].size_mib, 0);
  EXPECT_GE(facts.n_routing_rules, 3);
  EXPECT_TRUE(facts.unknown.empty());
}

TEST_F(Facts, OfAHostWithEverything) {
  write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n");
  write("usr/local/cuda/version.json", R"({"cuda":{"name":"CUDA SDK","version":"12.2.1"}})");
  write("usr/lib/x86_64-linux-gnu/libnccl.so.2.18.3", "");
  write("usr/local/lib/libdrun.so.0.1.0", "");
  write("etc/nccl.conf", "# mine\nNCCL_SOCKET_IFNAME=eth7\n");
  write("dev/kmsg", "6,1,1000,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n");
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
  write("sys/class/infiniband/mlx5_0/fw_ver", "20.31.1014\n");
  write("sys/class/infiniband/mlx5_0/board_id", "MT_0000000223\n");
  write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  write("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
  write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
  write("sys/class/infiniband/mlx5_0/ports/1/gids/2", "fe80:0000:0000:0000:526b:4bff:fe12:3456\n");
  write("sys/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  write("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2", "RoCE v2\n");
  write("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3", "RoCE v2\n");
  write("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "ens5\n");
  write("proc/net/bonding/bond0", "Bonding Mode: active-backup\nSlave Interface: eth0\nMII Status: down\n");
  write("proc/sys/net/ipv4/conf/all/rp_filter", "1\n");
  use_gpus("healthy");
  ::setenv("NCCL_DEBUG", "INFO", 1);
  auto q = question();
  q.variables = {"NCCL_*", "GLOO_*"};
  const auto facts = gather(q);
  ::unsetenv("NCCL_DEBUG");
  EXPECT_EQ(facts.versions.at("driver"), "535.104.05");
  EXPECT_EQ(facts.versions.at("cuda"), "12.2.1");
  EXPECT_EQ(facts.versions.at("nccl"), "2.18.3");
  EXPECT_EQ(facts.versions.at("libdrun"), "0.1.0");
  EXPECT_EQ(facts.versions.at("governor"), "performance and powersave");
  EXPECT_EQ(facts.versions.at("firmware MT_0000000223"), "20.31.1014");
  EXPECT_EQ(facts.nccl_conf.at("/etc/nccl.conf"), std::vector<std::string>{"NCCL_SOCKET_IFNAME=eth7"});
  EXPECT_EQ(facts.variables.at("NCCL_DEBUG"), "INFO");
  ASSERT_EQ(facts.xids.size(), 1u);
  EXPECT_EQ(facts.xids[0].number, 79);
  EXPECT_TRUE(facts.kernel_log_readable);
  ASSERT_EQ(facts.rdma.size(), 1u);
  EXPECT_EQ(facts.rdma[0].state, "ACTIVE");
  EXPECT_EQ(facts.rdma[0].rate_mbps, 100000);
  EXPECT_EQ(facts.rdma[0].gid_rocev2, 3);
  EXPECT_EQ(facts.rdma[0].interface, "ens5");
  ASSERT_EQ(facts.bonds.size(), 1u);
  EXPECT_FALSE(facts.bonds[0].slaves.at(0).up);
  for (const auto& nic : facts.nics) EXPECT_EQ(nic.rp_filter, 1) << nic.name;
  EXPECT_TRUE(facts.has_nvidia_smi);
  EXPECT_EQ(facts.nvidia_smi_problem, "");
  ASSERT_EQ(facts.gpus.size(), 2u);
  EXPECT_EQ(facts.gpus[1].memory_total_mib, 81559);
}

TEST_F(Facts, GpusInTrouble) {
  use_gpus("ecc");
  auto facts = gather(question());
  ASSERT_EQ(facts.gpus.size(), 2u);
  EXPECT_EQ(facts.gpus[1].ecc_uncorrected, 3);
  EXPECT_EQ(facts.gpus[1].throttle_reasons, 0x48u);
  EXPECT_TRUE(facts.gpus[1].remap_pending);
  EXPECT_FALSE(facts.gpus[0].remap_pending);
  ::setenv("DRUN_FAKE_GPUS", "foreign", 1);
  facts = gather(question());
  ASSERT_EQ(facts.gpus.size(), 2u);
  ASSERT_EQ(facts.gpus[1].processes.size(), 1u);
  EXPECT_EQ(facts.gpus[1].processes[0].pid, 23117);
  ::setenv("DRUN_FAKE_GPUS", "fewer", 1);
  EXPECT_EQ(gather(question()).gpus.size(), 1u);
}

TEST_F(Facts, AnOldDriverIsAskedForLess) {
  use_gpus("old");
  const auto facts = gather(question());
  ASSERT_EQ(facts.gpus.size(), 2u);
  EXPECT_EQ(facts.gpus[1].ecc_uncorrected, -1);
  EXPECT_EQ(facts.gpus[0].throttle_reasons, 1u);
}

TEST_F(Facts, ABrokenDriverIsTold) {
  use_gpus("broken");
  const auto facts = gather(question());
  EXPECT_TRUE(facts.gpus.empty());
  EXPECT_NE(facts.nvidia_smi_problem.find("couldn't communicate with the NVIDIA driver"), std::string::npos);
}

TEST_F(Facts, AHangingProgramEndsAtTheDeadline) {
  use_gpus("hang");
  auto q = question();
  q.tool_ms = 2000;
  const auto began = Clock::now();
  const auto facts = gather(q);
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(15));
  EXPECT_TRUE(facts.has_nvidia_smi);
  EXPECT_NE(facts.nvidia_smi_problem.find("it did not answer within "), std::string::npos) << facts.nvidia_smi_problem;
  // The two seconds cover the whole request, including the time that a loaded machine takes to start nvidia-smi.
  EXPECT_GE(facts.nvidia_smi_ms, 500);
  EXPECT_TRUE(facts.nvidia_smi_late);
}

// A failure there keeps a job from starting: a machine that is only busy is not taken for a dead file server.
TEST_F(Facts, AWorkingDirectoryHasMoreTimeThanAProgram) {
  write("slow/stat", "#!/bin/sh\nsleep 1\nPATH=/usr/bin:/bin exec stat \"$@\"\n");
  fs::permissions(root_ / "slow/stat", fs::perms::owner_all);
  auto q = question();
  q.tool_ms = 200;
  q.environment["PATH"] = (root_ / "slow").string() + ":/usr/bin:/bin";
  q.argv = {"cat"};
  const auto facts = gather(q);
  EXPECT_EQ(facts.unknown.count("working directory"), 0u);
  EXPECT_EQ(facts.unknown.count("command"), 0u);
  EXPECT_EQ(facts.command, "/usr/bin/cat");
  EXPECT_GT(facts.disks.at(0).size_mib, 0);
}

TEST_F(Facts, StopEndsWhatRuns) {
  use_gpus("hang");
  const auto began = Clock::now();
  const auto facts = gather(question(), milliseconds(200));
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(15));
  EXPECT_NE(facts.nvidia_smi_problem, "");
  // The child has been killed, and this process must reap it.
  int status = 0;
  bool killed = false;
  for (pid_t pid; (pid = ::waitpid(-1, &status, 0)) > 0;)
    killed = killed || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(killed);
}

// As if everything in PATH, /usr and the home were on a dead network file system.
TEST_F(Facts, WhatCouldNotBeReadIsUnknownByTheNamesUnderWhichItIsCompared) {
  control::AskFacts asked = question();
  asked.argv = {"python3", "train.py"};
  const auto facts = gather(std::move(asked), milliseconds(0));
  for (const char* name : {"glibc", "python", "torch", "nccl-of-python", "ofed", "cuda", "nccl", "libdrun", "nccl.conf",
                           "own name", "working directory", "command", "script"}) {
    EXPECT_EQ(facts.unknown.count(name), 1u) << name;
  }
  EXPECT_EQ(facts.unknown.at("nccl"), "the libraries in /usr could not be read in time");
  EXPECT_TRUE(facts.nvidia_smi_late);
  EXPECT_FALSE(facts.has_nvidia_smi);
  EXPECT_EQ(facts.nvidia_smi_problem, "looking for nvidia-smi did not end in time");
  EXPECT_EQ(facts.versions.count("kernel"), 1u) << "it is in no file";
}

TEST_F(Facts, CommandAndScriptAreHashed) {
  write("job/train", "#!/bin/sh\necho 1\n");
  write("job/train.py", "print(1)\n");
  fs::permissions(root_ / "job/train", fs::perms::owner_all);
  auto q = question();
  q.argv = {"./train", "--epochs", "train.py"};
  q.working_directory = (root_ / "job").string();
  auto facts = gather(q);
  const std::string before = facts.versions.at("command");
  EXPECT_EQ(before.size(), 32u);
  EXPECT_EQ(facts.command, (root_ / "job").string() + "/./train");
  const std::string script = facts.versions.at("script");
  EXPECT_NE(before, script);
  write("job/train", "#!/bin/sh\necho 2\n");
  facts = gather(q);
  EXPECT_NE(facts.versions.at("command"), before);
  EXPECT_EQ(facts.versions.at("script"), script);
  q.argv = {"./nothing"};
  facts = gather(q);
  EXPECT_EQ(facts.versions.count("command"), 0u);
  EXPECT_NE(facts.command_problem.find("does not exist"), std::string::npos);
  q.working_directory = (root_ / "nowhere").string();
  EXPECT_EQ(gather(q).disks.at(0).size_mib, -1);
}

TEST_F(Facts, TheTwoClocksAreReadTogether) {
  const auto facts = gather(question());
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  const auto ours = std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count() -
                    std::chrono::duration_cast<std::chrono::nanoseconds>(steady).count();
  EXPECT_LT(std::llabs(facts.realtime_ns - facts.monotonic_ns - ours), 50'000'000);
}

}  // namespace
}  // namespace drun::agent
