// The accepting side of link measurements.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <map>
#include <set>
#include <utility>

#include "netdetect/link_echo.h"
#include "netdetect/link_measure.h"
#include "netdetect/link_stream.h"
#include "netdetect/link_wire.h"
#include "netdetect/listen.h"
#include "netdetect/path_mtu.h"
#include "netdetect/proof.h"

namespace drun::netdetect {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr std::size_t kMaxProven = 256;
constexpr std::size_t kMaxSeen = 1u << 16;  // far more than the connections of a check
constexpr milliseconds kProofTime{3000};
constexpr milliseconds kAttachTime{5000};  // until all streams of a measurement are connected
constexpr milliseconds kGoTime{15000};     // from then until the client says go
constexpr milliseconds kEchoTime{15000};
constexpr milliseconds kMtuTime{5000};

std::function<void()> closing(const LinkSocket& socket) {
  return [socket] { close_by_reset(*socket); };
}

// A bandwidth measurement whose connections are arriving. Only peers that proved the token know its key.
struct Session {
  explicit Session(const asio::any_io_executor& executor)
      : attached(executor), taken(executor), deadline(Clock::now() + kAttachTime) {}
  std::vector<LinkSocket> streams;
  Event attached;     // another stream has arrived
  Event taken;        // the streams have a new owner
  Deadline deadline;  // for both events
  bool late = false;  // it passed before the streams had a new owner
};

class Listener final : public LinkListener {
 public:
  Listener(const asio::any_io_executor& executor, std::string token)
      : executor_(executor), listener_(executor, std::move(token)) {}

  Result<void> start() {
    return listener_.start("listen for link measurements",
                           [this](LinkSocket connection) { return serve(std::move(connection)); });
  }
  int port() const override { return listener_.port(); }

  void stop() override {
    listener_.stop();
    stopping_->stop();
    for (const auto& [id, session] : sessions_) {
      session->attached.notify();
      session->taken.notify();
    }
  }

  Task<void> join() override { return listener_.join(); }

 private:
  Task<void> serve(LinkSocket connection) {
    const OnStop on_stop(stopping_, closing(connection));
    LinkOrder order;
    bool ordered = false;
    {
      const DeadlineGuard guard(executor_, Clock::now() + kProofTime, closing(connection));
      ordered = co_await take_order(connection, order);
    }
    listener_.proven(connection);
    if (ordered && !stopping_->stopped() && n_proven_ < kMaxProven) {
      ++n_proven_;
      switch (order.kind) {
        case LinkOrderKind::kEcho:
          co_await serve_echo(connection);
          break;
        case LinkOrderKind::kMtu:
          co_await serve_mtu(connection, order);
          break;
        case LinkOrderKind::kStreams:
          co_await serve_streams(connection, order);
          break;
        case LinkOrderKind::kData:
          co_await serve_data(connection, order);
          break;
      }
      --n_proven_;
    }
    if (order.kind == LinkOrderKind::kData && ordered) co_return;  // its session owns the connection
    boost::system::error_code ignored;
    connection->close(ignored);
  }

  // False: the peer did not prove that it knows the token, or its order is invalid.
  Task<bool> take_order(LinkSocket connection, LinkOrder& order) {
    const auto hello = co_await listener_.read_hello(connection);
    if (hello.reply.empty()) co_return false;
    // Rejects replayed nonces, so that an eavesdropper can't order measurements with a peer's proof.
    if (seen_.size() >= kMaxSeen) seen_.clear();
    if (!seen_.insert(hello.nonce).second) co_return false;
    boost::system::error_code ignored;
    connection->set_option(tcp::no_delay(true), ignored);
    const auto reply_buffer = asio::buffer(hello.reply);
    co_await asio::async_write(*connection, reply_buffer, as_result);
    std::string bytes(kLinkOrderBytes, '\0');
    const auto buffer = asio::buffer(bytes);
    const auto [ec, n] = co_await asio::async_read(*connection, buffer, as_result);
    if (ec) co_return false;
    const auto decoded = decode_order(bytes);
    if (!decoded) co_return false;
    order = *decoded;
    co_return true;
  }

  Task<void> serve_echo(LinkSocket connection) {
    const DeadlineGuard guard(executor_, Clock::now() + kEchoTime, closing(connection));
    co_await echo(connection);
  }

  Task<void> serve_mtu(LinkSocket connection, LinkOrder order) {
    const DeadlineGuard guard(executor_, Clock::now() + kMtuTime, closing(connection));
    boost::system::error_code ec;
    const auto local = connection->local_endpoint(ec);
    std::string peer = connection->remote_endpoint(ec).address().to_string();
    auto udp = MtuSocket::open(executor_, local.address().to_string(), listener_.token(), order.session);
    if (!udp) co_return;
    const std::function<void()> close_udp = [u = udp->get()] { u->close(); };
    const OnStop on_stop(stopping_, close_udp);
    TaskGroup datagrams(executor_);
    datagrams.spawn((*udp)->receive());
    datagrams.spawn((*udp)->send_all(std::move(peer), order.udp_port));
    ByteWriter out;
    out.u16(static_cast<std::uint16_t>((*udp)->port()));
    co_await write_small(connection, out.take());
    const bool done = co_await read_byte(connection);
    ByteWriter figures;
    figures.i32((*udp)->largest());
    if (done) co_await write_small(connection, figures.take());
    close_udp();
    co_await datagrams.join();
  }

  Task<void> serve_data(LinkSocket connection, LinkOrder order) {
    const auto session = session_of(order.session);
    if (session->streams.size() < kMaxStreams) session->streams.push_back(connection);
    session->attached.notify();
    {
      // All streams of a session wait here for the same deadline.
      const DeadlineGuard guard(executor_, session->deadline, [session] {
        session->late = true;
        session->taken.notify();
      });
      co_await session->taken.wait();
    }
    if (!session->late) co_return;
    close_by_reset(*connection);
    sessions_.erase(order.session);
  }

  Task<void> serve_streams(LinkSocket control, LinkOrder order) {
    const auto session = session_of(order.session);
    const DeadlineGuard guard(executor_, session->deadline + kGoTime + milliseconds(order.time_ms), closing(control));
    bool all = true;
    while (all && session->streams.size() < order.n_streams) {
      session->attached.reset();
      all = co_await session->attached.wait_until(session->deadline);
      if (stopping_->stopped()) all = false;
    }
    session->taken.notify();
    sessions_.erase(order.session);
    const std::vector<LinkSocket> streams = std::move(session->streams);
    const std::function<void()> close_streams = [&streams] {
      for (const auto& socket : streams) close_by_reset(*socket);
    };
    const OnStop on_stop(stopping_, close_streams);
    bool go = false;
    if (all) co_await write_small(control, std::string("r"));
    if (all) go = co_await read_byte(control);
    if (go) co_await run(control, streams, order);
    close_streams();
  }

  Task<void> run(LinkSocket control, std::vector<LinkSocket> streams, LinkOrder order) {
    StreamPlan plan;
    plan.begin = Clock::now();
    plan.time = milliseconds(order.time_ms);
    plan.sends = order.server_sends;
    plan.receives = order.client_sends;
    plan.max_rate = order.max_rate;
    plan.segment_bytes = order.segment_bytes;
    plan.over = std::make_shared<Event>(executor_);
    plan.give_up = plan.begin + plan.time + milliseconds(5);  // the clocks may run at different rates
    TaskGroup watching(executor_);
    watching.spawn(watch(control, plan.over));
    const StreamResult result = co_await run_streams(streams, plan, stopping_);
    // The client reports a broken stream, because it has seen the break, too.
    if (result.error.empty()) co_await write_small(control, encode_figures(result.figures));
    boost::system::error_code ignored;
    control->close(ignored);  // after the figures were written
    co_await watching.join();
  }

  // A client that goes away ends the measurement.
  static Task<void> watch(LinkSocket control, std::shared_ptr<Event> over) {
    co_await read_byte(control);
    over->notify();
  }

  static Task<bool> read_byte(LinkSocket socket) {
    char byte = 0;
    const auto buffer = asio::buffer(&byte, 1);
    const auto [ec, n] = co_await asio::async_read(*socket, buffer, as_result);
    co_return !ec;
  }

  static Task<void> write_small(LinkSocket socket, std::string bytes) {
    const auto buffer = asio::buffer(bytes);
    co_await asio::async_write(*socket, buffer, as_result);
  }

  std::shared_ptr<Session> session_of(const std::string& id) {
    auto& session = sessions_[id];
    if (!session) session = std::make_shared<Session>(executor_);
    return session;
  }

  asio::any_io_executor executor_;
  TokenListener listener_;
  std::shared_ptr<Stopping> stopping_ = std::make_shared<Stopping>();
  std::map<std::string, std::shared_ptr<Session>> sessions_;
  std::set<std::string> seen_;  // nonces
  std::size_t n_proven_ = 0;
};

}  // namespace

Result<std::unique_ptr<LinkListener>> LinkListener::start(const asio::any_io_executor& executor, std::string token) {
  if (token.size() != kTokenBytes) return fail(Errc::kInternal, "the token of link measurements has the wrong size");
  auto listener = std::make_unique<Listener>(executor, std::move(token));
  if (auto started = listener->start(); !started) return fail(std::move(started.error()));
  return std::unique_ptr<LinkListener>(std::move(listener));
}

}  // namespace drun::netdetect
