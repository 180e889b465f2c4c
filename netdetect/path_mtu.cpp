#include "netdetect/path_mtu.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/udp.hpp>
#include <cstring>
#include <memory>
#include <utility>

#include "netdetect/mtu_datagram.h"

namespace drun::netdetect {
namespace {

using asio::ip::udp;

constexpr int kTries = 3;
constexpr std::chrono::milliseconds kPause{12};
constexpr int kIpv4Header = 20, kIpv6Header = 40, kUdpHeader = 8;
constexpr int kLargestPacket = 65535;

// MTU of the interface with this address; 0: not found.
int interface_mtu(const asio::ip::address& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return 0;
  int mtu = 0;
  for (const ifaddrs* one = all; one != nullptr && mtu == 0; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    bool same = false;
    if (family == AF_INET && address.is_v4()) {
      const auto bytes = address.to_v4().to_bytes();
      same = std::memcmp(&reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, bytes.data(), 4) == 0;
    } else if (family == AF_INET6 && address.is_v6()) {
      const auto bytes = address.to_v6().to_bytes();
      same = std::memcmp(&reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr, bytes.data(), 16) == 0;
    }
    if (!same) continue;
    const int fd = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int any = fd >= 0 ? fd : ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request = {};
    std::strncpy(request.ifr_name, one->ifa_name, IFNAMSIZ - 1);
    if (any >= 0 && ::ioctl(any, SIOCGIFMTU, &request) == 0) mtu = request.ifr_mtu;
    if (any >= 0) ::close(any);
  }
  ::freeifaddrs(all);
  return mtu;
}

asio::ip::address plain(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

class Impl final : public MtuSocket {
 public:
  Impl(const asio::any_io_executor& executor, std::string token, std::string session)
      : socket_(executor), token_(std::move(token)), session_(std::move(session)) {}

  boost::system::error_code open(const asio::ip::address& source) {
    boost::system::error_code ec;
    const udp::endpoint here(source, 0);
    socket_.open(here.protocol(), ec);
    if (!ec) socket_.bind(here, ec);
    if (!ec) socket_.non_blocking(true, ec);
    if (ec) return ec;
    const int fd = socket_.native_handle();
    if (source.is_v4()) {
      const int probe = IP_PMTUDISC_PROBE;
      ::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
    } else {
      const int probe = IPV6_PMTUDISC_PROBE, on = 1;
      ::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof probe);
      ::setsockopt(fd, IPPROTO_IPV6, IPV6_DONTFRAG, &on, sizeof on);
    }
    source_ = source;
    headers_ = kUdpHeader + (source.is_v4() ? kIpv4Header : kIpv6Header);
    port_ = socket_.local_endpoint(ec).port();
    return ec;
  }

  int port() const override { return port_; }
  int largest() const override { return largest_; }
  void close() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

  Task<void> send_all(std::string address, int port) override {
    boost::system::error_code ec;
    const auto to = asio::ip::make_address(address, ec);
    if (ec) co_return;
    const udp::endpoint peer(plain(to), static_cast<std::uint16_t>(port));
    const auto sizes = mtu_ladder(interface_mtu(source_));
    for (int i = 0; i < kTries && socket_.is_open(); ++i) {
      if (i > 0) co_await sleep_until(Clock::now() + kPause);
      for (const int size : sizes) {
        if (!socket_.is_open()) co_return;
        const std::string datagram = make_datagram(size, port);
        boost::system::error_code ignored;  // too large for the interface, or no room: another try follows
        socket_.send_to(asio::buffer(datagram), peer, 0, ignored);
      }
    }
  }

  Task<void> receive() override {
    std::string room(kLargestPacket, '\0');
    for (;;) {
      udp::endpoint from;
      const auto buffer = asio::buffer(room);
      const auto [ec, n] = co_await socket_.async_receive_from(buffer, from, as_result);
      if (!socket_.is_open()) co_return;
      if (ec == asio::error::operation_aborted) co_return;
      if (ec) continue;  // an ICMP message about a datagram that we sent
      note(std::string_view(room).substr(0, n));
    }
  }

 private:
  std::string make_datagram(int packet, int to_port) const {
    return mtu_datagram(token_, session_, to_port, static_cast<std::size_t>(packet - headers_));
  }
  void note(std::string_view datagram) {
    if (!is_mtu_datagram(datagram, token_, session_, port_)) return;
    largest_ = std::max(largest_, static_cast<int>(datagram.size()) + headers_);
  }

  udp::socket socket_;
  std::string token_, session_;
  asio::ip::address source_;
  int headers_ = 0, port_ = 0, largest_ = 0;
};

}  // namespace

Result<std::unique_ptr<MtuSocket>> MtuSocket::open(const asio::any_io_executor& executor, const std::string& source,
                                                   std::string token, std::string session) {
  boost::system::error_code ec;
  const auto address = asio::ip::make_address(source, ec);
  if (ec) return fail(Errc::kInternal, "not an address: " + source);
  auto out = std::make_unique<Impl>(executor, std::move(token), std::move(session));
  ec = out->open(plain(address));
  if (ec) return fail(asio_error(ec, "open a UDP port on " + source));
  return std::unique_ptr<MtuSocket>(std::move(out));
}

std::vector<int> mtu_ladder(int interface_mtu) {
  // Jumbo frames of Ethernet, of clouds, of switches that count headers; InfiniBand; Ethernet; PPPoE; VXLAN over IPv4
  // and IPv6; tunnels of clouds; WireGuard; the minimum MTU of IPv6; the minimum that IPv4 hosts must accept.
  std::vector<int> sizes = {9216, 9000, 8951, 8896, 8500, 4092, 2044, 1500, 1492,
                            1460, 1450, 1430, 1420, 1400, 1380, 1280, 576};
  const int most = interface_mtu > 0 ? std::min(interface_mtu, kLargestPacket) : 1500;
  std::erase_if(sizes, [most](int size) { return size >= most; });
  sizes.insert(sizes.begin(), most);
  return sizes;
}

int largest_tried(int from_mtu, int to_mtu) {
  if (from_mtu <= 0) return 0;
  const auto sizes = mtu_ladder(from_mtu);
  const auto fits = std::find_if(sizes.begin(), sizes.end(), [to_mtu](int size) { return size <= to_mtu; });
  return fits == sizes.end() ? 0 : *fits;
}

}  // namespace drun::netdetect
