#include "netdetect/device.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace drun::netdetect {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileBytes = 4096;
constexpr std::size_t kMaxGids = 8192;  // files read in all; an adapter has 256

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ec;
  fs::directory_iterator it(folder, ec);
  while (!ec && it != fs::directory_iterator()) {
    out.push_back(it->path());
    it.increment(ec);
  }
  return out;
}

std::string read_word(const fs::path& path) {
  const auto text = read_file(path.string(), kFileBytes);
  if (!text) return "";
  std::string word = *text;
  while (!word.empty() && (word.back() == '\n' || word.back() == ' ')) word.pop_back();
  return word;
}

std::string mac_text(const std::string& mac) {
  std::string out;
  for (std::size_t i = 0; i < mac.size(); ++i) {
    if (i > 0) out += ':';
    out += hex(mac.substr(i, 1));
  }
  return out;
}

bool ask_ethtool(const std::string& name, ethtool_cmd& command) {
  if (name.size() >= IFNAMSIZ) return false;
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return false;
  command.cmd = ETHTOOL_GSET;
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_data = reinterpret_cast<char*>(&command);
  return ::ioctl(fd.get(), SIOCETHTOOL, &request) == 0;
}

}  // namespace

int link_speed_mbps(const std::string& name) {
  ethtool_cmd command{};
  if (!ask_ethtool(name, command)) return 0;
  const std::uint32_t speed = ethtool_cmd_speed(&command);
  const bool unknown = speed == 0xffff || speed > 0x7fffffffu;  // SPEED_UNKNOWN in 16 and in 32 bits
  return unknown ? 0 : static_cast<int>(speed);
}

std::string link_duplex(const std::string& name) {
  ethtool_cmd command{};
  if (!ask_ethtool(name, command)) return "";
  return command.duplex == DUPLEX_FULL ? "full" : command.duplex == DUPLEX_HALF ? "half" : "";
}

Sysfs::Sysfs(std::string root) : root_(std::move(root)) {
  std::size_t n_read = 0;
  for (const auto& device : entries(fs::path(root_) / "class/infiniband")) {
    for (const auto& port : entries(device / "ports")) {
      for (const auto& gid : entries(port / "gid_attrs/ndevs")) {
        if (++n_read > kMaxGids) return;
        std::string name = read_word(gid);
        if (!name.empty()) rdma_names_.insert(std::move(name));
      }
    }
  }
}

Device Sysfs::device(const KernelLink& link) const {
  Device out;
  const fs::path folder = fs::path(root_) / "class/net" / link.name;
  if (read_word(folder / "ifindex") != std::to_string(link.index)) return out;
  if (read_word(folder / "address") != mac_text(link.mac)) return out;
  out.known = true;
  std::error_code ec;
  out.hardware = fs::exists(folder / "device", ec);
  out.rdma = rdma_names_.count(link.name) > 0 || fs::exists(folder / "device/infiniband", ec);
  return out;
}

}  // namespace drun::netdetect
