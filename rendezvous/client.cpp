#include "rendezvous/client.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.h"
#include "rendezvous/connection.h"

namespace drun::rendezvous {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRequestTimeout = std::chrono::seconds(30);  // of what the server answers at once
constexpr milliseconds kBackstop = std::chrono::seconds(2);         // how much later than the server we give up
constexpr milliseconds kFarewellTimeout = std::chrono::seconds(2);
constexpr milliseconds kRetryPause = milliseconds(50);

milliseconds bounded(milliseconds timeout) {
  return std::clamp(timeout, milliseconds(0), milliseconds(std::numeric_limits<std::int32_t>::max()));
}
std::uint32_t on_wire(milliseconds timeout) { return static_cast<std::uint32_t>(bounded(timeout).count()); }

Error gone() { return Error(Errc::kPeerFailed, "the launcher is gone"); }

class ClientImpl final : public Client {
 public:
  explicit ClientImpl(Connection connection) : connection_(std::move(connection)) {}
  ~ClientImpl() override {
    // Best effort and without waiting; leave() is the way that waits.
    if (usable() && !partly_sent_) (void)connection_.send_some(connection_.seal(LeaveMessage{next_request_++}));
  }

  const Welcome& welcome() const override { return welcome_; }
  int fd() const override { return connection_.fd(); }

  // `again` is set if another attempt makes sense: the server was too busy to keep the connection.
  Result<void> enter(int rank, BlockingDeadline deadline, bool& again) {
    if (auto sent = send(JoinMessage{rank, static_cast<int>(::getpid())}, deadline); !sent) {
      again = sent.error().code == Errc::kPeerFailed && lost_ && !said_why_;
      return sent;
    }
    auto reply = await(0, deadline);
    if (!reply) {
      again = !notice_ && lost_ && !said_why_;
      return fail(reply.error());
    }
    welcome_ = std::get<Welcome>(std::move(*reply));
    if (welcome_.rank != rank) return fail(Errc::kProtocol, "the server welcomed another rank");
    return {};
  }

  Result<void> set(std::string_view key, std::string_view value, bool overwrite) override {
    if (auto ok = check_name("key", key); !ok) return ok;
    if (value.size() > kMaxValue) {
      return fail(Errc::kProtocol, "a value of " + std::to_string(value.size()) + " bytes is more than " +
                                       std::to_string(kMaxValue));
    }
    return expect_done(call(SetMessage{next_request_, std::string(key), std::string(value), overwrite}, kRequestTimeout));
  }

  Result<std::string> get(std::string_view key, Milliseconds timeout) override {
    if (auto ok = check_name("key", key); !ok) return fail(ok.error());
    return expect_value(call(GetMessage{next_request_, std::string(key), on_wire(timeout)}, bounded(timeout)));
  }

  Result<void> barrier(std::string_view name, Milliseconds timeout) override {
    if (auto ok = check_name("barrier", name); !ok) return ok;
    return expect_done(call(BarrierMessage{next_request_, std::string(name), on_wire(timeout)}, bounded(timeout)));
  }

  Result<std::string> nccl_id(std::string_view communicator, int attempt, int root,
                              const std::function<Result<std::string>()>& make, Milliseconds timeout) override {
    if (auto ok = check_name("communicator", communicator); !ok) return fail(ok.error());
    if (root != welcome_.rank) {
      return expect_value(call(NcclGetMessage{next_request_, std::string(communicator), attempt, root, on_wire(timeout)},
                               bounded(timeout)));
    }
    if (auto state = check(); !state) return fail(state.error());
    auto id = make();
    if (id && id->size() != kNcclIdBytes) {
      id = fail(Errc::kInternal, "an NCCL id of " + std::to_string(id->size()) + " bytes");
    }
    // A failure is told as well: nobody has to wait for an id that will never come.
    NcclPutMessage put{next_request_, std::string(communicator), attempt, id.has_value(),
                       id ? *id : id.error().message()};
    auto told = expect_done(call(std::move(put), kRequestTimeout));
    if (!id) return id;
    if (!told) return fail(told.error());
    return id;
  }

  Result<void> abort(std::string_view why) override {
    const auto deadline = SteadyClock::now() + kFarewellTimeout;
    if (auto sent = send(AbortMessage{std::string(why)}, deadline); !sent) return sent;
    // The server's push comes back to us too: only then is it safe to exit, which would drop what is still to be sent.
    const auto echo = await(0, deadline);
    if (notice_) return {};
    return fail(echo ? Error(Errc::kProtocol, "an answer that was not asked for") : echo.error());
  }

  Result<void> leave() override {
    if (left_) return {};
    const auto deadline = SteadyClock::now() + kFarewellTimeout;
    leaving_ = true;  // from here on an ABORT is no error
    const std::uint32_t request = next_request_++;
    auto sent = send(LeaveMessage{request}, deadline);
    Result<void> outcome = sent ? expect_done(await(request, deadline)) : sent;
    left_ = true;
    connection_.close();
    return outcome;
  }

  std::optional<AbortNotice> aborted() override {
    absorb();
    if (notice_) return notice_;
    if (lost_ && !left_) {
      AbortNotice notice;
      notice.why = lost_->message();
      return notice;
    }
    return std::nullopt;
  }

 private:
  bool usable() const { return !left_ && !lost_ && connection_.fd() >= 0; }

  // Everything that has arrived: a push is kept, a reply that somebody waits for is kept, a late one is dropped.
  void absorb() {
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

  void take(ServerMessage message) {
    if (auto* notice = std::get_if<AbortNotice>(&message)) {
      if (!notice_) notice_ = std::move(*notice);
      return;
    }
    std::uint32_t request = 0;  // WELCOME has none
    if (const auto* done = std::get_if<DoneReply>(&message)) request = done->request;
    if (const auto* value = std::get_if<ValueReply>(&message)) request = value->request;
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

  // Why no call can go on, if so.
  Result<void> check() const {
    if (left_) return fail(Errc::kClosed, "this rank has left the job");
    if (notice_ && !leaving_) return fail(Errc::kPeerFailed, culprit(*notice_), notice_->why);
    if (lost_) return fail(*lost_);
    return {};
  }

  Result<void> send(const ClientMessage& message, BlockingDeadline deadline) {
    absorb();
    if (auto state = check(); !state) return state;
    const std::string frame = connection_.seal(message);
    std::string_view rest = frame;
    for (;;) {
      const auto n = connection_.send_some(rest);
      if (!n) {
        absorb();  // the reason may have come before the end
        if (!lost_) lost_ = gone();
        return check();
      }
      rest.remove_prefix(*n);
      if (rest.empty()) return {};
      auto ready = wait_for(connection_.fd(), POLLIN | POLLOUT, deadline);
      absorb();
      auto state = check();
      if (ready && state) continue;
      partly_sent_ = rest.size() < frame.size();
      if (state && partly_sent_) lost_ = Error(Errc::kPeerFailed, "the launcher takes no messages");
      return state ? Result<void>(fail(Errc::kTimeout, "the launcher takes no messages")) : state;
    }
  }

  // The reply to `request`; 0: the welcome.
  Result<ServerMessage> await(std::uint32_t request, BlockingDeadline deadline) {
    awaited_ = request;
    reply_.reset();
    for (;;) {
      absorb();
      if (leaving_ && reply_) break;  // the server closes right after it
      if (auto state = check(); !state) {
        awaited_.reset();
        return fail(state.error());
      }
      if (reply_) break;
      if (auto ready = wait_for(connection_.fd(), POLLIN, deadline); !ready) {
        awaited_.reset();
        if (ready.error().code != Errc::kTimeout) return fail(ready.error());
        return fail(Errc::kTimeout, "the launcher did not answer in time");
      }
    }
    awaited_.reset();
    ServerMessage reply = std::move(*reply_);
    reply_.reset();
    if (const auto* error = std::get_if<ErrorReply>(&reply)) return fail(error->code, error->text);
    return reply;
  }

  // `message` carries next_request_. The server keeps the deadline; ours is a little later.
  Result<ServerMessage> call(ClientMessage message, milliseconds timeout) {
    const std::uint32_t request = next_request_++;
    if (next_request_ == 0) next_request_ = 1;
    const auto deadline = SteadyClock::now() + timeout + kBackstop;
    if (auto sent = send(message, deadline); !sent) return fail(sent.error());
    return await(request, deadline);
  }

  static Result<void> expect_done(const Result<ServerMessage>& reply) {
    if (!reply) return fail(reply.error());
    if (!std::holds_alternative<DoneReply>(*reply)) return fail(Errc::kProtocol, "an unexpected reply");
    return {};
  }
  static Result<std::string> expect_value(Result<ServerMessage> reply) {
    if (!reply) return fail(reply.error());
    auto* value = std::get_if<ValueReply>(&*reply);
    if (value == nullptr) return fail(Errc::kProtocol, "an unexpected reply");
    return std::move(value->value);
  }
  static Result<void> check_name(const char* what, std::string_view name) {
    if (!name.empty() && name.size() <= kMaxKey) return {};
    return fail(Errc::kProtocol, std::string("the name of a ") + what + " must have 1 to " + std::to_string(kMaxKey) +
                                     " bytes");
  }

  Connection connection_;
  Welcome welcome_;
  std::uint32_t next_request_ = 1;
  std::optional<std::uint32_t> awaited_;
  std::optional<ServerMessage> reply_;
  std::optional<AbortNotice> notice_;
  std::optional<Error> lost_;  // the connection is of no use any more, and why
  bool said_why_ = false;      // lost_ is the server's own word
  bool partly_sent_ = false;
  bool leaving_ = false;
  bool left_ = false;
};

}  // namespace

Result<std::unique_ptr<Client>> Client::join(const std::string& address, int port, const JobKey& key, int rank,
                                             Milliseconds timeout) {
  const auto deadline = SteadyClock::now() + bounded(timeout);
  const auto failed = [&](Error e) {
    return fail(std::move(e).with_context("while joining the job at " + host_port(address, port) + " as rank " +
                                          std::to_string(rank)));
  };
  for (;;) {
    bool again = false;
    Error why;
    auto connection = Connection::open(address, port, key, deadline);
    if (connection) {
      auto client = std::make_unique<ClientImpl>(std::move(*connection));
      auto entered = client->enter(rank, deadline, again);
      if (entered) return client;
      why = entered.error();
    } else {
      why = connection.error();
      again = why.code == Errc::kClosed;
    }
    if (!again || SteadyClock::now() + kRetryPause >= deadline) return failed(std::move(why));
    ::poll(nullptr, 0, static_cast<int>(kRetryPause.count()));
  }
}

}  // namespace drun::rendezvous
