// Hardware properties of an interface that netlink does not report: speed, duplex, RDMA.
#pragma once

#include <set>
#include <string>

#include "netdetect/netlink.h"

namespace drun::netdetect {

// Negotiated speed in Mb/s, by ethtool's ioctl: the value of `speed` in sysfs, but always of our own network
// namespace.
// 0 = unknown.
int link_speed_mbps(const std::string& name);
// "full", "half", or "": unknown.
std::string link_duplex(const std::string& name);

struct Device {
  bool known = false;     // false: nothing could be read, the rest is not set
  bool hardware = false;  // PCI, virtio, USB and the like
  bool rdma = false;
};

// Reads devices from sysfs. sysfs belongs to the network namespace that mounted it: in a namespace that was entered
// without a new mount, it shows the interfaces of another namespace. So an entry counts only if its index and
// hardware address are the link's.
class Sysfs {
 public:
  explicit Sysfs(std::string root = "/sys");
  Device device(const KernelLink& link) const;

 private:
  std::string root_;
  std::set<std::string> rdma_names_;  // interfaces with a GID of an RDMA device, including bonds and VLANs
};

}  // namespace drun::netdetect
