// What is known of an interface's hardware beyond netlink: its speed, and whether RDMA sits on it.
#pragma once

#include <set>
#include <string>

#include "netdetect/netlink.h"

namespace drun::netdetect {

// Negotiated speed, by ethtool's ioctl: what sysfs shows as `speed`, but always of our own network namespace.
// 0 = unknown.
int link_speed_mbps(const std::string& name);
// "full", "half", or "": unknown.
std::string link_duplex(const std::string& name);

struct Device {
  bool known = false;     // false: nothing could be read, the rest means nothing
  bool hardware = false;  // PCI, virtio, USB and the like
  bool rdma = false;
};

// sysfs belongs to the network namespace that mounted it. In a namespace that was entered without mounting it anew it
// shows the interfaces of another one, so an entry counts only if index and hardware address are the link's.
class Sysfs {
 public:
  explicit Sysfs(std::string root = "/sys");
  Device device(const KernelLink& link) const;

 private:
  std::string root_;
  std::set<std::string> rdma_names_;  // interfaces that a GID of an RDMA device belongs to: also bonds and VLANs
};

}  // namespace drun::netdetect
