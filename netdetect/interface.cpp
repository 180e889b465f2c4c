#include "netdetect/interface.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <map>
#include <string_view>
#include <utility>

#include "netdetect/device.h"
#include "netdetect/netlink.h"

namespace drun::netdetect {
namespace {

bool is_link_local(const std::string& bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() == 4) return byte(0) == 169 && byte(1) == 254;
  return bytes.size() == 16 && byte(0) == 0xfe && (byte(1) & 0xc0) == 0x80;
}

std::string kind_of(const KernelLink& link, const Device& device) {
  if (link.flags & IFF_LOOPBACK) return "loopback";
  if (link.kind.empty() || link.kind == "ipoib") return device.known && !device.hardware ? "virtual" : "physical";
  if (link.kind == "team") return "bond";
  if (link.kind == "netkit") return "veth";
  for (const std::string_view kind : {"bridge", "bond", "vlan", "veth", "wireguard"}) {
    if (link.kind == kind) return link.kind;
  }
  for (const std::string_view tunnel : {"tun", "ipip", "sit", "gre", "gretap", "ip6gre", "ip6gretap", "ip6tnl", "vti",
                                        "vti6", "xfrm", "vxlan", "geneve", "erspan", "ip6erspan", "ovpn"}) {
    if (link.kind == tunnel) return "tun";
  }
  return "virtual";
}

}  // namespace

std::string Address::text() const {
  char out[INET6_ADDRSTRLEN] = "";
  if (bytes.size() == 4) ::inet_ntop(AF_INET, bytes.data(), out, sizeof out);
  if (bytes.size() == 16) ::inet_ntop(AF_INET6, bytes.data(), out, sizeof out);
  return out;
}

Address parse_address(const std::string& text) {
  Address address;
  char bytes[16];
  if (text.find('\0') != std::string::npos) return address;
  if (::inet_pton(AF_INET, text.c_str(), bytes) == 1) {
    address.bytes.assign(bytes, 4);
    address.prefix_length = 32;
  } else if (::inet_pton(AF_INET6, text.c_str(), bytes) == 1) {
    address.family = 6;
    address.bytes.assign(bytes, 16);
    address.prefix_length = 128;
  }
  address.link_local = is_link_local(address.bytes);
  return address;
}

Result<std::vector<Interface>> list_interfaces() {
  const auto links = dump_links();
  if (!links) return fail(links.error());
  const auto addresses = dump_addresses();
  if (!addresses) return fail(addresses.error());
  const auto metrics = route_metrics();
  const Sysfs sysfs;

  std::map<int, std::string> names;
  for (const auto& link : *links) names[link.index] = link.name;

  std::vector<Interface> out;
  for (const auto& link : *links) {
    const Device device = sysfs.device(link);
    Interface nic;
    nic.name = link.name;
    nic.index = link.index;
    nic.mtu = link.mtu;
    nic.up = link.flags & IFF_UP;
    nic.running = link.flags & IFF_RUNNING;
    nic.loopback = link.flags & IFF_LOOPBACK;
    nic.kind = kind_of(link, device);
    // The speed that a veth or a tunnel reports is made up.
    if (nic.up && nic.kind != "veth" && nic.kind != "tun") nic.speed_mbps = link_speed_mbps(link.name);
    if (const auto master = names.find(link.master); master != names.end()) nic.master = master->second;
    nic.rdma = device.rdma;
    if (const auto metric = metrics.find(link.index); metric != metrics.end()) nic.route_metric = metric->second;
    for (const auto& item : *addresses) {
      if (item.link == link.index) nic.addresses.push_back(item.address);
    }
    out.push_back(std::move(nic));
  }
  return out;
}

}  // namespace drun::netdetect
