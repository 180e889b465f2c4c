#include "rendezvous/server.h"

#include <boost/asio/ip/tcp.hpp>
#include <cassert>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "base/accept.h"
#include "base/clean_text.h"
#include "base/log.h"
#include "rendezvous/listening.h"
#include "rendezvous/roster.h"
#include "rendezvous/session.h"
#include "rendezvous/store.h"

namespace drun::rendezvous {
namespace {

using Tcp = asio::ip::tcp;
using SessionPtr = std::shared_ptr<Session>;

constexpr auto kAdmissionTimeout = std::chrono::seconds(5);  // from the connection to the accepted JOIN
constexpr auto kFinishTimeout = std::chrono::seconds(2);
// Time that a JOIN waits for its rank to leave the job: a worker's next program may join before the end of the previous
// one has been noticed (a lost packet is resent after 200 ms).
constexpr auto kSuccessionTimeout = std::chrono::seconds(1);
constexpr std::size_t kMaxFirstFrame = 4096;
constexpr std::size_t kMaxSentAtOnce = 64;

class ServerImpl final : public Server {
 public:
  ServerImpl(const asio::any_io_executor& executor, const JobKey& key, std::vector<Member> members, std::string job_id,
             ServerEvents events, std::size_t n_spare)
      : executor_(executor),
        key_(key),
        roster_(std::move(members), std::move(job_id)),
        store_(roster_),
        events_(std::move(events)),
        n_spare_(n_spare),
        sooner_(executor),
        tasks_(executor) {
    tasks_.spawn(expire_waits());
  }
  ~ServerImpl() override { assert(tasks_.running() == 0); }

  Result<int> listen(const std::string& address) override {
    auto acceptor = listen_on(executor_, address);
    if (!acceptor) return fail(acceptor.error());
    const int port = acceptor->local_endpoint().port();
    acceptor_.emplace(std::move(*acceptor));
    std::function<void(Tcp::socket)> take = [this](Tcp::socket socket) {
      adopt(asio::generic::stream_protocol::socket(std::move(socket)));
    };
    tasks_.spawn(accept_all(*acceptor_, std::move(take)));
    return port;
  }

  void adopt(asio::generic::stream_protocol::socket socket) override {
    if (stopped_) return;
    auto session = std::make_shared<Session>(++last_session_, std::move(socket), tasks_);
    sessions_.emplace(session->id(), session);
    strangers_.insert(session->id());
    // Closes the oldest, so that idle connections that never join can't shut out a worker that connects later. All
    // ranks may be about to join at once.
    while (strangers_.size() > static_cast<std::size_t>(roster_.n_absent()) + n_spare_) {
      sessions_.at(*strangers_.begin())->close();
      strangers_.erase(strangers_.begin());
    }
    tasks_.spawn(serve(std::move(session)));
  }

  void abort(const Abort& reason) override {
    if (abort_) return;
    abort_ = notice_of(reason);
    const EncodedMessage message{"", std::make_shared<const std::string>(encode(*abort_))};
    const auto everybody = sessions_;
    for (const auto& [id, session] : everybody) {
      if (session->rank < 0) continue;
      session->send(message);
      session->write_now();
    }
  }

  void note(int rank, std::string text) override { roster_.note(rank, std::move(text)); }

  std::vector<int> joined() const override { return roster_.joined(); }

  void stop() override {
    if (stopped_) return;
    stopped_ = true;
    boost::system::error_code ignored;
    if (acceptor_) acceptor_->close(ignored);
    for (const auto& [id, session] : sessions_) session->close();
    for (const auto& [rank, seat_is_free] : successors_) seat_is_free->notify();
    sooner_.notify();
  }

  Task<void> join() override { return tasks_.join(); }

 private:
  static AbortNotice notice_of(const Abort& abort) {
    AbortNotice notice;
    notice.rank = abort.rank;
    notice.host = abort.host;
    notice.pid = abort.pid;
    notice.why = abort.why;
    return notice;
  }

  Task<void> serve(SessionPtr session) {
    const bool admitted = co_await admit(session);
    if (admitted) co_await converse(session);
    const Deadline deadline = Clock::now() + kFinishTimeout;
    co_await session->finish(deadline);
    session->close();
    if (session->rank >= 0) depart(*session, false);
    strangers_.erase(session->id());
    sessions_.erase(session->id());
  }

  // Handshake and JOIN.
  Task<bool> admit(SessionPtr session) {
    const Deadline deadline = Clock::now() + kAdmissionTimeout;
    const DeadlineGuard guard(executor_, deadline, [session] { session->close(); });
    const auto proven = co_await session->prove(key_);
    if (!proven) {
      log::debug("rendezvous: a connection was refused: " + proven.error().message());
      session->close();
      co_return false;
    }
    const auto message = co_await session->receive(kMaxFirstFrame);
    if (!message) {
      log::debug("rendezvous: a connection ended before it joined: " + message.error().message());
      session->close();
      co_return false;
    }
    const auto* join = std::get_if<JoinMessage>(&*message);
    if (join != nullptr) co_await wait_for_seat(session, join->rank);
    if (!session->is_open()) co_return false;
    if (abort_) {
      session->send(*abort_);
      co_return false;
    }
    const auto accepted = join != nullptr ? roster_.join(join->rank, join->pid)
                                          : Result<void>(fail(Errc::kProtocol, "the first message must be JOIN"));
    if (!accepted) {
      log::info("rendezvous: " + accepted.error().message());
      session->send(ErrorReply{0, Errc::kProtocol, accepted.error().message()});
      co_return false;
    }
    strangers_.erase(session->id());
    session->rank = join->rank;
    session->pid = join->pid;
    session->epoch = roster_.epoch();
    session->send(encode_welcome(roster_.welcome(join->rank), roster_.hosts()));
    deliver(store_.close_epochs());
    if (events_.joined) events_.joined(join->rank, join->pid);
    co_return true;
  }

  // Waits until the rank is not in the job, at most kSuccessionTimeout.
  Task<void> wait_for_seat(SessionPtr session, int rank) {
    const Deadline deadline = Clock::now() + kSuccessionTimeout;
    for (bool in_time = true; in_time && session->is_open() && roster_.is_joined(rank);) {
      Event seat_is_free(executor_);
      const auto place = successors_.emplace(rank, &seat_is_free);
      in_time = co_await seat_is_free.wait_until(deadline);
      successors_.erase(place);
    }
  }

  Task<void> converse(SessionPtr session) {
    while (session->is_open() && session->rank >= 0) {
      auto message = co_await session->receive(kMaxFrame);
      if (!message) {
        const Errc code = message.error().code;
        if (code != Errc::kProtocol && code != Errc::kAuth) break;
        log::info("rendezvous: rank " + std::to_string(session->rank) + ": " + message.error().message());
        session->send(ErrorReply{0, Errc::kProtocol, message.error().message()});
        depart(*session, false);
        break;
      }
      handle(*session, std::move(*message));
    }
  }

  void handle(Session& session, ClientMessage message) {
    const Asker asker{session.id(), session.rank, request_of(message), session.epoch};
    const Deadline now = Clock::now();
    if (auto* set = std::get_if<SetMessage>(&message)) deliver(store_.set(asker, std::move(*set)));
    if (const auto* get = std::get_if<GetMessage>(&message)) deliver(store_.get(asker, *get, now));
    if (const auto* gone = std::get_if<DeleteMessage>(&message)) deliver(store_.erase(asker, *gone));
    if (const auto* barrier = std::get_if<BarrierMessage>(&message)) deliver(store_.barrier(asker, *barrier, now));
    if (auto* put = std::get_if<NcclPutMessage>(&message)) deliver(store_.nccl_put(asker, std::move(*put)));
    if (const auto* get = std::get_if<NcclGetMessage>(&message)) deliver(store_.nccl_get(asker, *get, now));
    if (const auto* request = std::get_if<AbortMessage>(&message)) {
      const Abort reason{session.rank, roster_.host(session.rank), session.pid, clean_line(request->why)};
      const bool first = !abort_;
      abort(reason);
      if (first && events_.abort_requested) events_.abort_requested(reason);
    }
    if (const auto* complaint = std::get_if<ComplainMessage>(&message); complaint && events_.complained) {
      events_.complained(session.rank, clean_line(complaint->text));
    }
    if (std::holds_alternative<LeaveMessage>(message)) {
      session.send(DoneReply{asker.request});
      depart(session, true);
    }
    if (std::holds_alternative<JoinMessage>(message)) {
      session.send(ErrorReply{0, Errc::kProtocol, "this connection has already joined"});
      depart(session, false);
    }
    if (store_.next_deadline().value_or(Deadline::max()) < armed_) sooner_.notify();
  }

  void depart(Session& session, bool orderly) {
    const int rank = std::exchange(session.rank, -1);
    store_.forget(session.id());
    roster_.leave(rank, orderly);
    deliver(store_.close_epochs());
    if (events_.left) events_.left(rank, orderly);
    const auto [first, last] = successors_.equal_range(rank);
    for (auto at = first; at != last; ++at) at->second->notify();
  }

  // If there are many, such as those of a barrier, the event loop does other work between them.
  void deliver(const StoreReplies& replies) {
    const bool many = replies.size() > kMaxSentAtOnce;
    for (const auto& reply : replies) {
      const auto session = sessions_.find(reply.session);
      if (session == sessions_.end()) continue;
      if (many) {
        session->second->send_later(reply.message);
      } else {
        session->second->send(reply.message);
      }
    }
  }

  Task<void> expire_waits() {
    while (!stopped_) {
      armed_ = store_.next_deadline().value_or(Deadline::max());
      co_await sooner_.wait_until(armed_);
      sooner_.reset();
      deliver(store_.expire(Clock::now()));
    }
  }

  asio::any_io_executor executor_;
  JobKey key_;
  Roster roster_;
  Store store_;
  ServerEvents events_;
  std::size_t n_spare_;
  std::optional<AbortNotice> abort_;
  std::optional<Tcp::acceptor> acceptor_;
  std::uint64_t last_session_ = 0;
  std::map<std::uint64_t, SessionPtr> sessions_;
  std::set<std::uint64_t> strangers_;      // have not joined; ids grow with age
  std::multimap<int, Event*> successors_;  // by rank: JOINs that wait until the rank has left
  Deadline armed_ = Deadline::max();
  Event sooner_;  // there is a deadline earlier than armed_
  bool stopped_ = false;
  TaskGroup tasks_;
};

}  // namespace

std::unique_ptr<Server> Server::create(const asio::any_io_executor& executor, const JobKey& key,
                                       std::vector<Member> members, std::string job_id, ServerEvents events,
                                       std::size_t n_spare) {
  return std::make_unique<ServerImpl>(executor, key, std::move(members), std::move(job_id), std::move(events), n_spare);
}

}  // namespace drun::rendezvous
