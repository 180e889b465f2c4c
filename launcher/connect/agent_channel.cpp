#include "launcher/connect/agent_channel.h"

#include <algorithm>

#include "base/error_id.h"
#include "launcher/connect/host_words.h"

namespace drun::launcher {

namespace {

// Each goes along with an order (Configure, Prepare). The better of two is rarely disturbed by other traffic, and each
// heartbeat brings another.
constexpr int kFirstPings = 2;
constexpr auto kPollInterval = std::chrono::milliseconds(500);
constexpr auto kFlushTime = std::chrono::milliseconds(500);
constexpr std::size_t kFirstRead = 4u << 10, kLargestRead = 128u << 10;  // a thousand hosts that say little cost little
constexpr auto kEndTime = std::chrono::seconds(2);  // some milliseconds, unless the host is busy or gone

}  // namespace

AgentChannel::AgentChannel(asio::io_context& io, AgentChannels& group, Host host,
                           std::unique_ptr<transport::Channel> channel, control::Hello hello,
                           control::FrameParser parser)
    : io_(io),
      group_(group),
      host_(std::move(host)),
      channel_(std::move(channel)),
      hello_(std::move(hello)),
      parser_(std::move(parser)),
      tasks_(io.get_executor()),
      outgoing_(io.get_executor()),
      beat_wake_(io.get_executor()),
      last_heard_(Clock::now()),
      own_stops_(kPollInterval),
      ended_(io.get_executor()) {
  group_.channels_.insert(this);
}

void AgentChannel::send(control::Type type, std::string_view body) {
  if (!control::fits_into_frame(body)) return refuse("drun's order to it would be larger than 16 MiB");
  if (type == control::Type::kSpawn) has_workers_ = true;
  outgoing_.push(type, body);
}

void AgentChannel::on(OnFrame frame, OnLost lost, OnSilent silent) {
  on_frame_ = std::move(frame);
  on_lost_ = std::move(lost);
  on_silent_ = std::move(silent);
}

void AgentChannel::set_times(HeartbeatTimes times) {
  times_ = times;
  last_heard_ = Clock::now();
  pings_left_ = kFirstPings;
  ping();
}

void AgentChannel::ping() {
  control::Ping m;
  m.sent_ns = static_cast<std::uint64_t>(monotonic_ns());
  send(control::Type::kPing, control::encode(m));
}

void AgentChannel::start() {
  last_heard_ = Clock::now();
  tasks_.spawn(read_loop());
  tasks_.spawn(write_loop());
  tasks_.spawn(beat_loop());
  if (group_.paused_) send(control::Type::kPause, {});
}

Task<Result<control::Frame>> AgentChannel::request(control::Type type, std::string body, control::Type reply,
                                                   std::string what, Deadline deadline, IsMeant is_meant) {
  if (!control::fits_into_frame(body)) {
    co_return fail(Errc::kUsage, host_.name, what + ": the request would be larger than 16 MiB");
  }
  auto waiting = std::make_shared<Waiting>(io_.get_executor());
  waiting->type = reply;
  waiting->is_meant = std::move(is_meant);
  waiting_.push_back(waiting);
  send(type, body);
  const auto asked = Clock::now();
  const bool in_time = lost_ || co_await waiting->arrived.wait_until(deadline);
  waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), waiting), waiting_.end());
  if (waiting->frame && waiting->frame->body.empty()) {
    co_return fail(Errc::kProtocol, host_.name, what + ": its agent's reply would be larger than 16 MiB");
  }
  if (waiting->frame) co_return std::move(*waiting->frame);
  if (lost_) {
    Error error = lost_error_;
    error.cause = what + ": " + error.cause;
    co_return fail(std::move(error));
  }
  if (!in_time) {
    const auto waited = std::chrono::round<std::chrono::seconds>(Clock::now() - asked).count();
    const std::string words = waited > 0 ? "its agent gave no answer within " + std::to_string(waited) + " s"
                                         : "no time was left for its agent's answer";
    co_return fail(Errc::kTimeout, host_.name, what + ": " + words);
  }
  co_return fail(Errc::kCanceled, host_.name, what + ": canceled");
}

Task<void> AgentChannel::read_loop() {
  co_await read_frames();
  ended_.notify();
}

Task<void> AgentChannel::read_frames() {
  std::string chunk(kFirstRead, '\0');
  for (;;) {
    for (;;) {
      auto frame = parser_.next();
      if (!frame) {
        lose(std::move(frame.error()).with_subject(host_.name));
        co_return;
      }
      if (!*frame) break;
      if (closed_ || lost_) co_return;
      if (ending_) continue;  // unused: the channel is ending
      last_heard_ = Clock::now();
      const auto type = (*frame)->type;
      if (type == control::Type::kFinished) has_workers_ = false;
      if (type == control::Type::kHeartbeat) continue;
      if (type == control::Type::kPong) {
        const auto pong = control::decode<control::Pong>((*frame)->body);
        if (pong) {
          clock_.add(static_cast<std::int64_t>(pong->sent_ns), monotonic_ns(),
                     static_cast<std::int64_t>(pong->host_ns));
        }
        if (pings_left_ > 0 && --pings_left_ > 0) ping();
        continue;
      }
      const auto taker =
          std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& w) { return w->takes(**frame); });
      if (taker != waiting_.end()) {
        (*taker)->frame = std::move(**frame);
        (*taker)->arrived.notify();
      } else if (on_frame_) {
        on_frame_(*this, std::move(**frame));
      }
    }
    const auto buffer = asio::buffer(chunk);
    const auto n = co_await channel_->read_some(buffer);
    if (closed_ || lost_) co_return;
    if (!n || *n == 0) {
      std::string cause =
          n ? "the connection to the agent ended" : "the connection to the agent broke: " + n.error().cause;
      Error error(Errc::kUnreachable, host_.name, std::move(cause));
      error.id = error_id::kHostLost;
      // Each line says whose it is, so that none can pass for drun's.
      for (const auto& line : last_lines_of_host(channel_->stderr_text())) {
        error = std::move(error).with_context("its last words: " + line);
      }
      lose(std::move(error));
      co_return;
    }
    parser_.push(std::string_view(chunk).substr(0, *n));
    if (*n == chunk.size() && chunk.size() < kLargestRead) chunk.resize(2 * chunk.size());
  }
}

Task<void> AgentChannel::write_loop() {
  for (;;) {
    const auto frames = co_await outgoing_.next();
    if (!frames) break;
    const auto buffer = asio::buffer(*frames);
    const auto written = co_await channel_->write(buffer);
    // A broken write is followed by the reader's end, which says more; the agent's last frames may still be on the way.
    if (!written) break;
    if (on_sent_) on_sent_();
  }
  outgoing_.close();
}

Task<void> AgentChannel::beat_loop() {
  Deadline last_sent = Clock::now();
  bool warned = false;
  while (!closed_ && !lost_ && !ending_) {
    const Deadline poll_at = Clock::now() + std::min(times_.interval, kPollInterval);
    co_await beat_wake_.wait_until(std::min(poll_at, last_heard_ + times_.timeout));
    if (closed_ || lost_ || ending_) break;
    const auto silence = silent_for();
    const auto now = Clock::now();
    if (now - last_sent >= times_.interval) {
      send(control::Type::kHeartbeat, {});
      if (clock_.ours(0)) ping();  // the job has begun: clocks drift
      last_sent = now;
    }
    if (silence >= times_.timeout) {
      lose_in_silence(silence);
      break;
    }
    if (silence < times_.warn) warned = false;
    if (silence >= times_.warn && !warned) {
      warned = true;
      if (on_silent_) on_silent_(*this, std::chrono::duration_cast<std::chrono::seconds>(silence));
    }
  }
}

void AgentChannel::lose(Error error) {
  if (lost_ || closed_ || ending_) return;
  lost_ = true;
  lost_error_ = error;
  for (const auto& w : waiting_) w->arrived.notify();
  outgoing_.close();
  beat_wake_.notify();
  if (on_lost_) on_lost_(*this, std::move(error));
}

void AgentChannel::lose_in_silence(Clock::duration silence) {
  if (lost_) return;
  lost_in_silence_ = true;
  lose(Error(Errc::kUnreachable, host_.name,
             "silent for " + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(silence).count()) +
                 " s: the host is down, frozen or cut off")
           .with_id(error_id::kHostLost));
}

Clock::duration AgentChannel::silent_for() {
  const auto now = Clock::now();
  last_heard_ = std::min(now, last_heard_ + own_stops_.poll());
  return now - last_heard_;
}

void AgentChannel::lose_if_silent() {
  const auto silence = silent_for();
  if (silence >= times_.warn) lose_in_silence(silence);
}

void AgentChannel::refuse(std::string cause) {
  if (lost_ || closed_ || ending_) return;
  lose(Error(Errc::kProtocol, host_.name, std::move(cause)));
  channel_->close();
}

Task<void> AgentChannels::pause() {
  paused_ = true;
  for (AgentChannel* agent : channels_) agent->send(control::Type::kPause, {});
  // Links may come and go meanwhile: none is waited on.
  const Deadline deadline = Clock::now() + kFlushTime;
  const auto flushed = [](const AgentChannel* agent) { return agent->outgoing_.flushed(); };
  while (!std::all_of(channels_.begin(), channels_.end(), flushed) && Clock::now() < deadline) {
    co_await sleep_until(Clock::now() + std::chrono::milliseconds(2));
  }
}

void AgentChannels::resume() {
  paused_ = false;
  for (AgentChannel* agent : channels_) agent->send(control::Type::kResume, {});
}

void AgentChannel::close() {
  closed_ = true;
  for (const auto& w : waiting_) w->arrived.notify();
  outgoing_.close();
  beat_wake_.notify();
  channel_->close();
}

Task<void> AgentChannel::end() {
  if (!closed_ && !lost_ && !has_workers_) {
    ending_ = true;
    for (const auto& w : waiting_) w->arrived.notify();
    outgoing_.close();
    beat_wake_.notify();
    channel_->close_write();
    co_await ended_.wait_until(Clock::now() + kEndTime);
  }
  close();
  co_await join();
}

Task<void> AgentChannel::join() {
  co_await tasks_.join();
  co_await channel_->join();
}

Task<void> end_channels(asio::io_context& io, const std::vector<std::unique_ptr<AgentChannel>>& agents) {
  TaskGroup group(io.get_executor());
  for (const auto& agent : agents) group.spawn(agent->end());
  co_await group.join();
}

}  // namespace drun::launcher
