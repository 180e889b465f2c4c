#include "netdetect/netlink.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace drun::netdetect {
namespace {

constexpr int kReplySeconds = 2;
constexpr int kDumpAttempts = 8;              // a dump that a change interrupted is repeated
constexpr std::size_t kDumpBytes = 8u << 20;  // longer dumps are cut; only a routing table can be that large
constexpr std::size_t kReceiveBytes = 64u << 10;

struct Message {
  int type = 0;
  std::string payload;
};

template <typename T>
bool read_struct(std::string_view bytes, T& out) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&out, bytes.data(), sizeof(T));
  return true;
}

template <typename T>
std::string_view after_struct(std::string_view bytes) {
  return bytes.substr(std::min<std::size_t>(NLMSG_ALIGN(sizeof(T)), bytes.size()));
}

// Calls visit(type, value) for each attribute in `bytes`; stops at the first malformed one.
template <typename F>
void for_each_attribute(std::string_view bytes, F visit) {
  rtattr header{};
  while (read_struct(bytes, header)) {
    if (header.rta_len < sizeof(rtattr) || header.rta_len > bytes.size()) return;
    visit(header.rta_type & NLA_TYPE_MASK, bytes.substr(RTA_LENGTH(0), header.rta_len - RTA_LENGTH(0)));
    bytes.remove_prefix(std::min<std::size_t>(RTA_ALIGN(header.rta_len), bytes.size()));
  }
}

std::uint32_t read_u32(std::string_view value) {
  std::uint32_t v = 0;
  read_struct(value, v);
  return v;
}

std::string c_string(std::string_view value) { return std::string(value.substr(0, value.find('\0'))); }

enum class Step { kMore, kDone, kInterrupted };

// Splits one datagram into messages.
Result<Step> take_datagram(std::string_view bytes, std::vector<Message>& out, bool& interrupted) {
  nlmsghdr header{};
  while (read_struct(bytes, header)) {
    if (header.nlmsg_len < sizeof(nlmsghdr) || header.nlmsg_len > bytes.size()) break;
    const std::string_view payload = bytes.substr(NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN);
    if (header.nlmsg_flags & NLM_F_DUMP_INTR) interrupted = true;
    if (header.nlmsg_type == NLMSG_DONE) return interrupted ? Step::kInterrupted : Step::kDone;
    if (header.nlmsg_type == NLMSG_ERROR) {
      nlmsgerr error{};
      read_struct(payload, error);
      return fail(errno_error(error.error ? -error.error : EPROTO, "netlink dump"));
    }
    out.push_back({header.nlmsg_type, std::string(payload)});
    bytes.remove_prefix(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), bytes.size()));
  }
  return Step::kMore;
}

Result<Step> dump_once(int type, int family, std::vector<Message>& out) {
  const Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd) return fail(errno_error(errno, "netlink socket"));
  const timeval limit{kReplySeconds, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);

  struct {
    nlmsghdr header;
    rtgenmsg body;
    char padding[3];
  } request{};
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof(rtgenmsg));
  request.header.nlmsg_type = static_cast<std::uint16_t>(type);
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.header.nlmsg_seq = 1;
  request.body.rtgen_family = static_cast<unsigned char>(family);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(fd.get(), &request, sizeof request, 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0) {
    return fail(errno_error(errno, "netlink request"));
  }

  std::string buffer(kReceiveBytes, '\0');
  bool interrupted = false;
  std::size_t total = 0;
  while (total < kDumpBytes) {
    sockaddr_nl sender{};
    socklen_t sender_size = sizeof sender;
    const ssize_t n = ::recvfrom(fd.get(), buffer.data(), buffer.size(), MSG_TRUNC,
                                 reinterpret_cast<sockaddr*>(&sender), &sender_size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(errno_error(errno == EAGAIN ? ETIMEDOUT : errno, "netlink reply"));
    if (sender.nl_pid != 0) continue;  // not the kernel
    if (static_cast<std::size_t>(n) > buffer.size()) return fail(errno_error(EMSGSIZE, "netlink reply"));
    total += static_cast<std::size_t>(n);
    const auto step = take_datagram(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)), out, interrupted);
    if (!step || *step != Step::kMore) return step;
  }
  return Step::kDone;
}

Result<std::vector<Message>> dump(int type, int family) {
  std::vector<Message> messages;
  for (int i = 0; i < kDumpAttempts; ++i) {
    messages.clear();
    const auto step = dump_once(type, family, messages);
    if (!step) return fail(step.error());
    if (*step == Step::kDone) break;
  }
  return messages;  // after the last attempt: perhaps inconsistent, still the best there is
}

bool parse_link(const Message& message, KernelLink& link) {
  ifinfomsg info{};
  if (message.type != RTM_NEWLINK || !read_struct(message.payload, info)) return false;
  link.index = info.ifi_index;
  link.flags = info.ifi_flags;
  for_each_attribute(after_struct<ifinfomsg>(message.payload), [&](int type, std::string_view value) {
    if (type == IFLA_IFNAME) link.name = c_string(value);
    if (type == IFLA_MTU) link.mtu = static_cast<int>(read_u32(value));
    if (type == IFLA_MASTER) link.master = static_cast<int>(read_u32(value));
    if (type == IFLA_ADDRESS) link.mac = std::string(value);
    if (type != IFLA_LINKINFO) return;
    for_each_attribute(value, [&](int inner, std::string_view kind) {
      if (inner == IFLA_INFO_KIND) link.kind = c_string(kind);
    });
  });
  return !link.name.empty();
}

bool parse_link_address(const Message& message, LinkAddress& out) {
  ifaddrmsg info{};
  if (message.type != RTM_NEWADDR || !read_struct(message.payload, info)) return false;
  if (info.ifa_family != AF_INET && info.ifa_family != AF_INET6) return false;
  const bool v6 = info.ifa_family == AF_INET6;
  std::uint32_t flags = info.ifa_flags;
  std::string local;
  std::string peer;
  for_each_attribute(after_struct<ifaddrmsg>(message.payload), [&](int type, std::string_view value) {
    if (type == IFA_LOCAL) local = std::string(value);
    if (type == IFA_ADDRESS) peer = std::string(value);  // the same as local, unless point-to-point
    if (type == IFA_FLAGS) flags = read_u32(value);
  });
  const std::string& bytes = local.empty() ? peer : local;
  if (bytes.size() != (v6 ? 16u : 4u)) return false;
  out.link = static_cast<int>(info.ifa_index);
  out.address.family = v6 ? 6 : 4;
  out.address.bytes = bytes;
  out.address.prefix_length = info.ifa_prefixlen;
  out.address.link_local = info.ifa_scope == RT_SCOPE_LINK || parse_address(out.address.text()).link_local;
  out.address.temporary = v6 && (flags & IFA_F_TEMPORARY);  // for IPv4 the same bit means "secondary"
  out.address.deprecated = flags & (IFA_F_DEPRECATED | IFA_F_TENTATIVE | IFA_F_DADFAILED);
  return true;
}

void note_metric(std::map<int, std::int64_t>& best, int link, std::int64_t metric) {
  if (link <= 0) return;
  const auto [it, added] = best.emplace(link, metric);
  if (!added) it->second = std::min(it->second, metric);
}

void parse_route(const Message& message, std::map<int, std::int64_t>& best) {
  rtmsg info{};
  if (message.type != RTM_NEWROUTE || !read_struct(message.payload, info)) return;
  if (info.rtm_type != RTN_UNICAST || info.rtm_table == RT_TABLE_LOCAL || (info.rtm_flags & RTM_F_CLONED)) return;
  std::int64_t metric = 0;
  int link = 0;
  bool link_local = false;
  std::string_view next_hops;
  for_each_attribute(after_struct<rtmsg>(message.payload), [&](int type, std::string_view value) {
    if (type == RTA_PRIORITY) metric = read_u32(value);
    if (type == RTA_OIF) link = static_cast<int>(read_u32(value));
    if (type == RTA_MULTIPATH) next_hops = value;
    if (type == RTA_DST && value.size() == 16) {  // every interface has fe80::/64
      link_local = value[0] == '\xfe' && (static_cast<unsigned char>(value[1]) & 0xc0) == 0x80;
    }
  });
  if (link_local) return;
  note_metric(best, link, metric);
  rtnexthop hop{};
  while (read_struct(next_hops, hop) && hop.rtnh_len >= sizeof(rtnexthop) && hop.rtnh_len <= next_hops.size()) {
    note_metric(best, hop.rtnh_ifindex, metric);
    next_hops.remove_prefix(std::min<std::size_t>(RTNH_ALIGN(hop.rtnh_len), next_hops.size()));
  }
}

}  // namespace

Result<std::vector<KernelLink>> dump_links() {
  const auto messages = dump(RTM_GETLINK, AF_UNSPEC);
  if (!messages) return fail(messages.error());
  std::vector<KernelLink> links;
  for (const auto& message : *messages) {
    KernelLink link;
    if (parse_link(message, link)) links.push_back(std::move(link));
  }
  return links;
}

Result<std::vector<LinkAddress>> dump_addresses() {
  const auto messages = dump(RTM_GETADDR, AF_UNSPEC);
  if (!messages) return fail(messages.error());
  std::vector<LinkAddress> addresses;
  for (const auto& message : *messages) {
    LinkAddress address;
    if (parse_link_address(message, address)) addresses.push_back(std::move(address));
  }
  return addresses;
}

std::map<int, std::int64_t> route_metrics() {
  std::map<int, std::int64_t> best;
  for (const int family : {AF_INET, AF_INET6}) {
    const auto messages = dump(RTM_GETROUTE, family);
    if (!messages) continue;
    for (const auto& message : *messages) parse_route(message, best);
  }
  return best;
}

int count_routing_rules() {
  const auto messages = dump(RTM_GETRULE, AF_INET);
  return messages ? static_cast<int>(messages->size()) : -1;
}

}  // namespace drun::netdetect
