#include "agent/inventory.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "agent/gpu_nodes.h"
#include "agent/usable_cpus.h"
#include "base/fd.h"
#include "base/text.h"
#include "control/frames.h"

namespace drun::agent {

namespace {

std::string link_text(const std::string& path) {
  char buffer[4096];
  const ssize_t n = ::readlink(path.c_str(), buffer, sizeof buffer);
  return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

control::Hello take_inventory(const CgroupFiles& cgroup_files) {
  control::Hello hello;
  hello.version = control::kVersion;
  utsname names{};
  ::uname(&names);
  hello.host_name = names.nodename;
  hello.machine = names.machine;
  if (const auto id = read_file("/proc/sys/kernel/random/boot_id", 256)) {
    hello.boot_id = std::string(trim(std::string_view(*id).substr(0, id->find('\n'))));
  }
  hello.net_namespace = link_text("/proc/self/ns/net");
  hello.pid_namespace = link_text("/proc/self/ns/pid");
  hello.mnt_namespace = link_text("/proc/self/ns/mnt");
  hello.uid = ::getuid();
  hello.pid = ::getpid();
  hello.n_cpus = static_cast<std::uint32_t>(usable_cpus(cgroup_files));
  hello.n_gpus = static_cast<std::uint32_t>(count_gpus(""));
  hello.path = link_text("/proc/self/exe");
  if (auto interfaces = netdetect::list_interfaces()) hello.interfaces = std::move(*interfaces);
  return hello;
}

}  // namespace drun::agent
