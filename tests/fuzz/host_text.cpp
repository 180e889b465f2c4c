// Text that describes a host, from /proc, /sys and programs: what a broken file or a hostile worker makes of it.
#include <algorithm>

#include "agent/cpu_topology.h"
#include "agent/facts_text.h"
#include "agent/interpreter.h"
#include "agent/loaded_runtime.h"
#include "base/process_stat.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace agent;

void gpus_of(std::string_view text) {
  auto gpus = parse_gpus(text.substr(0, text.find('\0')));
  if (!gpus) return;
  expect(gpus->size() <= 64, "the GPUs of a host are few");
  const std::string_view rest = text.substr(std::min(text.find('\0'), text.size()));
  add_gpu_processes(rest, *gpus);
  add_row_remaps(rest, *gpus);
}

void run(std::string_view bytes) {
  Input in(bytes);
  const std::size_t kind = in.below(8);
  const std::string_view text = in.rest();
  switch (kind) {
    case 0:
      return gpus_of(text);
    case 1: {
      std::vector<control::XidFacts> xids;
      add_xids(text, 1'000'000'000, xids);
      expect(xids.size() <= kMaxXids, "the errors of a log are few");
      for (const auto& xid : xids) expect(xid.age_s >= 0, "no error is in the future");
      return;
    }
    case 2:
      (void)parse_bond("bond0", text);
      (void)parse_versions(text);
      (void)conf_lines(text);
      return;
    case 3: {
      const auto stat = parse_stat(text);
      expect(!stat || stat->name.size() <= text.size(), "a name is a part of its line");
      return;
    }
    case 4: {
      const auto cpus = parse_cpu_list(text);
      for (std::size_t i = 0; i < cpus.size(); ++i) {
        expect(cpus[i] >= 0 && (i == 0 || cpus[i - 1] <= cpus[i]), "CPUs are sorted numbers");
      }
      return;
    }
    case 5: {
      const auto runtime = loaded_runtime(text);
      (void)alone_warning(runtime, "python3", text, true);
      (void)interpreter_in(text);
      return;
    }
    case 6:
      (void)first_version(text);
      (void)cuda_version(text);
      (void)library_version(text, "libnccl.so.");
      (void)meminfo_mib(text, "MemTotal");
      (void)cpu_model(text);
      return;
    default:
      expect(parse_ahosts(text).size() <= 32, "the addresses of a host are few");
      (void)parse_file_system("/tmp", text);
      (void)rdma_rate_mbps(text);
      (void)gid_is_ipv4(text);
  }
}

std::vector<std::string> seeds() {
  return {
      Script()
          .byte(0)
          .raw("0, GPU-1, NVIDIA A100, 40960, 10, 16, 16, [N/A], 0x0000000000000001\n")
          .byte(0)
          .raw("GPU-1, 812, python3, train.py, 300\nGPU-1, Yes, No\n"),
      Script().byte(1).raw("6,1234,5678901,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=812, GPU has fallen off the bus.\n"),
      Script().byte(2).raw("Bonding Mode: IEEE 802.3ad\nSlave Interface: eth0\nMII Status: up\nSpeed: 25000 Mbps\n"),
      Script().byte(2).raw("torch 2.4.0\n# comment\nNCCL_DEBUG=INFO\n"),
      Script().byte(3).raw(
          "812 (a (b) c) S 1 812 812 0 -1 4194560 100 0 0 0 7 8 0 0 20 0 1 0 4711 1000 10 18446744073709551615"),
      Script().byte(4).raw("0-3,8\n"),
      Script().byte(5).raw(
          "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libmpi.so.40\n7f02-7f03 r-xp 0 08:01 1 /usr/lib/libdrun.so.0\n"),
      Script().byte(5).raw("#!/usr/bin/env python3\r\n"),
      Script().byte(6).raw(
          "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat\nMemTotal: 1000 kB\nmodel name : X\n"),
      Script().byte(6).raw(R"({"cuda": {"name": "CUDA SDK", "version": "12.2.1"}})"),
      Script().byte(6).raw("libnccl.so.2.18.3"),
      Script().byte(7).raw("10.0.0.1 STREAM node1\nfd00::1 DGRAM\n"),
      Script().byte(7).raw("4096 1000 500\nwritable\n"),
      Script().byte(7).raw("200 Gb/sec (4X HDR)"),
      Script().byte(7).raw("0000:0000:0000:0000:0000:ffff:0a00:0001"),
  };
}

const Target kTarget("host_text", run, seeds);

}  // namespace
}  // namespace drun::fuzz
