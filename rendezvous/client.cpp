#include "rendezvous/client.h"

#include <poll.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

#include "base/text.h"
#include "rendezvous/request_channel.h"
#include "rendezvous/retry.h"

namespace drun::rendezvous {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRequestTimeout = std::chrono::seconds(30);  // for requests that the server answers at once
constexpr milliseconds kFarewellTimeout = std::chrono::seconds(2);
constexpr milliseconds kComplaintTimeout{200};

milliseconds bounded(milliseconds timeout) {
  return std::clamp(timeout, milliseconds(0), milliseconds(std::numeric_limits<std::int32_t>::max()));
}
std::uint32_t on_wire(milliseconds timeout) { return static_cast<std::uint32_t>(bounded(timeout).count()); }

Result<void> expect_done(const Result<ServerMessage>& reply) {
  if (!reply) return fail(reply.error());
  if (!std::holds_alternative<DoneReply>(*reply)) return fail(Errc::kProtocol, "an unexpected reply");
  return {};
}

Result<std::string> expect_value(Result<ServerMessage> reply) {
  if (!reply) return fail(reply.error());
  auto* value = std::get_if<ValueReply>(&*reply);
  if (value == nullptr) return fail(Errc::kProtocol, "an unexpected reply");
  return *value->value;
}

Result<void> check_name(const char* what, std::string_view name) {
  if (!name.empty() && name.size() <= kMaxKey) return {};
  return fail(Errc::kProtocol,
              std::string("the name of a ") + what + " must have 1 to " + std::to_string(kMaxKey) + " bytes");
}

class ClientImpl final : public Client {
 public:
  explicit ClientImpl(Connection connection) : exchange_(std::move(connection)) {}
  ~ClientImpl() override { exchange_.leave_in_passing(); }

  const Welcome& welcome() const override { return welcome_; }
  int fd() const override { return exchange_.fd(); }

  Result<void> enter(int rank, BlockingDeadline& deadline) {
    if (auto sent = exchange_.send(JoinMessage{rank, static_cast<int>(::getpid())}, deadline); !sent) return sent;
    auto reply = exchange_.await(0, deadline);
    if (!reply) return fail(reply.error());
    auto* welcome = std::get_if<Welcome>(&*reply);
    if (welcome == nullptr || welcome->rank != rank) return fail(Errc::kProtocol, "not the welcome that was asked for");
    welcome_ = std::move(*welcome);
    return {};
  }
  bool ended_without_reason() const { return exchange_.ended_without_reason(); }

  Result<void> set(std::string_view key, std::string_view value, bool overwrite) override {
    if (auto ok = check_name("key", key); !ok) return ok;
    if (value.size() > kMaxValue) {
      return fail(Errc::kProtocol,
                  "a value of " + std::to_string(value.size()) + " bytes is more than " + std::to_string(kMaxValue));
    }
    const std::uint32_t request = exchange_.new_request();
    const SetMessage message{request, std::string(key), std::string(value), overwrite};
    return expect_done(exchange_.call(message, request, kRequestTimeout));
  }

  Result<std::string> get(std::string_view key, Milliseconds timeout, int cancel_fd) override {
    if (auto ok = check_name("key", key); !ok) return fail(ok.error());
    const std::uint32_t request = exchange_.new_request();
    const GetMessage message{request, std::string(key), on_wire(timeout)};
    return expect_value(exchange_.call(message, request, bounded(timeout), cancel_fd));
  }

  Result<bool> erase(std::string_view key) override {
    if (auto ok = check_name("key", key); !ok) return fail(ok.error());
    const std::uint32_t request = exchange_.new_request();
    const auto reply = exchange_.call(DeleteMessage{request, std::string(key)}, request, kRequestTimeout);
    if (!reply) return fail(reply.error());
    const auto* deleted = std::get_if<DeletedReply>(&*reply);
    if (deleted == nullptr) return fail(Errc::kProtocol, "an unexpected reply");
    return deleted->existed;
  }

  Result<void> barrier(std::string_view name, Milliseconds timeout) override {
    if (auto ok = check_name("barrier", name); !ok) return ok;
    const std::uint32_t request = exchange_.new_request();
    const BarrierMessage message{request, std::string(name), on_wire(timeout)};
    return expect_done(exchange_.call(message, request, bounded(timeout)));
  }

  Result<std::string> nccl_id(std::string_view communicator, int attempt, int root,
                              const std::function<Result<std::string>()>& make, Milliseconds timeout,
                              int cancel_fd) override {
    if (auto ok = check_name("communicator", communicator); !ok) return fail(ok.error());
    if (root == welcome_.rank) return make_nccl_id(std::string(communicator), attempt, make);
    const std::uint32_t request = exchange_.new_request();
    const NcclGetMessage message{request, std::string(communicator), attempt, root, on_wire(timeout)};
    return expect_value(exchange_.call(message, request, bounded(timeout), cancel_fd));
  }

  Result<void> abort(std::string_view why) override {
    BlockingDeadline deadline = SteadyClock::now() + kFarewellTimeout;
    if (auto sent = exchange_.send(AbortMessage{std::string(why)}, deadline); !sent) return sent;
    // Waits for the server's push of this ABORT: exiting earlier could drop bytes that are still to be sent.
    const auto echo = exchange_.await(0, deadline);
    if (exchange_.notice()) return {};
    return fail(echo ? Error(Errc::kProtocol, "an answer that was not asked for") : echo.error());
  }

  void complain(std::string_view text) override {
    BlockingDeadline deadline = SteadyClock::now() + kComplaintTimeout;
    (void)exchange_.send(ComplainMessage{std::string(text)}, deadline);
  }

  Result<void> leave() override {
    if (exchange_.closed()) return {};
    BlockingDeadline deadline = SteadyClock::now() + kFarewellTimeout;
    exchange_.begin_to_leave();
    const std::uint32_t request = exchange_.new_request();
    Result<void> outcome = exchange_.send(LeaveMessage{request}, deadline);
    if (outcome) outcome = expect_done(exchange_.await(request, deadline));
    exchange_.close();
    return outcome;
  }

  std::optional<AbortNotice> aborted() override {
    exchange_.absorb();
    if (exchange_.notice()) return exchange_.notice();
    if (!exchange_.lost() || exchange_.closed()) return std::nullopt;
    AbortNotice notice;
    notice.why = exchange_.lost()->message();
    return notice;
  }

 private:
  Result<std::string> make_nccl_id(std::string communicator, int attempt,
                                   const std::function<Result<std::string>()>& make) {
    if (auto state = exchange_.check(); !state) return fail(state.error());
    auto id = make();
    if (id && id->size() != kNcclIdBytes) {
      id = fail(Errc::kInternal, "an NCCL id of " + std::to_string(id->size()) + " bytes");
    }
    // Sends a failure too, so that no rank waits for an id that never comes.
    const std::uint32_t request = exchange_.new_request();
    const NcclPutMessage put{request, std::move(communicator), attempt, id.has_value(),
                             id ? *id : id.error().message()};
    const auto told = expect_done(exchange_.call(put, request, kRequestTimeout));
    if (id && !told) return fail(told.error());
    return id;
  }

  RequestChannel exchange_;
  Welcome welcome_;
};

}  // namespace

Result<std::unique_ptr<Client>> Client::join(const std::string& address, int port, const JobKey& key, int rank,
                                             Milliseconds timeout) {
  BlockingDeadline deadline = SteadyClock::now() + bounded(timeout);
  for (int n_failed = 1;; ++n_failed) {
    Error why;
    bool again = false;  // the server was too busy to keep the connection
    auto connection = Connection::open(address, port, key, deadline);
    if (connection) {
      auto client = std::make_unique<ClientImpl>(std::move(*connection));
      auto entered = client->enter(rank, deadline);
      if (entered) return client;
      why = entered.error();
      again = client->ended_without_reason();
    } else {
      why = connection.error();
      again = why.code == Errc::kClosed;
    }
    const auto left = std::chrono::floor<milliseconds>(deadline - SteadyClock::now());
    if (!again || left <= kFirstRetryPause) {
      return fail(std::move(why).with_context("while joining the job at " + host_port(address, port) + " as rank " +
                                              std::to_string(rank)));
    }
    // Leaves time for the last try.
    const milliseconds pause = std::min(retry_pause(n_failed, randombytes_random()), left / 2);
    ::poll(nullptr, 0, static_cast<int>(pause.count()));
  }
}

}  // namespace drun::rendezvous
