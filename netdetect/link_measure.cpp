// The connecting side of link measurements.
#include "netdetect/link_measure.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "netdetect/interface.h"
#include "netdetect/link_echo.h"
#include "netdetect/link_stream.h"
#include "netdetect/link_wire.h"
#include "netdetect/path_mtu.h"
#include "netdetect/proof.h"

namespace drun::netdetect {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr milliseconds kSetUpTime{3000};  // connect and proof, of one connection
constexpr milliseconds kMaxRoundTrips{10000};
constexpr milliseconds kMtuWait{30};          // after the last datagram
constexpr milliseconds kFiguresTime{3000};    // data that is queued before them has to drain first
constexpr std::uint32_t kMaxBeginIn = 10000;  // ms

struct Peer {
  LinkTarget target;
  std::string token;
  std::shared_ptr<Stopping> stopping;
};

std::string where(const LinkTarget& target) { return target.address + " port " + std::to_string(target.port); }

std::function<void()> closing(const LinkSocket& socket) {
  return [socket] { close_by_reset(*socket); };
}

// Opens a connection whose other end has proven the token.
Task<Result<LinkSocket>> connect_to(Peer peer) {
  const LinkTarget& target = peer.target;
  const auto executor = co_await asio::this_coro::executor;
  boost::system::error_code ec;
  const auto address = asio::ip::make_address(target.address, ec);
  if (ec || target.port == 0 || peer.token.size() != kTokenBytes) {
    co_return fail(Errc::kInternal, "not an address to measure: " + where(target));
  }
  const tcp::endpoint endpoint(address, target.port);
  auto socket = std::make_shared<tcp::socket>(executor);
  socket->open(endpoint.protocol(), ec);
  if (!ec && !target.source.empty()) {
    const auto source = asio::ip::make_address(target.source, ec);
    if (!ec) socket->bind(tcp::endpoint(source, 0), ec);
    if (ec) co_return fail(asio_error(ec, "bind to " + target.source));
  }
  if (ec) co_return fail(asio_error(ec, "connect to " + where(target)));
  if (peer.stopping->stopped()) co_return fail(Errc::kCanceled, "connect to " + where(target) + ": stopped");
  const OnStop on_stop(peer.stopping, closing(socket));
  const DeadlineGuard guard(executor, Clock::now() + kSetUpTime, closing(socket));

  const auto [connect_error] = co_await socket->async_connect(endpoint, as_result);
  if (guard.fired()) co_return fail(Errc::kTimeout, "connect to " + where(target) + ": no answer within 3 s");
  if (connect_error) co_return fail(asio_error(connect_error, "connect to " + where(target)));
  socket->set_option(tcp::no_delay(true), ec);

  const std::string nonce = make_nonce();
  const std::string hello = nonce + make_proof(peer.token, Side::kClient, nonce, target.port);
  const auto hello_buffer = asio::buffer(hello);
  co_await asio::async_write(*socket, hello_buffer, as_result);  // an error shows in the read
  std::string reply(kProofBytes, '\0');
  const auto reply_buffer = asio::buffer(reply);
  const auto [read_error, n_read] = co_await asio::async_read(*socket, reply_buffer, as_result);
  if (guard.fired()) co_return fail(Errc::kTimeout, where(target) + ": connected, but no proof within 3 s");
  if (read_error) co_return fail(asio_error(read_error, where(target) + ": connected, but no proof"));
  if (!proof_equals(reply, make_proof(peer.token, Side::kServer, nonce, target.port))) {
    co_return fail(Errc::kAuth, where(target) + ": connected, but the proof is wrong");
  }
  co_return socket;
}

Task<Result<void>> write_small(LinkSocket socket, std::string bytes) {
  const auto buffer = asio::buffer(bytes);
  const auto [ec, n] = co_await asio::async_write(*socket, buffer, as_result);
  if (ec) co_return fail(asio_error(ec, "the connection to the other agent"));
  co_return Result<void>();
}

Task<Result<std::string>> read_small(LinkSocket socket, std::size_t n_bytes, milliseconds time) {
  const DeadlineGuard guard(co_await asio::this_coro::executor, Clock::now() + time, closing(socket));
  std::string bytes(n_bytes, '\0');
  const auto buffer = asio::buffer(bytes);
  const auto [ec, n] = co_await asio::async_read(*socket, buffer, as_result);
  if (guard.fired()) {
    co_return fail(Errc::kTimeout, "no answer of the other agent within " + std::to_string(time.count()) + " ms");
  }
  if (ec) co_return fail(asio_error(ec, "the connection to the other agent"));
  co_return bytes;
}

Task<Result<void>> round_trips(Peer peer, LinkResult& result) {
  auto socket = co_await connect_to(peer);
  if (!socket) co_return fail(std::move(socket.error()));
  const OnStop on_stop(peer.stopping, closing(*socket));
  LinkOrder order;
  order.kind = LinkOrderKind::kEcho;
  std::string bytes = encode_order(order);
  const auto ordered = co_await write_small(*socket, std::move(bytes));
  if (!ordered) co_return ordered;
  const milliseconds limit = std::min(milliseconds(std::max(peer.target.round_trips_ms, 1u)), kMaxRoundTrips);
  RoundTrips trips;
  {
    const DeadlineGuard guard(co_await asio::this_coro::executor, Clock::now() + limit + kSetUpTime, closing(*socket));
    trips = co_await measure_round_trips(*socket, peer.target.n_round_trips, limit);
  }
  close_by_reset(**socket);
  result.n_round_trips = trips.n;
  result.rtt_median_us = trips.median_us;
  result.rtt_p99_us = trips.p99_us;
  result.rtt_min_us = trips.min_us;
  if (trips.n == 0) co_return fail(Errc::kClosed, "no message came back from " + where(peer.target));
  co_return Result<void>();
}

// Sends the datagrams and obtains the peer's result; incoming ones are received while `udp` is open.
Task<Result<void>> exchange_datagrams(LinkSocket socket, MtuSocket& udp, LinkResult& result) {
  const auto port = co_await read_small(socket, 2, kSetUpTime);
  if (!port) co_return fail(port.error());
  ByteReader in(*port);
  const int to_port = in.u16();
  boost::system::error_code ec;
  std::string to = socket->remote_endpoint(ec).address().to_string();
  co_await udp.send_all(std::move(to), to_port);
  co_await sleep_until(Clock::now() + kMtuWait);
  std::string done = "d";
  const auto told = co_await write_small(socket, std::move(done));
  if (!told) co_return told;
  const auto answer = co_await read_small(socket, 4, kSetUpTime);
  if (!answer) co_return fail(answer.error());
  ByteReader figures(*answer);
  result.mtu_forward = figures.i32();
  result.mtu_backward = udp.largest();
  co_return Result<void>();
}

Task<Result<void>> path_mtu(Peer peer, LinkResult& result) {
  auto socket = co_await connect_to(peer);
  if (!socket) co_return fail(std::move(socket.error()));
  const auto executor = co_await asio::this_coro::executor;
  LinkOrder order;
  order.kind = LinkOrderKind::kMtu;
  order.session = make_nonce();
  boost::system::error_code ec;
  const std::string here = (*socket)->local_endpoint(ec).address().to_string();
  auto udp = MtuSocket::open(executor, here, peer.token, order.session);
  if (!udp) co_return fail(std::move(udp.error()));
  order.udp_port = static_cast<std::uint16_t>((*udp)->port());
  const std::function<void()> close_both = [socket = *socket, u = udp->get()] {
    close_by_reset(*socket);
    u->close();
  };
  const OnStop on_stop(peer.stopping, close_both);
  TaskGroup receiving(executor);
  receiving.spawn((*udp)->receive());
  std::string bytes = encode_order(order);
  Result<void> done = co_await write_small(*socket, std::move(bytes));
  if (done) done = co_await exchange_datagrams(*socket, **udp, result);
  close_both();
  co_await receiving.join();
  co_return done;
}

struct Streams {
  std::vector<LinkSocket> sockets;
  Result<void> connected;
};

Task<void> add_stream(Peer peer, LinkOrder order, std::shared_ptr<Streams> streams) {
  auto socket = co_await connect_to(peer);
  if (!socket) {
    streams->connected = fail(std::move(socket.error()));
    co_return;
  }
  streams->sockets.push_back(*socket);
  std::string bytes = encode_order(order);
  auto written = co_await write_small(*socket, std::move(bytes));
  if (!written) streams->connected = std::move(written);
}

Task<void> read_figures(LinkSocket control, milliseconds time, std::shared_ptr<Event> over,
                        std::shared_ptr<Result<LinkFigures>> figures) {
  const auto bytes = co_await read_small(control, kLinkFiguresBytes, time);
  if (bytes) {
    *figures = decode_figures(*bytes);
  } else {
    *figures = fail(bytes.error());
  }
  over->notify();
}

// Sends the order and opens the streams, until both ends are ready.
Task<Result<void>> set_up_streams(Peer peer, LinkSocket control, LinkOrder order, std::shared_ptr<Streams> streams) {
  std::string bytes = encode_order(order);
  const auto ordered = co_await write_small(control, std::move(bytes));
  if (!ordered) co_return ordered;
  order.kind = LinkOrderKind::kData;
  {
    TaskGroup connecting(co_await asio::this_coro::executor);
    for (unsigned i = 0; i < order.n_streams; ++i) connecting.spawn(add_stream(peer, order, streams));
    co_await connecting.join();
  }
  if (!streams->connected) co_return streams->connected;
  const auto ready = co_await read_small(control, 1, kSetUpTime);
  if (!ready) co_return fail(ready.error());
  co_return Result<void>();
}

Task<Result<void>> bandwidth(Peer peer, Deadline begin_at, LinkResult& result) {
  const LinkTarget& target = peer.target;
  const auto executor = co_await asio::this_coro::executor;
  auto control = co_await connect_to(peer);
  if (!control) co_return fail(std::move(control.error()));
  auto streams = std::make_shared<Streams>();
  const auto over = std::make_shared<Event>(executor);
  const std::function<void()> close_all = [control = *control, streams, over] {
    close_by_reset(*control);
    for (const auto& socket : streams->sockets) close_by_reset(*socket);
    over->notify();
  };
  const OnStop on_stop(peer.stopping, close_all);
  LinkOrder order;
  order.kind = LinkOrderKind::kStreams;
  order.session = make_nonce();
  order.n_streams = static_cast<std::uint16_t>(std::clamp(target.n_streams, 1u, kMaxStreams));
  order.client_sends = target.sends;
  order.server_sends = target.receives;
  order.time_ms = std::clamp(target.time_ms, 1u, kMaxLinkTime);
  order.max_rate = target.max_rate;
  order.segment_bytes = target.segment_bytes;
  Result<void> done = co_await set_up_streams(peer, *control, order, streams);
  if (done) co_await over->wait_until(begin_at);
  // Taken before "go" is sent: the other side must not finish before us, because it resets the streams when it does.
  const Deadline begin = Clock::now();
  if (done) {
    std::string go = "g";
    done = co_await write_small(*control, std::move(go));
  }
  if (!done) {
    close_all();
    co_return done;
  }
  StreamPlan plan;
  plan.begin = begin;
  plan.time = milliseconds(order.time_ms);
  plan.sends = order.client_sends;
  plan.receives = order.server_sends;
  plan.max_rate = order.max_rate;
  plan.segment_bytes = order.segment_bytes;
  plan.over = over;
  plan.give_up = plan.begin + plan.time + kFiguresTime;
  auto far = std::make_shared<Result<LinkFigures>>(fail(Errc::kCanceled, "canceled"));
  TaskGroup reading(executor);
  reading.spawn(read_figures(*control, plan.time + kFiguresTime, plan.over, far));
  const StreamResult near = co_await run_streams(streams->sockets, plan, peer.stopping);
  if (!near.error.empty()) close_by_reset(**control);
  co_await reading.join();
  close_all();

  if (order.client_sends && *far) {
    result.forward.n_streams = order.n_streams;
    result.forward.bits_per_second = (*far)->bits_per_second;
    result.forward.seconds = (*far)->seconds;
    result.forward.n_segments = near.figures.n_segments;
    result.forward.n_retransmits = near.figures.n_retransmits;
  }
  if (order.server_sends && near.error.empty() && (*far || near.figures.bits_per_second > 0)) {
    result.backward.n_streams = order.n_streams;
    result.backward.bits_per_second = near.figures.bits_per_second;
    result.backward.seconds = near.figures.seconds;
    if (*far) result.backward.n_segments = (*far)->n_segments;
    if (*far) result.backward.n_retransmits = (*far)->n_retransmits;
  }
  if (!near.error.empty()) co_return fail(Errc::kClosed, "the stream broke off: " + near.error);
  if (!*far) co_return fail((*far).error());
  co_return Result<void>();
}

Task<void> measure_one(Peer peer, std::shared_ptr<std::vector<LinkResult>> results, std::size_t index) {
  const LinkTarget& target = peer.target;
  LinkResult& result = (*results)[index];
  const Deadline begin_at = Clock::now() + milliseconds(std::min(target.begin_in_ms, kMaxBeginIn));
  result.id = target.id;
  Result<void> done;
  if (target.n_round_trips > 0) done = co_await round_trips(peer, result);
  if (done && target.path_mtu) done = co_await path_mtu(peer, result);
  if (done && target.n_streams > 0) done = co_await bandwidth(peer, begin_at, result);
  if (!done) result.error = done.error().message();
}

}  // namespace

Task<std::vector<LinkResult>> measure_links(std::vector<LinkTarget> targets, std::string token,
                                            std::shared_ptr<Stopping> stopping) {
  auto results = std::make_shared<std::vector<LinkResult>>(targets.size());
  TaskGroup tasks(co_await asio::this_coro::executor);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    Peer peer;
    peer.target = std::move(targets[i]);
    peer.token = token;
    peer.stopping = stopping;
    tasks.spawn(measure_one(std::move(peer), results, i));
  }
  co_await tasks.join();
  co_return std::move(*results);
}

}  // namespace drun::netdetect
