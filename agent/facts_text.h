// Parsers for files and program output that describe a host. Pure; unexpected text gives an empty result.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/host_facts.h"

namespace drun::agent {

// The first word that is a version: "535.104.05" in "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05 ...".
std::string first_version(std::string_view text);
// The version in /usr/local/cuda/version.json, "12.2.1".
std::string cuda_version(std::string_view json);
// Parses "name version" lines, as the python3 script prints them.
std::map<std::string, std::string> parse_versions(std::string_view text);
// A value of /proc/meminfo, converted from KiB to MiB; -1 if there is no such line.
std::int64_t meminfo_mib(std::string_view meminfo, std::string_view name);
std::string cpu_model(std::string_view cpuinfo);

// `nvidia-smi --query-gpu=kGpuFields --format=csv,noheader,nounits`. One more column may follow: the throttle reasons.
inline constexpr const char* kGpuFields =
    "index,uuid,name,memory.total,memory.used,pcie.link.width.current,pcie.link.width.max,"
    "ecc.errors.uncorrected.volatile.total";
// Nothing if any line does not describe a GPU: the text is an error message then.
std::optional<std::vector<control::GpuFacts>> parse_gpus(std::string_view csv);
// Adds processes to their GPUs, from `--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory`.
inline constexpr const char* kAppFields = "gpu_uuid,pid,process_name,used_gpu_memory";
void add_gpu_processes(std::string_view csv, std::vector<control::GpuFacts>& gpus);
// Adds remapped rows to their GPUs, from
// `--query-remapped-rows=gpu_uuid,remapped_rows.pending,remapped_rows.failure`.
inline constexpr const char* kRemapFields = "gpu_uuid,remapped_rows.pending,remapped_rows.failure";
void add_row_remaps(std::string_view csv, std::vector<control::GpuFacts>& gpus);

// Adds the Xid errors in records of /dev/kmsg, "6,1234,5678901234,-;NVRM: Xid (PCI:0000:3b:00): 79, ...". `now_us`:
// CLOCK_MONOTONIC. Keeps the latest kMaxXids.
inline constexpr std::size_t kMaxXids = 64;
void add_xids(std::string_view records, std::int64_t now_us, std::vector<control::XidFacts>& xids);

// Parses /proc/net/bonding/NAME.
control::BondFacts parse_bond(const std::string& name, std::string_view text);
// The addresses in the output of `getent ahosts NAME`, without duplicates.
std::vector<std::string> parse_ahosts(std::string_view text);
// The lines of an nccl.conf without comments and empty lines; bounded.
std::vector<std::string> conf_lines(std::string_view text);
// "libnccl.so.2.18.3" -> "2.18.3".
std::string library_version(std::string_view file_name, std::string_view stem);
// Parses "BLOCK_SIZE BLOCKS FREE_BLOCKS" and "writable", as printed by `stat -f` and a test. Sizes are -1 if there is
// no such directory.
control::DiskFacts parse_file_system(const std::string& path, std::string_view text);
// Parses the rate of an RDMA port in sysfs into Mb/s: "200 Gb/sec (4X HDR)" -> 200000. -1 if malformed.
std::int64_t rdma_rate_mbps(std::string_view rate);
// True if a GID in sysfs is an IPv4 address: "0000:0000:0000:0000:0000:ffff:0a00:0001".
bool gid_is_ipv4(std::string_view gid);

}  // namespace drun::agent
