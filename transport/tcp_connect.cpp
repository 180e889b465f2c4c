#include "transport/tcp_connect.h"

#include <netdb.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>

#include "base/error_id.h"
#include "base/tcp_socket.h"
#include "base/text.h"

namespace drun::transport {
namespace {

using tcp = asio::ip::tcp;

constexpr auto kMaxPerAddress = std::chrono::seconds(10);  // except for the last one
// A name whose servers are silent takes its thread for many seconds. A lookup that has not begun by then has one for
// itself, up to a limit.
constexpr auto kTurn = std::chrono::milliseconds(200);
constexpr int kMostOwnThreads = 60;
std::atomic<int> n_own_threads{0};

struct Addresses {
  TcpEndpoints endpoints;
  std::string problem;
};

Addresses resolve(const std::string& host, int port, const std::string& family, int flags) {
  addrinfo hints{};
  hints.ai_family = family == "inet" ? AF_INET : family == "inet6" ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  Addresses out;
  const int rc = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (rc != 0) {
    out.problem = rc == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(rc);
    return out;
  }
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    tcp::endpoint endpoint;
    if (a->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), a->ai_addr, a->ai_addrlen);
    endpoint.resize(a->ai_addrlen);
    out.endpoints.push_back(endpoint);
  }
  ::freeaddrinfo(list);
  return out;
}

// Passes the result of a helper thread to a coroutine, which may have given up by then. Its I/O context may be gone.
struct Lookup {
  std::atomic<bool> is_begun{false};
  Addresses addresses;  // complete once `waiter` is notified
  std::mutex mutex;     // of `waiter`, between the helper and the coroutine
  Event* waiter = nullptr;
};

class Waiting {
 public:
  Waiting(Lookup& lookup, Event& done) : lookup_(lookup) { lookup_.waiter = &done; }
  ~Waiting() {
    const std::lock_guard<std::mutex> lock(lookup_.mutex);
    lookup_.waiter = nullptr;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Lookup& lookup_;
};

void run(const std::shared_ptr<Lookup>& lookup, const asio::any_io_executor& executor, const TcpTarget& target) {
  if (lookup->is_begun.exchange(true)) return;
  lookup->addresses = resolve(target.host, target.port, target.family, 0);
  const std::lock_guard<std::mutex> lock(lookup->mutex);
  if (lookup->waiter == nullptr) return;
  asio::post(executor, [lookup] {
    if (lookup->waiter != nullptr) lookup->waiter->notify();
  });
}

void run_in_own_thread(const std::shared_ptr<Lookup>& lookup, const asio::any_io_executor& executor,
                       const TcpTarget& target) {
  if (n_own_threads.fetch_add(1) < kMostOwnThreads) {
    try {
      std::thread([lookup, executor, target] {
        run(lookup, executor, target);
        --n_own_threads;
      }).detach();
      return;
    } catch (const std::system_error&) {  // no more threads: its turn comes later
    }
  }
  --n_own_threads;
}

Error resolve_error(std::string cause) {
  return Error(Errc::kUnreachable, "resolve: " + std::move(cause)).with_id(error_id::kResolve);
}

// Connects to one address. The error is the reason, as text.
Task<tl::expected<Fd, std::string>> connect_one(tcp::endpoint endpoint, TcpTarget target, Deadline deadline) {
  const auto executor = co_await asio::this_coro::executor;
  tcp::socket socket(executor);
  boost::system::error_code ec;
  socket.open(endpoint.protocol(), ec);
  if (!ec && !target.bind_address.empty()) {
    const auto from = asio::ip::make_address(target.bind_address, ec);
    if (!ec) socket.bind(tcp::endpoint(from, 0), ec);
  }
  const auto start = Clock::now();
  bool timed_out = false;
  if (!ec) {
    DeadlineGuard guard(executor, deadline, [&socket] {
      boost::system::error_code ignored;
      socket.close(ignored);
    });
    std::tie(ec) = co_await socket.async_connect(endpoint, as_result);
    timed_out = guard.fired();
  }
  if (timed_out) {
    const auto waited = std::chrono::round<std::chrono::seconds>(Clock::now() - start).count();
    co_return tl::unexpected("timed out after " + std::to_string(waited) + " s");
  }
  if (ec) co_return tl::unexpected(lower(std::strerror(ec.value())));
  tune_tcp(socket.native_handle(), target.silence);
  const int fd = socket.release(ec);
  if (ec) co_return tl::unexpected(ec.message());
  co_return Fd(fd);
}

}  // namespace

Task<Result<TcpEndpoints>> look_up(asio::thread_pool& helper, TcpTarget target, Deadline deadline) {
  Addresses literal = resolve(target.host, target.port, target.family, AI_NUMERICHOST);
  if (!literal.endpoints.empty()) co_return std::move(literal.endpoints);
  const auto executor = co_await asio::this_coro::executor;
  Event done(executor);
  const auto lookup = std::make_shared<Lookup>();
  const Waiting waiting(*lookup, done);
  asio::post(helper, [lookup, executor, target] { run(lookup, executor, target); });
  const auto start = Clock::now();
  bool in_time = false;
  while (!in_time && Clock::now() < deadline) {
    in_time = co_await done.wait_until(lookup->is_begun ? deadline : std::min(deadline, Clock::now() + kTurn));
    if (!in_time && !lookup->is_begun && Clock::now() < deadline) run_in_own_thread(lookup, executor, target);
  }
  if (!in_time) {
    const auto waited = std::chrono::round<std::chrono::seconds>(Clock::now() - start).count();
    if (!lookup->is_begun) {
      co_return fail(resolve_error("'" + target.host + "' was not looked up within " + std::to_string(waited) +
                                   " s: the answers for other names took all the time"));
    }
    co_return fail(resolve_error("no answer for '" + target.host + "' within " + std::to_string(waited) + " s"));
  }
  if (lookup->addresses.endpoints.empty()) {
    const std::string why = lookup->addresses.problem.empty() ? "" : " (" + lookup->addresses.problem + ")";
    co_return fail(resolve_error("no address for '" + target.host + "'" + why));
  }
  co_return std::move(lookup->addresses.endpoints);
}

Task<Result<Fd>> connect_tcp(TcpTarget target, TcpEndpoints endpoints, Deadline deadline) {
  std::string problems;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const auto left = deadline - Clock::now();
    const auto n_left = static_cast<long>(endpoints.size() - i);
    const Deadline limit =
        n_left == 1 ? deadline : Clock::now() + std::min<Clock::duration>(left / n_left, kMaxPerAddress);
    auto fd = co_await connect_one(endpoints[i], target, limit);
    if (fd) co_return std::move(*fd);
    if (!problems.empty()) problems += "; ";
    problems += endpoints[i].address().to_string() + " port " + std::to_string(target.port) + ": " + fd.error();
  }
  co_return fail(Error(Errc::kUnreachable, "connect: " + problems).with_id(error_id::kConnect));
}

}  // namespace drun::transport
