#include "rendezvous/listening.h"

#include <fcntl.h>

#include <chrono>
#include <utility>

namespace drun::rendezvous {

namespace {
constexpr int kBacklog = 4096;
constexpr auto kPause = std::chrono::milliseconds(50);
}  // namespace

void set_close_on_exec(int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

Result<asio::ip::tcp::acceptor> listen_on(const asio::any_io_executor& executor, const std::string& address) {
  boost::system::error_code ec;
  const auto ip = asio::ip::make_address(address, ec);
  if (ec) return fail(Errc::kIo, address, "not an IP address");
  const asio::ip::tcp::endpoint endpoint(ip, 0);
  asio::ip::tcp::acceptor acceptor(executor);
  acceptor.open(endpoint.protocol(), ec);
  if (ec) return fail(asio_error(ec, "open").with_subject(address));
  set_close_on_exec(acceptor.native_handle());
  acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (ec) return fail(asio_error(ec, "bind").with_subject(address));
  acceptor.listen(kBacklog, ec);
  if (ec) return fail(asio_error(ec, "listen").with_subject(address));
  return acceptor;
}

Task<void> accept_all(asio::ip::tcp::acceptor& acceptor, std::function<void(asio::ip::tcp::socket)> take) {
  while (acceptor.is_open()) {
    auto [ec, socket] = co_await acceptor.async_accept(as_result);
    if (!acceptor.is_open()) break;
    if (!ec) {
      set_close_on_exec(socket.native_handle());
      take(std::move(socket));
      continue;
    }
    if (ec == asio::error::connection_aborted) continue;
    const Deadline later = Clock::now() + kPause;  // out of descriptors or memory: some may be freed
    co_await sleep_until(later);
  }
}

}  // namespace drun::rendezvous
