// Facts about a host, for `drun check`: gathered by its agent, compared by host_findings.cpp. Pure data.
// Names of sizes and times end in the unit; -1 is "not known" unless stated otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace drun::control {

struct GpuProcess {
  std::int32_t pid = 0;
  std::string name;
  std::int64_t used_mib = -1;
};

// As nvidia-smi reports it.
struct GpuFacts {
  std::int32_t index = 0;
  std::string name, uuid;
  std::int64_t memory_total_mib = -1, memory_used_mib = -1;  // used: by other processes, because no job runs
  std::int64_t ecc_uncorrected = -1;                         // since the driver was loaded
  bool remap_pending = false, remap_failed = false;          // rows of its memory
  std::uint64_t throttle_reasons = 0;                        // NVML's bits
  std::int32_t pcie_width = -1, pcie_width_max = -1;         // lanes
  std::vector<GpuProcess> processes;
};

// A GPU error in the kernel's log.
struct XidFacts {
  std::int32_t number = 0;
  std::string device;      // "PCI:0000:3b:00"
  std::int64_t age_s = 0;  // at the time the facts were gathered
  std::string text;
};

// One port of an RDMA device.
struct RdmaPort {
  std::string device;  // "mlx5_0"
  std::int32_t port = 1;
  std::string state;  // "ACTIVE"
  std::int64_t rate_mbps = -1;
  std::string link_layer;        // "InfiniBand", "Ethernet"
  std::string interface;         // the network interface on it; "" = none
  std::int32_t gid_rocev2 = -1;  // index of its first RoCE v2 GID with an IPv4 address
};

struct NicFacts {
  std::string name;
  bool up = false;                    // and has carrier
  std::int32_t speed_mbps = 0;        // 0 = not known
  std::string duplex;                 // "full", "half"; "" = not known
  std::int32_t rp_filter = 0;         // in force: 0 off, 1 strict, 2 loose
  std::vector<std::string> networks;  // IPv4, "10.0.0.0/24"
};

struct BondSlave {
  std::string name;
  bool up = false;
  std::int32_t speed_mbps = 0;  // 0 = not known
};
struct BondFacts {
  std::string name, mode;
  std::vector<BondSlave> slaves;
};

// A file system that matters: the working directory's, /tmp, /dev/shm.
struct DiskFacts {
  std::string path;
  std::int64_t size_mib = -1, free_mib = -1;  // free: for users other than root
  bool writable = false;
};

struct HostFacts {
  // Versions that hosts should have in common, by name: "kernel", "glibc", "driver", "cuda", "nccl", "libdrun",
  // "python", "torch", "command", "script", "ofed", "firmware BOARD", "governor". A missing name was not found on the
  // host, or is in `unknown`. "command" and "script" are content hashes.
  std::map<std::string, std::string> versions;
  std::map<std::string, std::string> unknown;  // name -> why it could not be found out

  std::string command;          // the file that would be executed; "" = not requested, or not found
  std::string command_problem;  // not empty: why it can't be executed

  // Time of the reply, both clocks read at the same moment.
  std::int64_t monotonic_ns = 0, realtime_ns = 0;

  std::string cpu;  // model
  std::int32_t n_cpus = 0;
  std::int64_t memory_total_mib = -1, memory_available_mib = -1;
  std::vector<DiskFacts> disks;

  // The login's soft limits; -1 = not known, kUnlimited = no limit.
  static constexpr std::int64_t kUnlimited = INT64_MAX;
  std::int64_t memlock_bytes = -1, open_files = -1, processes = -1;

  bool has_nvidia_smi = false;
  std::int64_t nvidia_smi_ms = -1;  // run time; if it did not answer, the time waited
  bool nvidia_smi_late = false;     // it did not answer in time
  std::string nvidia_smi_problem;   // not empty: no answer, or not a list of GPUs
  std::vector<GpuFacts> gpus;
  bool kernel_log_readable = false;
  std::vector<XidFacts> xids;

  std::vector<RdmaPort> rdma;
  std::vector<NicFacts> nics;  // without loopback
  std::vector<BondFacts> bonds;
  std::int32_t n_routing_rules = -1;  // IPv4; the kernel starts with 3

  std::map<std::string, std::vector<std::string>> nccl_conf;  // file -> its lines, without comments
  std::map<std::string, std::string> variables;               // requested ones of the login's environment
  std::string path;                                           // the login's PATH
  std::string host_name;
  std::vector<std::string> own_addresses;  // to which the host resolves its own name
};

}  // namespace drun::control
