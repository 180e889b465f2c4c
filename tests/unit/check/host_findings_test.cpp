#include "check/host_findings.h"

#include <gtest/gtest.h>

#include <functional>

namespace drun::check {
namespace {

// A cluster of `n` healthy, identical hosts, as Debian installs them.
struct Cluster {
  explicit Cluster(int n, int slots = 1) : facts(static_cast<std::size_t>(n)) {
    for (int i = 0; i < n; ++i) {
      control::HostFacts& f = facts[static_cast<std::size_t>(i)];
      f.versions = {{"kernel", "6.1.0"}, {"glibc", "2.36"}, {"python", "3.11.2"}};
      f.host_name = "h" + std::to_string(i);
      f.own_addresses = {"127.0.1.1"};
      f.cpu = "EPYC";
      f.n_cpus = 64;
      f.memory_total_mib = 262144;
      f.memory_available_mib = 250000;
      f.memlock_bytes = 8 << 20;
      f.open_files = 1024;
      f.processes = 63000;
      f.n_routing_rules = 3;
      for (const char* path : {"/root", "/tmp", "/dev/shm"}) {
        control::DiskFacts disk;
        disk.path = path;
        disk.size_mib = disk.free_mib = 100000;
        disk.writable = true;
        f.disks.push_back(disk);
      }
      for (const char* name : {"eth0", "docker0"}) {
        control::NicFacts nic;
        nic.name = name;
        nic.up = true;
        nic.speed_mbps = name[0] == 'e' ? 25000 : 0;
        nic.duplex = name[0] == 'e' ? "full" : "";
        nic.networks = {name[0] == 'e' ? "10.0.0.0/24" : "172.17.0.0/16"};
        f.nics.push_back(nic);
      }
      ExaminedHost host;
      host.name = "host" + std::to_string(i);
      host.login = i == 0 ? "" : "ssh -p 12345 " + host.name;
      host.slots = slots;
      host.clock_offset_ms = (i * 37) % 200 - 100;
      host.interface = "eth0";
      host.address = "10.0.0." + std::to_string(i + 1);
      hosts.push_back(host);
    }
    for (std::size_t i = 0; i < facts.size(); ++i) hosts[i].facts = &facts[i];
  }
  void add_gpus(int n) {
    for (auto& f : facts) {
      f.has_nvidia_smi = true;
      f.nvidia_smi_ms = 120;
      for (int i = 0; i < n; ++i) {
        control::GpuFacts gpu;
        gpu.index = i;
        gpu.name = "H100";
        gpu.uuid = "GPU-" + std::to_string(i);
        gpu.memory_total_mib = 81559;
        gpu.memory_used_mib = 4;
        gpu.ecc_uncorrected = 0;
        gpu.pcie_width = gpu.pcie_width_max = 16;
        gpu.throttle_reasons = 1;
        f.gpus.push_back(gpu);
      }
    }
  }
  void add_rdma(const char* link_layer = "InfiniBand") {
    for (auto& f : facts) {
      control::RdmaPort port;
      port.device = "mlx5_0";
      port.state = "ACTIVE";
      port.rate_mbps = 200000;
      port.link_layer = link_layer;
      port.gid_rocev2 = 3;
      f.rdma.push_back(port);
      f.memlock_bytes = control::HostFacts::kUnlimited;
    }
  }
  std::vector<Finding> findings() const {
    auto out = host_findings(hosts, question);
    for (const auto& finding : out) EXPECT_NE(finding.command, "") << finding.code;
    return out;
  }

  std::vector<control::HostFacts> facts;
  std::vector<ExaminedHost> hosts;
  HostQuestion question;
};

std::vector<Finding> serious(const Cluster& cluster) {
  std::vector<Finding> out;
  for (auto& f : cluster.findings()) {
    if (f.severity != Severity::kNote) out.push_back(f);
  }
  return out;
}

const Finding* find(const std::vector<Finding>& findings, const std::string& code) {
  for (const auto& f : findings) {
    if (f.code == code) return &f;
  }
  return nullptr;
}

TEST(HostFindings, WhatToTypeReachesTheHostAsDrunDoes) {
  Cluster c(2);
  c.question.has_command = true;
  for (auto& f : c.facts) f.command_problem = "no 'train' in PATH=/bin";
  std::vector<std::string> commands;
  for (const auto& f : c.findings()) {
    if (f.code == "command-missing") commands.push_back(f.command);
  }
  EXPECT_EQ(commands, (std::vector<std::string>{"echo $PATH", "ssh -p 12345 host1 'echo $PATH'"}));
  for (auto& f : c.facts) f.command_problem.clear();
  for (auto& f : c.facts) f.unknown["gpus"] = "no answer";
  commands.clear();
  for (const auto& f : c.findings()) {
    if (f.code == "facts-missing") commands.push_back(f.command);
  }
  EXPECT_EQ(commands, (std::vector<std::string>{"uptime", "time ssh -p 12345 host1 true"}));
}

TEST(HostFindings, NothingIsWrongWithHealthyHosts) {
  for (const int n : {1, 2, 16, 64}) {
    Cluster plain(n);
    EXPECT_TRUE(serious(plain).empty()) << serious(plain)[0].text;
    Cluster with_gpus(n, 8);
    with_gpus.add_gpus(8);
    with_gpus.add_rdma();
    for (auto& f : with_gpus.facts) f.open_files = 1048576;
    EXPECT_TRUE(serious(with_gpus).empty()) << serious(with_gpus)[0].text;
  }
}

TEST(HostFindings, HostsThatCouldNotBeAskedAreLeftOut) {
  Cluster cluster(4);
  cluster.hosts[1].facts = nullptr;
  cluster.hosts[1].clock_offset_ms.reset();
  EXPECT_TRUE(serious(cluster).empty());
  cluster.facts[3].versions["glibc"] = "2.31";
  const auto findings = cluster.findings();
  const Finding* f = find(findings, "versions-differ");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->hosts, std::vector<int>{3});
}

struct Case {
  const char* name;
  std::function<void(Cluster&)> spoil;  // changes a cluster of 4 hosts with 2 slots, GPUs and RDMA
  const char* code;
  Severity severity;
  std::vector<int> hosts;
  const char* words;  // a part of the text
};

class Spoiled : public testing::TestWithParam<Case> {};

TEST_P(Spoiled, IsFoundAndNamed) {
  const Case& c = GetParam();
  Cluster cluster(4, 2);
  cluster.add_gpus(2);
  cluster.add_rdma();
  c.spoil(cluster);
  const auto findings = cluster.findings();
  const Finding* found = nullptr;
  for (const auto& f : findings) {
    if (f.code == c.code && f.severity == c.severity && f.hosts == c.hosts) found = &f;
  }
  std::string all;
  for (const auto& f : findings) all += f.code + ": " + f.subject + ": " + f.text + "\n";
  ASSERT_NE(found, nullptr) << all;
  EXPECT_NE(found->text.find(c.words), std::string::npos) << found->text;
  EXPECT_FALSE(found->subject.empty());
  // There is no other warning or failure.
  for (const auto& f : findings) {
    if (f.severity == Severity::kNote) continue;
    EXPECT_EQ(f.code, c.code) << all;
  }
}

control::XidFacts xid(int number, std::int64_t age_s) {
  control::XidFacts x;
  x.number = number;
  x.device = "PCI:0000:3b:00";
  x.age_s = age_s;
  x.text = "NVRM: Xid";
  return x;
}

INSTANTIATE_TEST_SUITE_P(
    HostFindings, Spoiled,
    testing::Values(
        Case{"Kernel", [](Cluster& c) { c.facts[2].versions["kernel"] = "5.10.0"; }, "versions-differ", Severity::kNote, {2},
             "the kernel is 5.10.0, on 3 other hosts 6.1.0"},
        Case{"Glibc", [](Cluster& c) { c.facts[0].versions["glibc"] = "2.31"; }, "versions-differ", Severity::kWarning, {0},
             "glibc is 2.31, on 3 other hosts 2.36"},
        Case{"Driver",
             [](Cluster& c) {
               for (auto& f : c.facts) f.versions["driver"] = "550.54";
               c.facts[1].versions["driver"] = "535.1";
             },
             "versions-differ", Severity::kWarning, {1}, "the NVIDIA driver is 535.1, on 3 other hosts 550.54"},
        Case{"TorchIsMissing",
             [](Cluster& c) {
               for (auto& f : c.facts) f.versions["torch"] = "2.3.1";
               c.facts[3].versions.erase("torch");
             },
             "versions-differ", Severity::kWarning, {3}, "torch is not there, on 3 other hosts 2.3.1"},
        Case{"ATieBlamesNobody",
             [](Cluster& c) { c.facts[0].versions["python"] = c.facts[2].versions["python"] = "3.12.1"; }, "versions-differ",
             Severity::kWarning, {0, 1, 2, 3}, "python3 differs: 3.12.1: host0 and host2; 3.11.2: host1 and host3"},
        Case{"Firmware",
             [](Cluster& c) {
               for (auto& f : c.facts) f.versions["firmware MT_1"] = "20.31";
               c.facts[1].versions["firmware MT_1"] = "20.28";
               c.facts[2].versions.erase("firmware MT_1");
             },
             "versions-differ", Severity::kWarning, {1}, "the firmware MT_1 is 20.28, on 2 other hosts 20.31"},
        Case{"Governor",
             [](Cluster& c) {
               for (auto& f : c.facts) f.versions["governor"] = "performance";
               c.facts[1].versions["governor"] = "powersave";
             },
             "governor-differs", Severity::kWarning, {1}, "powersave"},
        Case{"Command",
             [](Cluster& c) {
               for (auto& f : c.facts) f.versions["command"] = "0123456789abcdef";
               c.facts[2].versions["command"] = "fedcba9876543210";
             },
             "command-differs", Severity::kWarning, {2}, "is fedcba98, on 3 other hosts 01234567"},
        Case{"ScriptIsMissing",
             [](Cluster& c) {
               for (auto& f : c.facts) f.versions["script"] = "0123456789abcdef";
               c.facts[2].versions.erase("script");
             },
             "command-differs", Severity::kWarning, {2}, "is not there"},
        Case{"CommandIsMissing",
             [](Cluster& c) {
               c.question.has_command = true;
               c.facts[1].command_problem = "no 'train' in PATH=/bin";
             },
             "command-missing", Severity::kFailure, {1}, "no 'train' in PATH"},
        Case{"Directory",
             [](Cluster& c) {
               c.question.has_command = true;
               c.facts[1].disks[0].size_mib = -1;
             },
             "directory-missing", Severity::kFailure, {1}, "/root"},
        Case{"Clock", [](Cluster& c) { c.hosts[2].clock_offset_ms = 90000; }, "clock-off", Severity::kWarning, {2}, "ahead of"},
        Case{"ClockBehind", [](Cluster& c) { c.hosts[0].clock_offset_ms = -1500; }, "clock-off", Severity::kWarning, {0},
             "behind"},
        Case{"ClocksTwoAndTwo",
             [](Cluster& c) { c.hosts[0].clock_offset_ms = c.hosts[1].clock_offset_ms = 90000; }, "clock-off",
             Severity::kWarning, {0, 1, 2, 3}, "apart"},
        Case{"FewerGpus", [](Cluster& c) { c.hosts[1].slots = 4; }, "gpus-fewer", Severity::kFailure, {1},
             "has 2 GPUs for 4 slots"},
        Case{"ForeignMemory", [](Cluster& c) { c.facts[1].gpus[1].memory_used_mib = 900; }, "gpu-memory-used",
             Severity::kWarning, {1}, "900 MiB of the memory of GPU 1"},
        Case{"MuchForeignMemory", [](Cluster& c) { c.facts[1].gpus[1].memory_used_mib = 2048; }, "gpu-memory-used",
             Severity::kFailure, {1}, "2048 MiB"},
        Case{"Ecc", [](Cluster& c) { c.facts[3].gpus[0].ecc_uncorrected = 3; }, "gpu-ecc", Severity::kFailure, {3},
             "GPU 0 has had 3 uncorrected"},
        Case{"RowRemap", [](Cluster& c) { c.facts[3].gpus[0].remap_pending = true; }, "gpu-row-remap", Severity::kWarning, {3},
             "GPU 0"},
        Case{"RowRemapFailed", [](Cluster& c) { c.facts[3].gpus[0].remap_failed = true; }, "gpu-row-remap", Severity::kFailure,
             {3}, "replaced"},
        Case{"Throttled", [](Cluster& c) { c.facts[3].gpus[0].throttle_reasons = 0x48; }, "gpu-throttled", Severity::kWarning,
             {3}, "hardware slowdown, too hot (hardware)"},
        Case{"PowerCap", [](Cluster& c) { c.facts[3].gpus[0].throttle_reasons = 0x04; }, "gpu-throttled", Severity::kNote, {3},
             "power limit"},
        Case{"PcieWidth", [](Cluster& c) { c.facts[0].gpus[1].pcie_width = 8; }, "gpu-pcie-width", Severity::kWarning, {0},
             "GPU 1 uses 8 of 16"},
        Case{"Xid79", [](Cluster& c) { c.facts[0].xids.push_back(xid(79, 600)); }, "gpu-xid", Severity::kFailure, {0},
             "Xid 79 of the GPU at PCI:0000:3b:00, 10 min ago"},
        Case{"OldXid79", [](Cluster& c) { c.facts[0].xids.push_back(xid(79, 90000)); }, "gpu-xid", Severity::kWarning, {0}, "79"},
        Case{"Xid13", [](Cluster& c) { c.facts[0].xids.push_back(xid(13, 60)); }, "gpu-xid", Severity::kNote, {0}, "13"},
        Case{"SmiSlow", [](Cluster& c) { c.facts[0].nvidia_smi_ms = 1500; }, "nvidia-smi-slow", Severity::kWarning, {0},
             "1500 ms"},
        Case{"SmiVerySlow", [](Cluster& c) { c.facts[0].nvidia_smi_ms = 6000; }, "nvidia-smi-slow", Severity::kFailure, {0},
             "6000 ms"},
        Case{"SmiHangsForAShortTime",
             [](Cluster& c) {
               c.facts[0].gpus.clear();
               c.facts[0].nvidia_smi_late = true;
               c.facts[0].nvidia_smi_ms = 3000;
               c.facts[0].nvidia_smi_problem = "it did not answer within 3.0 s";
             },
             "nvidia-smi-failed", Severity::kWarning, {0}, "did not answer"},
        Case{"SmiHangs",
             [](Cluster& c) {
               c.facts[0].gpus.clear();
               c.facts[0].nvidia_smi_late = true;
               c.facts[0].nvidia_smi_ms = 6000;
               c.facts[0].nvidia_smi_problem = "it did not answer within 6.0 s";
             },
             "nvidia-smi-failed", Severity::kFailure, {0}, "did not answer"},
        Case{"OtherGpus", [](Cluster& c) { c.facts[2].gpus[0].name = c.facts[2].gpus[1].name = "A100"; }, "hardware-differs",
             Severity::kWarning, {2}, "the set of GPUs is 2 x A100, on 3 other hosts 2 x H100"},
        Case{"LessMemory", [](Cluster& c) { c.facts[2].memory_total_mib = 131072; }, "hardware-differs", Severity::kNote, {2},
             "has 128.0 GiB of memory, the median is 256.0 GiB"},
        Case{"Memlock", [](Cluster& c) { c.facts[2].memlock_bytes = 8 << 20; }, "memlock-low", Severity::kFailure, {2},
             "may lock 8 MiB"},
        Case{"SomeMemlock", [](Cluster& c) { c.facts[2].memlock_bytes = 1LL << 30; }, "memlock-low", Severity::kWarning, {2},
             "may lock 1.0 GiB"},
        Case{"OpenFiles", [](Cluster& c) { c.facts[2].open_files = 256; }, "open-files-low", Severity::kWarning, {2},
             "256 files"},
        Case{"Processes", [](Cluster& c) { c.facts[2].processes = 100; }, "processes-low", Severity::kWarning, {2},
             "100 threads"},
        Case{"Memory", [](Cluster& c) { c.facts[2].memory_available_mib = 100; }, "memory-low", Severity::kWarning, {2},
             "has 100 MiB of 256.0 GiB"},
        Case{"Shm", [](Cluster& c) { c.facts[2].disks[2].size_mib = c.facts[2].disks[2].free_mib = 64; }, "shm-small",
             Severity::kWarning, {2}, "/dev/shm has 64 MiB"},
        Case{"ShmIsFull", [](Cluster& c) { c.facts[2].disks[2].free_mib = 3; }, "shm-small", Severity::kWarning, {2},
             "3 MiB of 97.7 GiB left"},
        Case{"Disk", [](Cluster& c) { c.facts[2].disks[0].free_mib = 3; }, "disk-full", Severity::kWarning, {2},
             "/root has 3 MiB of"},
        Case{"TmpIsReadOnly", [](Cluster& c) { c.facts[2].disks[1].writable = false; }, "disk-full", Severity::kFailure, {2},
             "/tmp can't be written to"},
        Case{"DeadFileServer", [](Cluster& c) { c.facts[2].unknown["working directory"] = "/data: it did not answer"; },
             "facts-missing", Severity::kFailure, {2}, "is its file server down?"},
        Case{"PythonHangs",
             [](Cluster& c) {
               c.facts[2].versions.erase("python");
               c.facts[2].unknown["python"] = "it did not answer within 3.0 s";
             },
             "facts-missing", Severity::kNote, {2}, "could not be found out"},
        Case{"OwnName", [](Cluster&) {}, "host-name-loopback", Severity::kNote, {0, 1, 2, 3}, "127.0.1.1"},
        Case{"RdmaDown", [](Cluster& c) { c.facts[2].rdma[0].state = "DOWN"; }, "rdma-port-down", Severity::kWarning, {2},
             "mlx5_0 port 1 is down"},
        Case{"RdmaSlow", [](Cluster& c) { c.facts[2].rdma[0].rate_mbps = 100000; }, "rdma-slow", Severity::kWarning, {2},
             "100 Gb/s, on other hosts at 200 Gb/s"},
        Case{"Gid",
             [](Cluster& c) {
               for (auto& f : c.facts) f.rdma[0].link_layer = "Ethernet";
               c.facts[2].rdma[0].gid_rocev2 = 5;
             },
             "rdma-gid-differs", Severity::kNote, {0, 1, 2, 3}, "NCCL_IB_GID_INDEX"},
        Case{"SlowNic", [](Cluster& c) { c.facts[2].nics[0].speed_mbps = 10; }, "nic-speed", Severity::kWarning, {2},
             "eth0 runs at 10 Mb/s, the fastest host's at 25 Gb/s"},
        Case{"HalfDuplex", [](Cluster& c) { c.facts[2].nics[0].duplex = "half"; }, "nic-half-duplex", Severity::kWarning, {2},
             "eth0"},
        Case{"Bond",
             [](Cluster& c) {
               control::BondFacts bond;
               bond.name = "bond0";
               bond.slaves.resize(2);
               bond.slaves[0].name = "eth0";
               bond.slaves[0].up = true;
               bond.slaves[1].name = "eth1";
               c.facts[2].bonds.push_back(bond);
             },
             "bond-degraded", Severity::kWarning, {2}, "eth1 of bond0 is down"},
        Case{"RpFilter",
             [](Cluster& c) {
               for (auto& nic : c.facts[2].nics) nic.networks = {"10.0.0.0/24"};
               c.facts[2].nics[0].rp_filter = 1;
             },
             "rp-filter", Severity::kWarning, {2}, "eth0 and docker0 are both in 10.0.0.0/24"},
        Case{"Rules", [](Cluster& c) { c.facts[2].n_routing_rules = 5; }, "policy-routing", Severity::kNote, {2},
             "2 routing rules"},
        Case{"NcclConf",
             [](Cluster& c) {
               for (auto& f : c.facts) f.nccl_conf["/etc/nccl.conf"] = {"NCCL_BUFFSIZE=8388608"};
               c.facts[1].nccl_conf["/etc/nccl.conf"] = {"NCCL_IB_DISABLE=1"};
             },
             "nccl-conf-differs", Severity::kWarning, {1}, "its nccl.conf is not that of 3 other hosts"},
        Case{"NcclVariable", [](Cluster& c) { c.facts[1].variables["NCCL_SOCKET_IFNAME"] = "=bond7"; }, "nccl-settings",
             Severity::kWarning, {1}, "NCCL_SOCKET_IFNAME==bond7"},
        Case{"NcclVariableThatFits", [](Cluster& c) { c.facts[1].variables["NCCL_SOCKET_IFNAME"] = "eth"; }, "nccl-settings",
             Severity::kNote, {1}, "NCCL"},
        Case{"Proxy", [](Cluster& c) { c.question.environment["https_proxy"] = "http://me:secret@proxy:3128"; }, "proxy",
             Severity::kWarning, {}, "https_proxy=http://...@proxy:3128"},
        Case{"ProxyOfALogin", [](Cluster& c) { c.facts[1].variables["http_proxy"] = "http://p:3128"; }, "proxy",
             Severity::kNote, {1}, "http_proxy=http://p:3128"}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(HostFindings, TheVersionThatNvidiasImagesSetIsNoSetting) {
  Cluster cluster(2);
  for (auto& f : cluster.facts) f.variables["NCCL_VERSION"] = "2.28.3-1";
  EXPECT_EQ(find(cluster.findings(), "nccl-settings"), nullptr);
}

TEST(HostFindings, OneSlotNeedsNoLargeShm) {
  Cluster cluster(2, 1);
  for (auto& f : cluster.facts) f.disks[2].size_mib = f.disks[2].free_mib = 64;
  EXPECT_TRUE(serious(cluster).empty());
}

TEST(HostFindings, MemlockMattersToRdmaAlone) {
  Cluster cluster(2);
  for (auto& f : cluster.facts) f.memlock_bytes = 64 << 10;
  EXPECT_TRUE(serious(cluster).empty());
}

TEST(HostFindings, AStrayNvidiaSmiIsNoFailureWhereNobodyHasADriver) {
  Cluster cluster(2, 4);
  for (auto& f : cluster.facts) {
    f.has_nvidia_smi = true;
    f.nvidia_smi_ms = 20;
    f.nvidia_smi_problem = "NVIDIA-SMI has failed";
  }
  const auto findings = serious(cluster);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, "nvidia-smi-failed");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
}

TEST(HostFindings, WhatCouldNotBeReadIsNotSaidToBeAbsent) {
  Cluster c(4);
  for (auto& f : c.facts) {
    f.versions["cuda"] = "12.4";
    f.versions["nccl"] = "2.28.9";
    f.nccl_conf["/etc/nccl.conf"] = {"NCCL_BUFFSIZE=8388608"};
  }
  control::HostFacts& f = c.facts[2];
  for (const char* name : {"cuda", "nccl"}) f.versions.erase(name);
  f.nccl_conf.clear();
  const auto has = [&c](const std::string& code) {
    const auto findings = c.findings();
    return find(findings, code) != nullptr;
  };
  EXPECT_TRUE(has("versions-differ") && has("nccl-conf-differs"));
  for (const char* name : {"cuda", "nccl", "libdrun", "nccl.conf"}) f.unknown[name] = "not read in time";
  EXPECT_FALSE(has("versions-differ") || has("nccl-conf-differs"));
  EXPECT_TRUE(has("facts-missing"));
}

TEST(HostFindings, ASearchForNvidiaSmiThatWasLateProvesNothing) {
  for (const int n_gpus : {0, 8}) {
    Cluster c(3, 8);
    if (n_gpus > 0) c.add_gpus(n_gpus);
    control::HostFacts& f = c.facts[1];
    f.gpus.clear();
    f.has_nvidia_smi = false;
    f.nvidia_smi_ms = -1;
    f.nvidia_smi_late = true;
    f.nvidia_smi_problem = "looking for nvidia-smi did not end in time";
    const auto findings = c.findings();
    ASSERT_EQ(serious(c).size(), n_gpus > 0 ? 1u : 0u);
    const Finding* failed = find(findings, "nvidia-smi-failed");
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->severity, n_gpus > 0 ? Severity::kWarning : Severity::kNote);
  }
}

TEST(HostFindings, AHostWithoutGpusAmongThoseWithThem) {
  Cluster cluster(3, 2);
  cluster.add_gpus(2);
  cluster.facts[0].gpus.clear();
  cluster.facts[0].has_nvidia_smi = false;
  const auto findings = cluster.findings();
  const Finding* f = find(findings, "gpus-fewer");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->hosts, std::vector<int>{0});
  EXPECT_NE(f->text.find("has no GPU for 2 slots"), std::string::npos);
}

TEST(HostFindings, NarrowLinksOfAllGpusAreHowTheMachinesAreBuilt) {
  Cluster cluster(2, 2);
  cluster.add_gpus(2);
  for (auto& f : cluster.facts) {
    for (auto& gpu : f.gpus) gpu.pcie_width = 8;
  }
  EXPECT_TRUE(serious(cluster).empty());
}

TEST(HostFindings, TwoClocksThatDifferAreNobodysFault) {
  Cluster cluster(2);
  cluster.hosts[1].clock_offset_ms = 90000;
  const auto findings = cluster.findings();
  const Finding* f = find(findings, "clock-off");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->hosts, (std::vector<int>{0, 1}));
  EXPECT_EQ(f->details.size(), 2u);
  EXPECT_NE(f->text.find("90.1 s apart"), std::string::npos) << f->text;
}

TEST(HostFindings, ManyRanksNeedManyFiles) {
  Cluster cluster(64, 8);
  const auto findings = serious(cluster);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, "open-files-low");
  EXPECT_EQ(findings[0].hosts.size(), 64u);
  EXPECT_EQ(findings[0].subject, "all 64 hosts");
}

TEST(HostFindings, NoProxy) {
  const auto covers = [](const char* list) { return no_proxy_covers(list, "root@gpu1.lab", "10.0.0.7"); };
  for (const char* list : {"*", "10.0.0.7", "localhost, 10.0.0.0/24", "10.0.0.0/8,x"})
    EXPECT_TRUE(covers(list)) << list;
  for (const char* list : {"", "10.0.1.0/24", "gpu1.lab", "10.0.0.0/33", "10.0.0.0/x", ",,"})
    EXPECT_FALSE(covers(list)) << list;
  // Without an address only the name is compared.
  for (const char* list : {"gpu1.lab", ".lab", "lab", "*"})
    EXPECT_TRUE(no_proxy_covers(list, "root@gpu1.lab", "")) << list;
  for (const char* list : {"gpu2.lab", "b", "other"}) EXPECT_FALSE(no_proxy_covers(list, "gpu1.lab", "")) << list;
}

TEST(HostFindings, WorstFirst) {
  Cluster cluster(4);
  cluster.facts[0].versions["kernel"] = "5";
  cluster.facts[1].versions["glibc"] = "2.31";
  cluster.facts[2].disks[1].writable = false;
  const auto findings = cluster.findings();
  for (std::size_t i = 1; i < findings.size(); ++i) EXPECT_GE(findings[i - 1].severity, findings[i].severity);
  EXPECT_EQ(findings[0].code, "disk-full");
}

TEST(HostFindings, SubjectsOfSeveralHosts) {
  const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f"};
  EXPECT_EQ(hosts_text({1}, names), "b");
  EXPECT_EQ(hosts_text({0, 1}, names), "a and b");
  EXPECT_EQ(hosts_text({0, 1, 2}, names), "a, b and c");
  EXPECT_EQ(hosts_text({0, 1, 2, 3, 4}, names), "a, b and 3 other hosts");
  EXPECT_EQ(hosts_text({0, 1, 2, 3, 4, 5}, names), "all 6 hosts");
}

}  // namespace
}  // namespace drun::check
