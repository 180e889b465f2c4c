#include "agent/control_channel.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "base/stall_watch.h"

namespace drun::agent {

namespace {
constexpr std::chrono::milliseconds kPollInterval{500};
}

ControlChannel::ControlChannel(asio::io_context& io, int from_drun, int to_drun, std::function<void()> lost)
    : in_(io, from_drun),
      out_(io, to_drun),
      tasks_(io.get_executor()),
      outgoing_(io.get_executor()),
      beat_wake_(io.get_executor()),
      lost_(std::move(lost)),
      last_heard_(Clock::now()) {
  on(control::Type::kHeartbeat, [] {});
  on<control::Ping>(control::Type::kPing, [this](const control::Ping& ping) {
    control::Pong reply;
    reply.sent_ns = ping.sent_ns;
    reply.host_ns = static_cast<std::uint64_t>(monotonic_ns());
    outgoing_.push(control::Type::kPong, control::encode(reply));
  });
}

void ControlChannel::on(control::Type type, std::function<void()> handler) {
  handlers_[type] = [handler = std::move(handler)](std::string_view) {
    handler();
    return true;
  };
}

void ControlChannel::start() {
  tasks_.spawn(write());
  tasks_.spawn(read());
  tasks_.spawn(beat());
}

void ControlChannel::set_heartbeat(std::chrono::milliseconds interval, std::chrono::milliseconds timeout) {
  interval_ = std::max(interval, std::chrono::milliseconds(100));
  timeout_ = timeout;
}

Task<void> ControlChannel::write() {
  for (;;) {
    const auto frames = co_await outgoing_.next();
    if (!frames) break;
    const auto buffer = asio::buffer(*frames);
    const auto [ec, n] = co_await asio::async_write(out_, buffer, as_result);
    if (ec) lose();
  }
}

Task<void> ControlChannel::read() {
  control::FrameParser parser;
  std::string chunk(64u << 10, '\0');
  while (is_open_) {
    const auto buffer = asio::buffer(chunk);
    const auto [ec, n] = co_await in_.async_read_some(buffer, as_result);
    if (ec) break;
    last_heard_ = Clock::now();
    parser.push(std::string_view(chunk).substr(0, n));
    for (;;) {
      auto frame = parser.next();
      if (!frame || !*frame) {
        if (!frame) lose();
        break;
      }
      handle(**frame);
    }
  }
  lose();
}

void ControlChannel::handle(const control::Frame& frame) {
  const auto handler = handlers_.find(frame.type);
  if (handler == handlers_.end() || !handler->second(frame.body)) lose();
}

Task<void> ControlChannel::beat() {
  Deadline last_sent = Clock::now();
  StallWatch own_silence(kPollInterval);
  while (!is_stopped_ && is_open_) {
    const Deadline silent_at = last_heard_ + timeout_;
    const Deadline poll_at = Clock::now() + std::min(interval_, kPollInterval);
    co_await beat_wake_.wait_until(std::min(poll_at, silent_at));
    const auto now = Clock::now();
    last_heard_ = is_paused_ ? now : std::min(now, last_heard_ + own_silence.poll());
    if (now - last_sent >= interval_) {
      outgoing_.push(control::Type::kHeartbeat, {});
      last_sent = now;
    }
    if (now - last_heard_ >= timeout_) lose();
  }
}

// drun is gone or has sent an invalid frame.
void ControlChannel::lose() {
  if (!is_open_) return;
  is_open_ = false;
  outgoing_.close();
  boost::system::error_code ignored;
  in_.close(ignored);
  out_.close(ignored);
  lost_();
}

void ControlChannel::stop() {
  is_stopped_ = true;
  boost::system::error_code ignored;
  in_.close(ignored);
  beat_wake_.notify();
  outgoing_.finish();
}

}  // namespace drun::agent
