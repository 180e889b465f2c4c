// What files and programs say about a host, taken apart. Pure; nothing where the text is not what was expected.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/host_facts.h"

namespace drun::agent {

// The first word that is a version: "535.104.05", of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05 ...".
std::string first_version(std::string_view text);
// Of /usr/local/cuda/version.json, "12.2.1".
std::string cuda_version(std::string_view json);
// "name version" lines, as the script for python3 prints them.
std::map<std::string, std::string> parse_versions(std::string_view text);
// KiB as /proc/meminfo has them, in MiB; -1 = there is no such line.
std::int64_t meminfo_mib(std::string_view meminfo, std::string_view name);
std::string cpu_model(std::string_view cpuinfo);

// `nvidia-smi --query-gpu=kGpuFields --format=csv,noheader,nounits`. One more column may follow: the throttle reasons.
inline constexpr const char* kGpuFields =
    "index,uuid,name,memory.total,memory.used,pcie.link.width.current,pcie.link.width.max,"
    "ecc.errors.uncorrected.volatile.total";
// Nothing if any line is not a GPU's: then it is an error message.
std::optional<std::vector<control::GpuFacts>> parse_gpus(std::string_view csv);
// `--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory`: to the GPUs that they are on.
inline constexpr const char* kAppFields = "gpu_uuid,pid,process_name,used_gpu_memory";
void add_gpu_processes(std::string_view csv, std::vector<control::GpuFacts>& gpus);
// `--query-remapped-rows=gpu_uuid,remapped_rows.pending,remapped_rows.failure`.
inline constexpr const char* kRemapFields = "gpu_uuid,remapped_rows.pending,remapped_rows.failure";
void add_row_remaps(std::string_view csv, std::vector<control::GpuFacts>& gpus);

// Of records of /dev/kmsg, "6,1234,5678901234,-;NVRM: Xid (PCI:0000:3b:00): 79, ..."; `now_us`: CLOCK_MONOTONIC. The
// latest kMostXids.
inline constexpr std::size_t kMostXids = 64;
void add_xids(std::string_view records, std::int64_t now_us, std::vector<control::XidFacts>& xids);

// /proc/net/bonding/NAME.
control::BondFacts parse_bond(const std::string& name, std::string_view text);
// `getent ahosts NAME`: addresses, each once.
std::vector<std::string> parse_ahosts(std::string_view text);
// Of an nccl.conf: without comments and empty lines; bounded.
std::vector<std::string> conf_lines(std::string_view text);
// "libnccl.so.2.18.3" -> "2.18.3".
std::string library_version(std::string_view file_name, std::string_view stem);
// "block size, blocks, free blocks" and "writable", as `stat -f` and a test print them. -1: there is no such folder.
control::DiskFacts parse_file_system(const std::string& path, std::string_view text);
// sysfs' rate of an RDMA port: "200 Gb/sec (4X HDR)" -> 200000.
std::int64_t rdma_rate_mbps(std::string_view rate);
// sysfs' GID is an IPv4 address: "0000:0000:0000:0000:0000:ffff:0a00:0001".
bool gid_is_ipv4(std::string_view gid);

}  // namespace drun::agent
