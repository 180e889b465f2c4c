#include "rendezvous/request_channel.h"

#include <poll.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace drun::rendezvous {
namespace {

constexpr auto kBackstop = std::chrono::seconds(2);  // added to the server's timeout, which must expire first

Error gone() { return Error(Errc::kPeerFailed, "the launcher is gone"); }

}  // namespace

std::uint32_t RequestChannel::new_request() {
  if (++last_request_ == 0) ++last_request_;
  return last_request_;
}

void RequestChannel::absorb() {
  while (usable()) {
    auto message = connection_.receive();
    if (!message) {
      lost_ = message.error().code == Errc::kClosed ? gone() : std::move(message.error());
      return;
    }
    if (!message->has_value()) return;
    take(std::move(**message));
  }
}

void RequestChannel::take(ServerMessage message) {
  if (auto* notice = std::get_if<AbortNotice>(&message)) {
    if (!notice_) notice_ = std::move(*notice);
    return;
  }
  std::uint32_t request = 0;  // WELCOME has none
  if (const auto* done = std::get_if<DoneReply>(&message)) request = done->request;
  if (const auto* value = std::get_if<ValueReply>(&message)) request = value->request;
  if (const auto* deleted = std::get_if<DeletedReply>(&message)) request = deleted->request;
  if (auto* error = std::get_if<ErrorReply>(&message)) {
    request = error->request;
    if (request == 0) {
      lost_ = Error(error->code, std::move(error->text));
      said_why_ = true;
      return;
    }
  }
  if (awaited_ && *awaited_ == request) reply_ = std::move(message);
}

Result<void> RequestChannel::check() const {
  if (closed_) return fail(Errc::kClosed, "this rank has left the job");
  if (notice_ && !leaving_) return fail(Errc::kPeerFailed, attribution(*notice_), notice_->why);
  if (lost_) return fail(*lost_);
  return {};
}

Result<void> RequestChannel::send(const ClientMessage& message, BlockingDeadline& deadline) {
  absorb();
  if (auto state = check(); !state) return state;
  const std::string frame = connection_.seal(message);
  std::string_view rest = frame;
  for (;;) {
    const auto n = connection_.send_some(rest);
    if (!n) {
      absorb();  // the reason may have arrived before EOF
      if (!lost_) lost_ = gone();
      return check();
    }
    rest.remove_prefix(*n);
    if (rest.empty()) return {};
    const auto ready = wait_for(connection_.fd(), POLLIN | POLLOUT, deadline);
    absorb();
    const auto state = check();
    if (ready && state) continue;
    // A frame that was sealed but not sent completely, even not at all, leaves the cipher out of step with the server.
    partly_sent_ = true;
    if (!lost_) lost_ = Error(Errc::kPeerFailed, "the launcher takes no messages");
    return state ? Result<void>(fail(Errc::kTimeout, "the launcher takes no messages")) : state;
  }
}

Result<ServerMessage> RequestChannel::await(std::uint32_t request, BlockingDeadline& deadline, int cancel_fd) {
  awaited_ = request;
  reply_.reset();
  Result<void> outcome;
  for (;;) {
    absorb();
    if (leaving_ && reply_) break;  // the server closes right after it
    outcome = check();
    if (!outcome || reply_) break;
    const auto ready = wait_for(connection_.fd(), POLLIN, deadline, cancel_fd);
    if (ready) continue;
    outcome = ready.error().code == Errc::kTimeout ? fail(Errc::kTimeout, "the launcher did not answer in time")
                                                   : fail(ready.error());
    break;
  }
  awaited_.reset();
  if (!outcome) return fail(outcome.error());
  ServerMessage reply = std::move(*reply_);
  reply_.reset();
  if (const auto* error = std::get_if<ErrorReply>(&reply)) return fail(error->code, error->text);
  return reply;
}

Result<ServerMessage> RequestChannel::call(const ClientMessage& message, std::uint32_t request,
                                           std::chrono::milliseconds timeout, int cancel_fd) {
  BlockingDeadline deadline = std::chrono::steady_clock::now() + timeout + kBackstop;
  if (auto sent = send(message, deadline); !sent) return fail(sent.error());
  return await(request, deadline, cancel_fd);
}

void RequestChannel::close() {
  closed_ = true;
  connection_.close();
}

void RequestChannel::leave_in_passing() {
  if (usable() && !partly_sent_) (void)connection_.send_some(connection_.seal(LeaveMessage{new_request()}));
}

}  // namespace drun::rendezvous
