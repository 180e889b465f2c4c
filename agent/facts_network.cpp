// The facts about network interfaces and RDMA devices.
#include <algorithm>
#include <filesystem>

#include "agent/facts.h"
#include "agent/facts_text.h"
#include "base/fd.h"
#include "base/text.h"
#include "netdetect/device.h"
#include "netdetect/interface.h"
#include "netdetect/netlink.h"

namespace drun::agent {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxNics = 128, kMaxPorts = 64, kMaxNetworks = 16;
constexpr int kMaxGids = 64;  // read per port; those of RoCE v2 come early

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code ec;
  fs::directory_iterator it(folder, ec);
  while (!ec && it != fs::directory_iterator() && out.size() < kMaxNics) {
    out.push_back(it->path().filename().string());
    it.increment(ec);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string word_of(const std::string& path) {
  const std::string text = read_file(path, 4096).value_or("");
  return std::string(trim(std::string_view(text).substr(0, text.find('\n'))));
}

std::string network_of(const netdetect::Address& address) {
  netdetect::Address network = address;
  for (std::size_t i = 0; i < network.bytes.size(); ++i) {
    const int bits = std::clamp(address.prefix_length - static_cast<int>(i) * 8, 0, 8);
    network.bytes[i] = static_cast<char>(static_cast<unsigned char>(network.bytes[i]) & (0xff00u >> bits));
  }
  return network.text() + "/" + std::to_string(address.prefix_length);
}

control::RdmaPort read_port(const std::string& folder, const std::string& device, int port) {
  control::RdmaPort out;
  out.device = device;
  out.port = port;
  const std::string at = folder + "/" + device + "/ports/" + std::to_string(port);
  const std::string state = word_of(at + "/state");  // "4: ACTIVE"
  const auto colon = state.find(": ");
  out.state = colon == std::string::npos ? state : state.substr(colon + 2);
  out.rate_mbps = rdma_rate_mbps(word_of(at + "/rate"));
  out.link_layer = word_of(at + "/link_layer");
  for (int i = 0; i < kMaxGids && out.gid_rocev2 < 0; ++i) {
    const std::string n = std::to_string(i);
    if (word_of(at + "/gid_attrs/types/" + n) == "RoCE v2" && gid_is_ipv4(word_of(at + "/gids/" + n))) {
      out.gid_rocev2 = i;
    }
  }
  out.interface = word_of(at + "/gid_attrs/ndevs/0");
  if (out.interface.empty()) {
    const auto nets = names_in(folder + "/" + device + "/device/net");
    if (!nets.empty()) out.interface = nets.front();
  }
  return out;
}

}  // namespace

void read_network(const FactsRoot& root, control::HostFacts& facts) {
  const std::string rdma = root.at("/sys/class/infiniband");
  for (const auto& device : names_in(rdma)) {
    for (const auto& port : names_in(rdma + "/" + device + "/ports")) {
      const auto number = parse_number(port);
      if (number && facts.rdma.size() < kMaxPorts) {
        facts.rdma.push_back(read_port(rdma, device, static_cast<int>(*number)));
      }
    }
  }

  const std::string settings = root.at("/proc/sys/net/ipv4/conf/");
  const auto rp_filter = [&](const std::string& name) {
    return static_cast<std::int32_t>(parse_number(word_of(settings + name + "/rp_filter")).value_or(0));
  };
  const std::int32_t of_all = rp_filter("all");
  if (const auto interfaces = netdetect::list_interfaces()) {
    for (const auto& i : *interfaces) {
      if (i.loopback || facts.nics.size() >= kMaxNics) continue;
      control::NicFacts nic;
      nic.name = i.name;
      nic.up = i.up && i.running;
      nic.speed_mbps = i.speed_mbps;
      // A veth or tun reports a made-up duplex mode.
      if (i.kind == "physical" || i.kind == "bond") nic.duplex = netdetect::link_duplex(i.name);
      nic.rp_filter = std::max(of_all, rp_filter(i.name));  // the larger one is in force
      for (const auto& a : i.addresses) {
        if (a.family == 4 && nic.networks.size() < kMaxNetworks) nic.networks.push_back(network_of(a));
      }
      facts.nics.push_back(std::move(nic));
    }
  }
  const std::string bonding = root.at("/proc/net/bonding");
  for (const auto& name : names_in(bonding)) {
    facts.bonds.push_back(parse_bond(name, read_file(bonding + "/" + name, 64u << 10).value_or("")));
  }
  facts.n_routing_rules = netdetect::count_routing_rules();
}

}  // namespace drun::agent
