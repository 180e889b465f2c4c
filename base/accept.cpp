#include "base/accept.h"

#include <fcntl.h>

#include <chrono>
#include <utility>

namespace drun {

void set_close_on_exec(int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

Task<void> accept_all(asio::ip::tcp::acceptor& acceptor, std::function<void(asio::ip::tcp::socket)> take) {
  constexpr auto kPause = std::chrono::milliseconds(50);
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

}  // namespace drun
