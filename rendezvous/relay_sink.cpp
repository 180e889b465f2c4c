#include <sys/socket.h>

#include <utility>

#include "rendezvous/relay.h"
#include "rendezvous/relay_streams.h"

namespace drun::rendezvous {
namespace {

using Socket = RelayStreams::Socket;

class RelaySinkImpl final : public RelaySink {
 public:
  RelaySinkImpl(const asio::any_io_executor& executor, Adopt adopt, RelayOutput to_agent)
      : executor_(executor),
        adopt_(std::move(adopt)),
        refuse_(to_agent.close),
        streams_(executor, std::move(to_agent)) {}

  void open(std::uint32_t connection) override {
    if (stopped_) return;
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return refuse_(connection);
    const asio::generic::stream_protocol protocol(AF_UNIX, 0);
    streams_.add(connection, Socket(executor_, protocol, ends[0]));
    adopt_(connection, Socket(executor_, protocol, ends[1]));
  }
  void deliver(std::uint32_t connection, std::string bytes) override { streams_.deliver(connection, std::move(bytes)); }
  void close(std::uint32_t connection) override { streams_.close(connection); }
  void resume() override { streams_.resume(); }
  void stop() override {
    stopped_ = true;
    streams_.stop();
  }
  Task<void> join() override { return streams_.join(); }

 private:
  asio::any_io_executor executor_;
  Adopt adopt_;
  std::function<void(std::uint32_t)> refuse_;
  RelayStreams streams_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<RelaySink> RelaySink::create(const asio::any_io_executor& executor, Adopt adopt, RelayOutput to_agent) {
  return std::make_unique<RelaySinkImpl>(executor, std::move(adopt), std::move(to_agent));
}

}  // namespace drun::rendezvous
