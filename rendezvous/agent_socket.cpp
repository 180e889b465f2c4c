#include "rendezvous/agent_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "base/fd.h"
#include "rendezvous/blocking.h"

namespace drun::rendezvous {
namespace {

constexpr std::size_t kMaxHandout = 64u << 10;

// A path too long for sun_path goes through a descriptor of its directory, which must stay open until the connect.
struct UnixAddress {
  sockaddr_un address{};
  Fd directory;
};

Result<UnixAddress> unix_address(const std::string& path) {
  UnixAddress out;
  out.address.sun_family = AF_UNIX;
  std::string name = path;
  if (name.size() >= sizeof out.address.sun_path) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    out.directory.reset(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!out.directory) return fail(errno_error(errno, directory));
    name = "/proc/self/fd/" + std::to_string(out.directory.get()) + "/" + path.substr(slash + 1);
  }
  if (path.empty() || name.size() >= sizeof out.address.sun_path || name.find('\0') != std::string::npos) {
    return fail(Errc::kIo, path, "not usable as the path of a socket");
  }
  std::memcpy(out.address.sun_path, name.data(), name.size());
  return out;
}

// Receives `n_bytes` bytes, and the descriptor if one arrives with the first of them.
Result<std::string> receive_with_descriptor(int fd, std::size_t n_bytes, BlockingDeadline& deadline, Fd& descriptor) {
  if (auto ready = wait_for(fd, POLLIN, deadline); !ready) return fail(std::move(ready.error()));
  std::string bytes(n_bytes, '\0');
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  do n = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0) return fail(errno_error(errno, "recvmsg"));
  if (n == 0) return fail(Errc::kClosed, "closed");
  if ((message.msg_flags & MSG_CTRUNC) != 0) return fail(errno_error(EMFILE, "a descriptor of the agent's"));
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int))) continue;
    int received = -1;
    std::memcpy(&received, CMSG_DATA(c), sizeof received);
    descriptor.reset(received);
  }
  bytes.resize(static_cast<std::size_t>(n));
  if (bytes.size() == n_bytes) return bytes;
  auto rest = receive_exactly(fd, n_bytes - bytes.size(), deadline);
  if (!rest) return rest;
  return bytes + *rest;
}

}  // namespace

std::size_t send_with_descriptor(int socket, std::string_view bytes, int descriptor) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
  const ssize_t n = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::string encode_handout(const Handout& handout) {
  ByteWriter out;
  out.raw({reinterpret_cast<const char*>(handout.key.data()), handout.key.size()});
  out.str(handout.job_id);
  out.str(handout.rendezvous_address);
  out.u16(static_cast<std::uint16_t>(handout.rendezvous_port));
  out.str(handout.data_address);
  return out.take();
}

Result<Handout> decode_handout(std::string_view bytes) {
  ByteReader in(bytes);
  Handout out;
  const std::string_view key = in.raw(kKeyBytes);
  std::copy(key.begin(), key.end(), out.key.begin());
  out.job_id = in.str();
  out.rendezvous_address = in.str();
  out.rendezvous_port = in.u16();
  out.data_address = in.str();
  if (!in.done()) return fail(Errc::kProtocol, "the agent's handout is malformed");
  return out;
}

Result<Fetched> fetch_handout(const std::string& socket_path, std::chrono::milliseconds timeout) {
  BlockingDeadline deadline = std::chrono::steady_clock::now() + timeout;
  const auto failed = [&](Error e) {
    return fail(std::move(e).with_context("while asking the agent at " + socket_path));
  };
  const auto address = unix_address(socket_path);
  if (!address) return failed(address.error());
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return failed(errno_error(errno, "socket"));
  const auto* target = reinterpret_cast<const sockaddr*>(&address->address);
  while (::connect(fd.get(), target, sizeof address->address) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return failed(errno_error(errno, "connect"));
    // The backlog is full, and a Unix socket can't be polled for room in it.
    if (std::chrono::steady_clock::now() >= deadline) return failed(Error(Errc::kTimeout, "the agent is too busy"));
    ::poll(nullptr, 0, 5);
  }
  // $DRUN_AGENT may be that of another user, by `sudo -E`.
  const auto server = peer_of(fd.get());
  if (!server) return failed(server.error());
  if (server->uid != ::geteuid()) {
    return failed(Error(Errc::kAuth, "it belongs to user " + std::to_string(server->uid) + ", not to this process's " +
                                         std::to_string(::geteuid())));
  }
  if (auto sent = send_all(fd.get(), kWorkerHello, deadline); !sent) return failed(sent.error());
  Fetched out;
  const auto prefix = receive_with_descriptor(fd.get(), 4, deadline, out.memory);
  if (!prefix) {
    if (prefix.error().code != Errc::kClosed) return failed(prefix.error());
    return failed(Error(Errc::kAuth, "the agent refused: it serves its own user and its own version only"));
  }
  const std::size_t n_bytes = ByteReader(*prefix).u32();
  if (n_bytes > kMaxHandout) return failed(Error(Errc::kProtocol, "the agent's handout is too large"));
  if (n_bytes == 0) return failed(Error(Errc::kProtocol, "the agent's handout is malformed"));
  const auto body = receive_with_descriptor(fd.get(), n_bytes, deadline, out.recorder);
  if (!body) return failed(body.error());
  auto handout = decode_handout(*body);
  if (!handout) return failed(handout.error());
  out.handout = std::move(*handout);
  return out;
}

Result<SocketPeer> peer_of(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return fail(errno_error(errno, "SO_PEERCRED"));
  return SocketPeer{peer.pid, peer.uid, peer.gid};
}

}  // namespace drun::rendezvous
