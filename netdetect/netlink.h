// Reads the kernel's tables of links, addresses and routes by raw rtnetlink.
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

// Tables of the calling thread's network namespace. Wait at most 2 s for each reply of the kernel.
Result<std::vector<KernelLink>> dump_links();
Result<std::vector<LinkAddress>> dump_addresses();

// By link index: the lowest metric of the link's unicast routes, IPv4 and IPv6. Best effort: reads only a part of
// very large tables, and skips a family whose dump fails.
std::map<int, std::int64_t> route_metrics();

// Number of IPv4 policy routing rules, which select a routing table; the kernel starts with 3. -1 = unknown.
int count_routing_rules();

}  // namespace drun::netdetect
