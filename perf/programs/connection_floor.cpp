// The kernel's part of a real Horovod's start: `connection_floor RANKS PER_HOST` makes as many requests and replies as
// horovod_start, of the same lengths, over loopback, by a client and a server that look at nothing. Prints the
// milliseconds, the number of requests, 0, and the milliseconds of the server's processor time.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "perf/programs/processors.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 4096, kEvents = 128;
constexpr std::size_t kRequestBytes = 150, kSmallReply = 80, kAddressBytes = 136;

void check(bool is_good, const char* what) {
  if (is_good) return;
  std::perror(what);
  std::exit(1);
}

void watch(int epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  check(::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
}

// The lengths of all replies, mixed as they come: 2 of a rank's addresses for each pair, and half a name.
std::vector<std::size_t> replies_of(int n_ranks, int per_host) {
  std::vector<std::size_t> out;
  const auto add = [&](int n_scopes, int n) {
    const int n_large = 2 * n * (n - 1), n_all = (5 * n * n + n) / 2;
    for (int i = 0; i < n_scopes * n_all; ++i) {
      const bool is_large = i % n_all * n_large / n_all != (i % n_all + 1) * n_large / n_all;
      out.push_back(kSmallReply + (is_large ? kAddressBytes * static_cast<std::size_t>(n - 1) : 0));
    }
  };
  const int n_hosts = n_ranks / per_host;
  for (int start = 0; start < 2; ++start) {
    add(1, n_ranks);
    add(n_hosts, per_host);
    add(per_host, n_hosts);
  }
  return out;
}

[[noreturn]] void serve(int listener, const std::vector<std::size_t>& replies) {
  const int epoll = ::epoll_create1(0);
  watch(epoll, listener);
  const std::string bytes(kSmallReply + kAddressBytes * replies.size(), 'x');
  for (std::size_t n = 0;;) {
    epoll_event events[kEvents];
    ::epoll_wait(epoll, events, kEvents, -1);
    for (;;) {
      const int one = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (one < 0) break;
      char request[8192];
      check(::recv(one, request, sizeof request, 0) > 0, "recv");
      const std::size_t length = replies[n++ % replies.size()];
      check(::send(one, bytes.data(), length, 0) == static_cast<ssize_t>(length), "send");
      ::close(one);
    }
  }
}

void begin_request(int epoll, const sockaddr_in& server) {
  static const std::string request(kRequestBytes, 'x');
  const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  check(one >= 0, "socket");
  ::connect(one, reinterpret_cast<const sockaddr*>(&server), sizeof server);  // it is there when this returns
  check(::send(one, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size()), "send");
  watch(epoll, one);
}

// True if the reply has been read to its end.
bool has_ended(int one) {
  char reply[4096];
  ssize_t n = 0;
  while ((n = ::recv(one, reply, sizeof reply, 0)) > 0) continue;
  return n == 0;
}

void ask_all(const sockaddr_in& server, int n_ranks, std::size_t n_requests) {
  const int epoll = ::epoll_create1(0);
  std::size_t n_begun = 0, n_ended = 0;
  for (; n_begun < static_cast<std::size_t>(n_ranks); ++n_begun) begin_request(epoll, server);
  while (n_ended < n_requests) {
    epoll_event events[kEvents];
    const int n = ::epoll_wait(epoll, events, kEvents, -1);
    for (int i = 0; i < n; ++i) {
      if (!has_ended(events[i].data.fd)) continue;
      ::close(events[i].data.fd);
      ++n_ended;
      if (n_begun < n_requests) {
        begin_request(epoll, server);
        ++n_begun;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int n_ranks = argc == 3 ? std::atoi(argv[1]) : 0, per_host = argc == 3 ? std::atoi(argv[2]) : 0;
  if (n_ranks < 2 || per_host < 1 || n_ranks % per_host != 0) {
    std::fputs("usage: connection_floor RANKS PER_HOST\n", stderr);
    return 2;
  }
  const auto replies = replies_of(n_ranks, per_host);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof server;
  const int seconds = 5;
  ::setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
  check(::bind(listener, reinterpret_cast<sockaddr*>(&server), sizeof server) == 0 &&
            ::listen(listener, kBacklog) == 0 &&
            ::getsockname(listener, reinterpret_cast<sockaddr*>(&server), &length) == 0,
        "listen");
  const pid_t child = ::fork();
  if (child == 0) {
    perf::use_processor(1);
    serve(listener, replies);
  }
  perf::use_processor(0);
  const auto begin = Clock::now();
  ask_all(server, n_ranks, replies.size());
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::printf("%lld %zu 0 %ld\n", static_cast<long long>(took.count()), replies.size(), perf::cpu_ms_of_children());
  return 0;
}
