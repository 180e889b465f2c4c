#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "base/accept.h"
#include "netdetect/listen.h"
#include "netdetect/probe.h"
#include "netdetect/proof.h"

namespace drun::netdetect {
namespace {

using asio::ip::tcp;

constexpr std::chrono::seconds kConnectionTime{3};

class Listener final : public ProbeListener {
 public:
  Listener(const asio::any_io_executor& executor, std::string token)
      : executor_(executor), acceptor_(executor), tasks_(executor), token_(std::move(token)) {}

  Result<void> open() {
    auto port = listen_anywhere(acceptor_, "listen for probes");
    if (!port) return fail(std::move(port.error()));
    port_ = *port;
    return {};
  }

  void run() {
    std::function<void(tcp::socket)> serve_one = [this](tcp::socket socket) {
      auto connection = std::make_shared<tcp::socket>(std::move(socket));
      connections_.add(connection);
      tasks_.spawn(serve(std::move(connection)));
    };
    tasks_.spawn(accept_all(acceptor_, std::move(serve_one)));
  }

  int port() const override { return port_; }

  void stop() override {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    connections_.close_all();
  }

  Task<void> join() override { return tasks_.join(); }

 private:
  using Connection = UnprovenConnections::Connection;

  Task<void> serve(Connection connection) {
    {
      const DeadlineGuard guard(executor_, Clock::now() + kConnectionTime, [connection] {
        boost::system::error_code ignored;
        connection->close(ignored);
      });
      co_await answer(connection);
    }
    boost::system::error_code ignored;
    connection->close(ignored);
    connections_.remove(connection);
  }

  Task<void> answer(Connection connection) {
    std::string hello(kHelloBytes, '\0');
    const auto hello_buffer = asio::buffer(hello);
    const auto [read_error, n_read] = co_await asio::async_read(*connection, hello_buffer, as_result);
    if (read_error) co_return;
    const auto reply = answer_hello(hello, token_, port_);
    if (!reply) co_return;
    const auto reply_buffer = asio::buffer(*reply);
    co_await asio::async_write(*connection, reply_buffer, as_result);
  }

  asio::any_io_executor executor_;
  tcp::acceptor acceptor_;
  TaskGroup tasks_;
  std::string token_;
  UnprovenConnections connections_;
  int port_ = 0;
};

}  // namespace

Result<std::unique_ptr<ProbeListener>> ProbeListener::start(const asio::any_io_executor& executor, std::string token) {
  if (token.size() != kTokenBytes) return fail(Errc::kInternal, "the probe's token has the wrong size");
  auto listener = std::make_unique<Listener>(executor, std::move(token));
  if (auto open = listener->open(); !open) return fail(std::move(open.error()));
  listener->run();
  return std::unique_ptr<ProbeListener>(std::move(listener));
}

}  // namespace drun::netdetect
