#include "launcher/supervisor.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "launcher/exit_status.h"

namespace drun::launcher {

namespace {

using std::chrono::milliseconds;

// Workers that joined the rendezvous hear ABORT first, so that they can report the error by name.
constexpr auto kAbortLead = milliseconds(1000);
// After TERM, grace and KILL: how long an agent may take to say that all is over.
constexpr auto kFinishTime = milliseconds(10000);

std::string signal_text(int number) {
  const char* name = ::sigabbrev_np(number);
  std::string text = name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(number);
  const char* words = ::sigdescr_np(number);
  if (words != nullptr) text += " (" + lower(words) + ")";
  return text;
}

}  // namespace

Supervisor::Supervisor(asio::io_context& io, Reporter& reporter, milliseconds grace)
    : io_(io),
      reporter_(reporter),
      grace_(grace),
      relays_(io.get_executor()),
      over_(io.get_executor()),
      deadline_changed_(io.get_executor()) {}

void Supervisor::attach(Parts parts) {
  parts_ = std::move(parts);
  workers_.resize(parts_.placement.ranks.size());
  for (const auto& place : parts_.placement.ranks) {
    workers_[static_cast<std::size_t>(place.rank)].host = place.host;
  }
  for (const HostLink* host : parts_.hosts) hosts_[host];
}

Result<void> Supervisor::activate() {
  for (auto& [host, record] : hosts_) {
    if (record.lost.code != Errc::kNone) return fail(record.lost);
    if (record.finished) return fail(Errc::kUnreachable, host->name(), "its agent was ended from outside");
  }
  active_ = true;
  return {};
}

void Supervisor::add_relay(HostLink& host) {
  rendezvous::RelayOutput to_agent;
  HostLink* const link = &host;
  to_agent.data = [link](std::uint32_t connection, std::string bytes) {
    control::Relay m;
    m.connection = connection;
    m.bytes = std::move(bytes);
    link->send(control::Type::kRelayData, control::encode(m));
  };
  to_agent.close = [link](std::uint32_t connection) {
    control::Relay m;
    m.connection = connection;
    link->send(control::Type::kRelayClose, control::encode(m));
  };
  auto* server = parts_.server;
  hosts_[&host].relay = rendezvous::RelaySink::create(
      io_.get_executor(), [server](asio::generic::stream_protocol::socket s) { server->adopt(std::move(s)); },
      std::move(to_agent));
}

const std::string& Supervisor::host_name(int rank) const {
  return parts_.hosts[static_cast<std::size_t>(workers_[static_cast<std::size_t>(rank)].host)]->name();
}

std::string Supervisor::worker_name(int rank) const {
  const auto& worker = workers_[static_cast<std::size_t>(rank)];
  std::string out = "rank " + std::to_string(rank) + " on " + host_name(rank);
  if (worker.pid > 0) out += " (pid " + std::to_string(worker.pid) + ")";
  return out;
}

void Supervisor::on_frame(HostLink& host, control::Frame frame) {
  using namespace control;
  const auto with = [&](auto decoded, auto&& action) {
    if (decoded) {
      action(std::move(*decoded));
    } else {
      log::info(host.name() + ": " + decoded.error().message());
    }
  };
  const auto known = [&](std::uint32_t rank) { return rank < workers_.size(); };
  auto& record = hosts_[&host];
  switch (frame.type) {
    case Type::kOutput:
      with(decode<Output>(frame.body), [&](auto m) {
        if (known(m.rank)) parts_.output->push(static_cast<int>(m.rank), m.stream, m.bytes);
      });
      break;
    case Type::kOutputEnd:
      with(decode<Output>(frame.body), [&](auto m) {
        if (!known(m.rank)) return;
        parts_.output->end(static_cast<int>(m.rank), m.stream);
        --workers_[m.rank].open_streams;
        worker_over_if_drained(static_cast<int>(m.rank));
      });
      break;
    case Type::kStarted:
      with(decode<Started>(frame.body), [&](auto m) {
        if (known(m.rank)) on_started(host, m);
      });
      break;
    case Type::kExited:
      with(decode<Exited>(frame.body), [&](auto m) {
        if (known(m.rank)) on_exited(host, m);
      });
      break;
    case Type::kFinished:
      with(decode<Finished>(frame.body), [&](auto m) {
        record.finished = true;
        if (m.leftovers > 0) {
          log::info(host.name() + ": ended " + plural(m.leftovers, "left-over process") + " of the job");
        }
        if (active_ && !stopping_) agent_ended(host);
        check_over();
      });
      break;
    case Type::kStdinCredit:
      with(decode<Credit>(frame.body), [&](auto m) {
        if (known(m.rank) && parts_.stdin_taken) parts_.stdin_taken(static_cast<int>(m.rank), m.n_bytes);
      });
      break;
    case Type::kRelayOpen:
      with(decode<Relay>(frame.body), [&](auto m) {
        if (record.relay) record.relay->open(m.connection);
      });
      break;
    case Type::kRelayData:
      with(decode<Relay>(frame.body), [&](auto m) {
        if (record.relay) record.relay->deliver(m.connection, std::move(m.bytes));
      });
      break;
    case Type::kRelayClose:
      with(decode<Relay>(frame.body), [&](auto m) {
        if (record.relay) record.relay->close(m.connection);
      });
      break;
    case Type::kNotice:
      with(decode<Text>(frame.body), [&](auto m) { reporter_.warning(host.name() + ": " + m.text); });
      break;
    default:
      log::info(host.name() + ": unexpected control frame " + std::to_string(static_cast<int>(frame.type)));
  }
}

void Supervisor::on_started(HostLink& host, const control::Started& message) {
  auto& worker = workers_[message.rank];
  const int rank = static_cast<int>(message.rank);
  if (message.error == 0) {
    worker.pid = message.pid;
    log::debug(worker_name(rank) + " started");
    return;
  }
  rendezvous::Abort abort;
  abort.rank = rank;
  abort.host = host.name();
  abort.why = message.what;
  Error error(message.error == ENOENT ? Errc::kNotFound : Errc::kNotExecutable, worker_name(rank), message.what);
  const int status = message.error == ENOENT ? kExitNotFound : kExitNotExecutable;
  worker_over(rank);
  first_failure(status, std::move(error), abort);
  stop_if_all_over();
}

void Supervisor::on_exited(HostLink& host, const control::Exited& message) {
  const int rank = static_cast<int>(message.rank);
  const int wait_status = message.wait_status;
  log::debug(worker_name(rank) + " ended with wait status " + std::to_string(wait_status));
  workers_[message.rank].exited = true;
  if (message.ended_by_drun && !stopping_) agent_ended(host);
  if ((WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) || message.ended_by_drun) {
    worker_over_if_drained(rank);
    return;
  }
  rendezvous::Abort abort;
  abort.rank = rank;
  abort.host = host.name();
  abort.pid = message.pid;
  int status = 0;
  if (WIFSIGNALED(wait_status)) {
    status = kExitSignal + WTERMSIG(wait_status);
    abort.why = "was ended by " + signal_text(WTERMSIG(wait_status));
    if (WCOREDUMP(wait_status)) abort.why += ", core dumped";
  } else {
    status = WEXITSTATUS(wait_status);
    abort.why = "exited with status " + std::to_string(status);
  }
  first_failure(status, Error(Errc::kPeerFailed, worker_name(rank), abort.why), abort);
  worker_over_if_drained(rank);
}

// An agent that ends its workers without our order got a signal, or its guard died.
void Supervisor::agent_ended(HostLink& host) {
  rendezvous::Abort abort;
  abort.host = host.name();
  abort.why = "the agent was ended from outside, and its workers with it";
  first_failure(kExitUnreachable, Error(Errc::kUnreachable, host.name(), abort.why), abort);
}

void Supervisor::first_failure(int status, Error error, const rendezvous::Abort& abort) {
  if (failed_ || stopping_) {
    log::info("also: " + error.message());
    return;
  }
  failed_ = true;
  const auto n_exited = std::count_if(workers_.begin(), workers_.end(), [](const auto& w) { return w.exited; });
  const auto n_others = workers_.size() - static_cast<std::size_t>(n_exited);
  if (n_others > 0) {
    error = std::move(error).with_context("ending the " + std::to_string(n_others) + " other" +
                                          (n_others == 1 ? " worker" : " workers"));
  }
  parts_.server->abort(abort);
  stop(status, abort.why);
  unreported_ = std::move(error);
  unreported_rank_ = abort.rank;
  const bool more_output = abort.rank >= 0 && workers_[static_cast<std::size_t>(abort.rank)].exited &&
                           workers_[static_cast<std::size_t>(abort.rank)].open_streams > 0;
  if (!more_output) report_failure();
}

void Supervisor::report_failure() {
  if (!unreported_) return;
  reporter_.error(*unreported_);
  unreported_.reset();
}

void Supervisor::worker_over(int rank) {
  auto& worker = workers_[static_cast<std::size_t>(rank)];
  if (worker.over) return;
  worker.over = true;
  worker.exited = true;
  if (rank == unreported_rank_) report_failure();
  if (parts_.stdin_taken) parts_.stdin_taken(rank, kRankOver);
  ++n_over_;
}

void Supervisor::worker_over_if_drained(int rank) {
  const auto& worker = workers_[static_cast<std::size_t>(rank)];
  if (!worker.exited || worker.open_streams > 0) return;
  worker_over(rank);
  stop_if_all_over();
}

// Every worker is over: what is left of the job on the hosts goes too. After the failure of the last one was taken in.
void Supervisor::stop_if_all_over() {
  if (n_over_ == static_cast<int>(workers_.size()) && !stopping_) stop(0, "the job is over");
  check_over();
}

void Supervisor::on_lost(HostLink& host, Error error) {
  auto& record = hosts_[&host];
  if (record.finished) return;
  record.finished = true;
  if (!active_) {
    record.lost = std::move(error);
    return;
  }
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    if (parts_.hosts[static_cast<std::size_t>(workers_[rank].host)] == &host) worker_over(static_cast<int>(rank));
  }
  if (!stopping_ || !failed_) {
    rendezvous::Abort abort;
    abort.host = host.name();
    abort.why = "host " + host.name() + " was lost: " + error.cause;
    if (stopping_) {
      reporter_.warning(abort.why);
    } else {
      first_failure(kExitUnreachable, std::move(error), abort);
    }
  }
  stop_if_all_over();
}

void Supervisor::on_abort_requested(const rendezvous::Abort& abort) {
  rendezvous::Abort copy = abort;
  if (copy.rank >= 0 && copy.rank < static_cast<int>(workers_.size())) {
    copy.host = host_name(copy.rank);
    first_failure(1, Error(Errc::kPeerFailed, worker_name(copy.rank), "called abort: " + copy.why), copy);
  }
}

void Supervisor::on_output_broken(Error error) {
  if (stopping_) return;
  const bool closed = error.cause.find(std::strerror(EPIPE)) != std::string::npos ||
                      error.cause.find("broken pipe") != std::string::npos;
  if (!closed) reporter_.error(error);
  log::info("output: " + error.message());
  stop(closed ? kExitSignal + SIGPIPE : kExitUnreachable, "drun's output was closed");
}

void Supervisor::stop(int status, const std::string& why) {
  if (stopping_) return;
  stopping_ = true;
  if (status_ == 0) status_ = status;
  log::info("stopping: " + why);
  const bool all_over = n_over_ == static_cast<int>(workers_.size());
  if (!all_over && !failed_) {
    rendezvous::Abort abort;
    abort.why = why;
    parts_.server->abort(abort);
  }
  const bool anyone_listens = !all_over && !parts_.server->joined().empty();
  order_stop(anyone_listens ? kAbortLead : milliseconds(0), all_over ? milliseconds(0) : grace_);
  check_over();
}

void Supervisor::stop_now() {
  if (!stopping_) stop(kExitSignal + SIGINT, "interrupted");
  order_stop(milliseconds(0), milliseconds(0));
}

void Supervisor::order_stop(milliseconds delay, milliseconds grace) {
  control::Stop order;
  order.delay_ms = static_cast<std::uint32_t>(delay.count());
  order.grace_ms = static_cast<std::uint32_t>(grace.count());
  for (HostLink* host : parts_.hosts) host->send(control::Type::kStop, control::encode(order));
  stop_deadline_ = std::min(stop_deadline_, Clock::now() + delay + grace + kFinishTime);
  deadline_changed_.notify();
}

void Supervisor::forward_signal(int number) {
  control::Signal order;
  order.number = number;
  for (HostLink* host : parts_.hosts) host->send(control::Type::kSignal, control::encode(order));
}

void Supervisor::check_over() {
  if (!stopping_) return;
  for (const auto& [host, record] : hosts_) {
    if (!record.finished) return;
  }
  over_.notify();
  deadline_changed_.notify();
}

std::vector<std::string> Supervisor::unfinished_hosts() const {
  std::vector<std::string> out;
  for (const auto& [host, record] : hosts_) {
    if (!record.finished) out.push_back(host->name());
  }
  return out;
}

Task<void> Supervisor::wait() {
  while (!over_.is_set()) {
    const bool changed = co_await deadline_changed_.wait_until(stop_deadline_);
    deadline_changed_.reset();
    if (!changed && Clock::now() >= stop_deadline_) break;
  }
  report_failure();
  for (auto& [host, record] : hosts_) {
    if (!record.relay) continue;
    record.relay->stop();
    co_await record.relay->join();
  }
}

}  // namespace drun::launcher
