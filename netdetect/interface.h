// A host's network interfaces, as its agent lists them. Linux only: netlink and sysfs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace drun::netdetect {

struct Address {
  int family = 4;     // 4 or 6
  std::string bytes;  // 4 or 16 bytes, network order
  int prefix_length = 0;
  bool link_local = false;  // 169.254/16, fe80::/10
  bool temporary = false;   // IPv6 privacy address
  bool deprecated = false;  // or tentative, or failed duplicate detection

  std::string text() const;  // "10.0.0.2", "fd00::2"
  friend bool operator==(const Address& a, const Address& b) { return a.bytes == b.bytes; }
};

struct Interface {
  std::string name;
  int index = 0;
  int mtu = 0;
  int speed_mbps = 0;    // as the driver reports it; 0 = unknown (veth and tun always: they make one up)
  bool up = false;       // IFF_UP
  bool running = false;  // IFF_RUNNING: carrier
  bool loopback = false;
  // "physical", "bridge", "bond", "vlan", "veth", "tun" (all tunnels), "wireguard", "virtual", "loopback"
  std::string kind;
  std::string master;              // the bond or bridge that it is a part of; "" = none
  bool rdma = false;               // an RDMA device sits on it
  std::int64_t route_metric = -1;  // of its best route to others; -1 = none
  std::vector<Address> addresses;
};

// Lists the interfaces of the calling process' network namespace. Works in a static binary; never resolves names.
Result<std::vector<Interface>> list_interfaces();

// Parses "10.0.0.2" or "fd00::2"; empty bytes if it is neither.
Address parse_address(const std::string& text);

void encode(ByteWriter& out, const std::vector<Interface>& interfaces);
std::vector<Interface> decode_interfaces(ByteReader& in);

}  // namespace drun::netdetect
