#include "rendezvous/listening.h"

#include "base/accept.h"

namespace drun::rendezvous {

namespace {
constexpr int kBacklog = 4096;
}  // namespace

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

}  // namespace drun::rendezvous
