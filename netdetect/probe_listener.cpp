#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <utility>

#include "netdetect/listen.h"
#include "netdetect/probe.h"
#include "netdetect/proof.h"

namespace drun::netdetect {
namespace {

using asio::ip::tcp;

constexpr std::size_t kMaxConnections = 256;
constexpr std::chrono::seconds kConnectionTime{3};
constexpr std::chrono::milliseconds kAcceptPause{20};  // after a failed accept (no descriptors left)

class Listener final : public ProbeListener {
 public:
  Listener(const asio::any_io_executor& executor, std::string token)
      : executor_(executor), acceptor_(executor), pause_(executor), tasks_(executor), token_(std::move(token)) {}

  Result<void> open() {
    auto port = listen_anywhere(acceptor_, "listen for probes");
    if (!port) return fail(std::move(port.error()));
    port_ = *port;
    return {};
  }

  void run() { tasks_.spawn(accept_loop()); }

  int port() const override { return port_; }

  void stop() override {
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    for (auto& connection : connections_) connection->close(ignored);
  }

  Task<void> join() override { return tasks_.join(); }

 private:
  using Connection = std::shared_ptr<tcp::socket>;

  Task<void> accept_loop() {
    while (!stopped_) {
      auto connection = std::make_shared<tcp::socket>(executor_);
      const auto [ec] = co_await acceptor_.async_accept(*connection, as_result);
      if (stopped_) break;
      if (ec) {
        pause_.expires_after(kAcceptPause);
        co_await pause_.async_wait(as_result);
        continue;
      }
      admit(std::move(connection));
    }
  }

  // When full, closes the oldest connection: a peer needs one round trip, so the oldest one is a stranger's.
  void admit(Connection connection) {
    if (connections_.size() >= kMaxConnections) {
      boost::system::error_code ignored;
      connections_.front()->close(ignored);
      connections_.pop_front();
    }
    connections_.push_back(connection);
    tasks_.spawn(serve(std::move(connection)));
  }

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
  Timer pause_;
  TaskGroup tasks_;
  std::string token_;
  std::list<Connection> connections_;  // oldest first
  int port_ = 0;
  bool stopped_ = false;
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
