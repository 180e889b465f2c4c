#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "netdetect/listen.h"
#include "netdetect/probe.h"
#include "netdetect/proof.h"

namespace drun::netdetect {
namespace {

constexpr std::chrono::seconds kConnectionTime{3};

class Listener final : public ProbeListener {
 public:
  Listener(const asio::any_io_executor& executor, std::string token)
      : executor_(executor), listener_(executor, std::move(token)) {}

  Result<void> start() {
    return listener_.start("listen for probes", [this](Connection connection) { return serve(std::move(connection)); });
  }
  int port() const override { return listener_.port(); }
  void stop() override { listener_.stop(); }
  Task<void> join() override { return listener_.join(); }

 private:
  using Connection = TokenListener::Connection;

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
    listener_.proven(connection);
  }

  Task<void> answer(Connection connection) {
    const auto hello = co_await listener_.read_hello(connection);
    if (hello.reply.empty()) co_return;
    const auto buffer = asio::buffer(hello.reply);
    co_await asio::async_write(*connection, buffer, as_result);
  }

  asio::any_io_executor executor_;
  TokenListener listener_;
};

}  // namespace

Result<std::unique_ptr<ProbeListener>> ProbeListener::start(const asio::any_io_executor& executor, std::string token) {
  if (token.size() != kTokenBytes) return fail(Errc::kInternal, "the probe's token has the wrong size");
  auto listener = std::make_unique<Listener>(executor, std::move(token));
  if (auto started = listener->start(); !started) return fail(std::move(started.error()));
  return std::unique_ptr<ProbeListener>(std::move(listener));
}

}  // namespace drun::netdetect
