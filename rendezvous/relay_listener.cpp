#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "base/accept.h"
#include "rendezvous/listening.h"
#include "rendezvous/relay.h"
#include "rendezvous/relay_streams.h"

namespace drun::rendezvous {
namespace {

using Tcp = asio::ip::tcp;

// A host has at most a few hundred workers; other local clients must not use up the agent's descriptors.
constexpr std::size_t kMaxConnections = 2048;

class RelayListenerImpl final : public RelayListener {
 public:
  RelayListenerImpl(const asio::any_io_executor& executor, Tcp::acceptor acceptor, std::string address,
                    RelayOutput output, std::uint32_t first)
      : address_(std::move(address)),
        port_(acceptor.local_endpoint().port()),
        open_(output.open),
        streams_(executor, std::move(output)),
        acceptor_(std::move(acceptor)),
        last_connection_(first - 1),
        tasks_(executor) {
    std::function<void(Tcp::socket)> take = [this](Tcp::socket socket) { accept(std::move(socket)); };
    tasks_.spawn(accept_all(acceptor_, std::move(take)));
  }

  std::string address() const override { return address_; }
  int port() const override { return port_; }
  void deliver(std::uint32_t connection, std::string bytes) override { streams_.deliver(connection, std::move(bytes)); }
  void close(std::uint32_t connection) override { streams_.close(connection); }

  void stop() override {
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    streams_.stop();
  }
  Task<void> join() override {
    co_await tasks_.join();
    co_await streams_.join();
  }

 private:
  void accept(Tcp::socket socket) {
    if (stopped_ || streams_.size() >= kMaxConnections) return;
    boost::system::error_code ignored;
    socket.set_option(Tcp::no_delay(true), ignored);
    const std::uint32_t connection = ++last_connection_;
    open_(connection);
    streams_.add(connection, RelayStreams::Socket(std::move(socket)));
  }

  std::string address_;
  int port_;
  std::function<void(std::uint32_t)> open_;
  RelayStreams streams_;
  Tcp::acceptor acceptor_;
  std::uint32_t last_connection_;
  bool stopped_ = false;
  TaskGroup tasks_;
};

}  // namespace

Result<std::unique_ptr<RelayListener>> RelayListener::start(const asio::any_io_executor& executor, RelayOutput output,
                                                            std::uint32_t first) {
  std::string address = "127.0.0.1";
  auto acceptor = listen_on(executor, address);
  if (!acceptor) {
    address = "::1";
    auto second = listen_on(executor, address);
    if (!second) return fail(acceptor.error());
    acceptor = std::move(second);
  }
  return std::make_unique<RelayListenerImpl>(executor, std::move(*acceptor), std::move(address), std::move(output),
                                             first);
}

}  // namespace drun::rendezvous
