#include <algorithm>
#include <optional>
#include <set>

#include "base/error_id.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/backoff.h"
#include "transport/connection_limit.h"
#include "transport/host_key_check.h"
#include "transport/libssh_channel.h"
#include "transport/libssh_session.h"
#include "transport/login.h"
#include "transport/openssh_args.h"
#include "transport/proxy.h"
#include "transport/tcp_connect.h"
#include "transport/transport.h"

namespace drun::transport {
namespace {

// All connections through a jump host log in there: fewer at once than the 10 from which its sshd drops some.
constexpr int kProxiesAtOnce = 8;
constexpr auto kProxyTurn = std::chrono::seconds(2);

std::string_view id_of_phase(std::string_view phase) {
  for (const auto id : {error_id::kConnect, error_id::kHandshake, error_id::kLogin, error_id::kExec}) {
    if (phase == id) return id;
  }
  return error_id::kHostKey;
}

class LibsshTransport final : public Transport {
 public:
  LibsshTransport(asio::io_context& io, asio::thread_pool& helper, Notice notice, std::chrono::milliseconds silence)
      : io_(io),
        helper_(helper),
        silence_(silence),
        notice_(std::move(notice)),
        host_keys_(notice_),
        login_(io),
        proxies_(io.get_executor(), kProxiesAtOnce),
        openssh_(make_openssh_transport(io, {}, "")) {
    ignore_sigpipe();
  }

  Task<Result<std::unique_ptr<Channel>>> open(const SshTarget& target, const std::string& command, Deadline deadline,
                                              const OnPhase* on_phase) override {
    std::string reason = target.needs_openssh;
    const auto known = host_keys_.known(target);
    if (reason.empty() && known.has_authority()) reason = "@cert-authority in known_hosts";
    if (!reason.empty()) {
      tell_openssh(target, reason);
      co_return co_await openssh_->open(target, command, deadline, on_phase);
    }
    const std::string algorithms = HostKeyCheck::algorithms(target, known);
    Backoff backoff;
    for (;;) {
      Try attempt(target, command, algorithms, deadline, on_phase);
      auto channel = co_await open_once(attempt);
      if (channel) co_return channel;
      if (attempt.may_have_ticket) {
        tell_openssh(target, "its server offers gssapi, and GSSAPIAuthentication is yes");
        co_return co_await openssh_->open(target, command, deadline, on_phase);
      }
      const auto next = attempt.dropped ? backoff.next(deadline) : std::nullopt;
      if (!next) {
        Error error = std::move(channel.error());
        if (error.subject.empty()) error.subject = target.alias;
        if (error.hint.empty()) error.hint = typed_ssh(target) + " true";
        error.code = Errc::kUnreachable;
        co_return fail(std::move(error));
      }
      log::debug(target.alias + ": dropped before the banner, trying again: " + channel.error().cause);
      co_await sleep_until(*next);
    }
  }

 private:
  struct Try {
    Try(const SshTarget& t, std::string c, std::string a, Deadline d, const OnPhase* p)
        : target(t), command(std::move(c)), algorithms(std::move(a)), deadline(d), on_phase(p) {}
    const SshTarget& target;
    std::string command;
    std::string algorithms;
    Deadline deadline;
    const OnPhase* on_phase;
    Clock::time_point start = Clock::now();
    Deadline connected_by;         // key exchange included: `deadline`, or earlier by ssh's ConnectTimeout
    bool dropped = false;          // the server closed the connection before its banner
    bool may_have_ticket = false;  // no key was good, but ssh could log in by Kerberos
    std::string phase = "connect";
    std::unique_ptr<ConnectionLimit::Pass> turn;

    // Lookups, the turn at a jump host and earlier tries do not count for ConnectTimeout, as in OpenSSH. (There each
    // address has as much; here all share it.)
    void begin_connect() {
      start = Clock::now();
      connected_by = deadline;
      if (target.connect_timeout.count() > 0) connected_by = std::min(deadline, start + target.connect_timeout);
    }
  };

  // Once for each reason.
  void tell_openssh(const SshTarget& target, const std::string& reason) {
    const std::string words = target.alias + ": reached through OpenSSH's own client (" + reason + ")";
    if (openssh_reasons_.insert(reason).second) {
      notice_(words);
    } else {
      log::debug(words);
    }
  }

  Task<Result<std::unique_ptr<Channel>>> open_once(Try& attempt) {
    Fd socket;
    std::unique_ptr<Proxy> proxy;
    const auto proxy_command = Proxy::command_for(attempt.target);
    if (proxy_command.empty()) {
      TcpTarget where(attempt.target.host_name, attempt.target.port);
      where.family = attempt.target.address_family;
      where.bind_address = attempt.target.bind_address;
      where.silence = silence_;
      notify_phase(attempt.on_phase, Phase::kResolve);
      auto endpoints = co_await look_up(helper_, where, attempt.deadline);
      if (!endpoints) co_return fail(std::move(endpoints.error()));
      notify_phase(attempt.on_phase, Phase::kConnect);
      attempt.begin_connect();
      auto connected = co_await connect_tcp(std::move(where), std::move(*endpoints), attempt.connected_by);
      if (!connected) co_return fail(std::move(connected.error()));
      socket = std::move(*connected);
    } else {
      notify_phase(attempt.on_phase, Phase::kConnect);
      attempt.turn = co_await proxies_.enter(attempt.deadline, kProxyTurn);
      if (!attempt.turn) {
        co_return fail(Error(Errc::kUnreachable, "connect: other hosts behind a proxy took all the time")
                           .with_id(error_id::kConnect));
      }
      attempt.begin_connect();
      auto started = Proxy::start(io_, proxy_command, socket);
      if (!started) {
        co_return fail(
            Error(Errc::kUnreachable, "connect: proxy: " + started.error().message()).with_id(error_id::kConnect));
      }
      proxy = std::move(*started);
    }
    auto session = LibsshSession::create(io_, attempt.target, attempt.algorithms, std::move(socket));
    Result<std::unique_ptr<Channel>> result;
    if (session) {
      result = co_await over_session(attempt, std::move(*session), proxy);
    } else {
      result = fail(std::move(session.error()));
    }
    if (proxy) {  // no channel has taken it over
      if (!result && attempt.phase == "handshake") {
        co_await proxy->settle();
        auto words = proxy->words();
        if (proxy->failed() && !words.empty()) {  // else they are a banner, or a warning
          result.error().cause = "connect: proxy: " + words.back();
          result.error().id = error_id::kConnect;
          words.pop_back();
        }
        for (const auto& line : words) result = fail(std::move(result.error()).with_context("the proxy said: " + line));
        // A proxy that fails by itself exits with an error; one whose far end hung up exits with 0 or keeps running.
        attempt.dropped = attempt.dropped && (proxy->was_dropped() || !proxy->failed());
      }
      proxy->end();
      co_await proxy->join();
    }
    attempt.turn.reset();
    co_return result;
  }

  Task<Result<std::unique_ptr<Channel>>> over_session(Try& attempt, std::unique_ptr<LibsshSession> session,
                                                      std::unique_ptr<Proxy>& proxy) {
    LibsshSession& s = *session;
    const auto abort = [&s] { s.abort(); };  // captures only the session, which outlives the guarded calls
    const auto timed_out = [&] {
      const auto waited = std::chrono::round<std::chrono::seconds>(Clock::now() - attempt.start).count();
      std::string cause = attempt.phase + ": no answer within " + std::to_string(waited) + " s";
      if (attempt.phase == "handshake" && !s.has_banner()) cause += "; the port is open, but no ssh server speaks";
      return Error(Errc::kUnreachable, std::move(cause)).with_id(id_of_phase(attempt.phase));
    };

    attempt.phase = "handshake";
    notify_phase(attempt.on_phase, Phase::kHandshake);
    Result<void> ready;
    bool in_time = false;
    {
      DeadlineGuard guard(io_.get_executor(), attempt.connected_by, abort);
      ready = co_await s.handshake();
      in_time = !guard.fired();
    }
    if (!in_time) co_return fail(timed_out());
    if (!ready) {
      attempt.dropped = !s.has_banner();
      co_return fail(Error(Errc::kUnreachable, "handshake: " + ready.error().cause).with_id(error_id::kHandshake));
    }
    attempt.turn.reset();
    DeadlineGuard guard(io_.get_executor(), attempt.deadline, abort);
    attempt.phase = "host key";
    auto trusted = co_await host_keys_.check(s.raw(), attempt.target);
    if (guard.fired()) co_return fail(timed_out());
    if (!trusted) co_return fail(std::move(trusted.error()));
    attempt.phase = "login";
    notify_phase(attempt.on_phase, Phase::kLogin);
    auto logged_in = co_await login_.run(s, attempt.target, attempt.deadline);
    if (guard.fired()) co_return fail(timed_out());
    if (!logged_in) {
      const auto methods = static_cast<unsigned>(ssh_userauth_list(s.raw(), nullptr));
      attempt.may_have_ticket = attempt.target.tries_gssapi && (methods & SSH_AUTH_METHOD_GSSAPI_MIC) != 0;
      co_return fail(std::move(logged_in.error()));
    }
    attempt.phase = "exec";
    notify_phase(attempt.on_phase, Phase::kAgent);
    auto channel = std::make_unique<LibsshChannel>(io_, std::move(session), std::move(proxy), attempt.target.alias);
    auto started = co_await channel->start(attempt.command);
    if (started && !guard.fired()) co_return std::unique_ptr<Channel>(std::move(channel));
    const Error error = guard.fired() ? timed_out() : started.error();
    channel->close();
    co_await channel->join();
    co_return fail(error);
  }

  asio::io_context& io_;
  asio::thread_pool& helper_;
  std::chrono::milliseconds silence_;
  Notice notice_;
  HostKeyCheck host_keys_;
  Login login_;
  ConnectionLimit proxies_;
  std::unique_ptr<Transport> openssh_;
  std::set<std::string> openssh_reasons_;  // that were told
};

}  // namespace

std::unique_ptr<Transport> make_libssh_transport(asio::io_context& io, asio::thread_pool& helper, Notice notice,
                                                 std::chrono::milliseconds silence) {
  return std::make_unique<LibsshTransport>(io, helper, std::move(notice), silence);
}

}  // namespace drun::transport
