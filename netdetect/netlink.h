// The kernel's tables of links, addresses and routes, by raw rtnetlink.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "netdetect/interface.h"

namespace drun::netdetect {

struct KernelLink {
  int index = 0;
  std::string name;
  unsigned flags = 0;  // IFF_*
  int mtu = 0;
  int master = 0;    // index; 0 = none
  std::string kind;  // IFLA_INFO_KIND: "veth", "bridge"; "" for hardware
  std::string mac;   // raw bytes; "" = none
};

struct LinkAddress {
  int link = 0;  // index
  Address address;
};

// Of the calling thread's network namespace. Each waits 2 s at most for the kernel.
Result<std::vector<KernelLink>> dump_links();
Result<std::vector<LinkAddress>> dump_addresses();

// By link index: the lowest metric of its unicast routes, IPv4 and IPv6. A best effort: very large tables are read in
// part, an error gives an empty map.
std::map<int, std::int64_t> route_metrics();

// Of IPv4, for the choice of a routing table; 3 is what the kernel begins with. -1 = not known.
int count_routing_rules();

}  // namespace drun::netdetect
