#include "launcher/run/supervisor.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "base/exit_status.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/report/left_running.h"
#include "launcher/report/same_failure.h"
#include "launcher/report/signal_text.h"

namespace drun::launcher {

namespace {

using std::chrono::milliseconds;

// Workers that joined the rendezvous hear ABORT first, so that they can report the error by name.
constexpr auto kAbortLead = milliseconds(1000);
// After TERM, grace and KILL: how long an agent may take to say that all is over.
constexpr auto kFinishTime = milliseconds(10000);
// An end that takes longer than this is explained meanwhile.
constexpr auto kPatience = milliseconds(1000);
// How far drun's own moments (an abort that a worker asked for) may lag behind what they stand for.
constexpr std::int64_t kOwnLagNs = 50'000'000;

control::Moment just_now() {
  const auto now = monotonic_ns();
  return control::Moment{now - kOwnLagNs, now};
}

control::Moment silence_until_now(Deadline last_heard) {
  const auto now = monotonic_ns();
  return control::Moment{now - std::chrono::nanoseconds(Clock::now() - last_heard).count(), now};
}

void add_lines(std::vector<std::string>& lines, const std::string& text) {
  for (const auto line : split(text, '\n')) {
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  }
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
  for (const HostLink* host : parts_.hosts) hosts_[host];
  place(std::move(parts_.hosts), std::move(parts_.placement));
}

void Supervisor::place(std::vector<HostLink*> hosts, Placement placement) {
  parts_.hosts = std::move(hosts);
  parts_.placement = std::move(placement);
  workers_.resize(parts_.placement.ranks.size());
  for (const auto& place : parts_.placement.ranks) {
    workers_[static_cast<std::size_t>(place.rank)].host = place.host;
  }
}

Result<void> Supervisor::activate() {
  for (auto& [host, record] : hosts_) {
    if (record.lost.code != Errc::kNone) return fail(record.lost);
    if (record.finished) return fail(Errc::kUnreachable, host->name(), "its agent was ended from outside");
  }
  active_ = true;
  spawned_ns_ = monotonic_ns();
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
  auto* server = server_;
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
  const auto known = [&](std::uint32_t rank) { return active_ && rank < workers_.size(); };
  auto& record = hosts_[&host];
  switch (frame.type) {
    case Type::kOutput:
      with(decode<Output>(frame.body), [&](auto m) {
        if (!known(m.rank)) return;
        workers_[m.rank].last_lines.push(m.stream, m.bytes);
        parts_.output->push(std::move(m));
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
        if (!known(m.rank)) return;
        parts_.started(host, m);
        on_started(host, m);
      });
      break;
    case Type::kExited:
      with(decode<Exited>(frame.body), [&](auto m) {
        if (!known(m.rank)) return;
        parts_.exited(host, m);
        on_exited(host, m);
      });
      break;
    case Type::kFinished:
      with(decode<Finished>(frame.body), [&](auto m) {
        record.finished = true;
        if (m.leftovers > 0) {
          log::info(host.name() + ": ended " + plural(m.leftovers, "left-over process") + " of the job");
          record.n_leftovers = m.leftovers;
          record.leftover_name = std::move(m.leftover_name);
        }
        if (active_ && !stopping_) agent_ended(host);
        workers_gone(host, false);
        check_over();
      });
      break;
    case Type::kStdinCredit:
      with(decode<Credit>(frame.body), [&](auto m) {
        if (!known(m.rank) || !parts_.stdin_taken) return;
        parts_.stdin_taken(static_cast<int>(m.rank), m.n_bytes == Credit::kNoMore ? kRankOver : m.n_bytes);
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
      // Hosts of one job often have the same to tell.
      with(decode<Text>(frame.body), [&](auto m) {
        if (told_.insert(m.text).second) reporter_.warning(host.name() + ": " + m.text);
      });
      break;
    default:
      log::info(host.name() + ": unexpected control frame " + std::to_string(static_cast<int>(frame.type)));
  }
}

void Supervisor::on_started(HostLink& host, const control::Started& message) {
  auto& worker = workers_[message.rank];
  const int rank = static_cast<int>(message.rank);
  worker.started_ns = monotonic_ns();
  if (message.error == 0) {
    worker.pid = message.pid;
    log::debug(worker_name(rank) + " started");
    return;
  }
  JobFailure f;
  f.rank = rank;
  f.host = host.name();
  f.status = message.error == ENOENT ? kExitNotFound : kExitNotExecutable;
  f.what = message.what;
  f.when = just_now();
  worker_over(rank);
  failed(std::move(f));
  stop_if_all_over();
}

void Supervisor::on_exited(HostLink& host, const control::Exited& message) {
  const int rank = static_cast<int>(message.rank);
  const int wait_status = message.wait_status;
  log::debug(worker_name(rank) + " ended with wait status " + std::to_string(wait_status));
  auto& worker = workers_[message.rank];
  worker.exited = true;
  worker.wait_status = wait_status;
  worker.ended_by_drun = message.ended_by_drun;
  worker.seconds = static_cast<double>(monotonic_ns() - worker.started_ns) * 1e-9;
  if (parts_.stdin_taken) parts_.stdin_taken(rank, kRankOver);
  if (message.ended_by_drun && !stopping_) agent_ended(host);
  if ((WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) || message.ended_by_drun) {
    worker_over_if_drained(rank);
    return;
  }
  JobFailure f;
  f.rank = rank;
  f.host = host.name();
  f.pid = message.pid;
  f.when = host.clock().ours(static_cast<std::int64_t>(message.time_ns)).value_or(just_now());
  if (WIFSIGNALED(wait_status)) {
    f.signal = WTERMSIG(wait_status);
    f.core_dumped = WCOREDUMP(wait_status);
    f.status = kExitSignal + f.signal;
    f.what = "was ended by " + signal_text(f.signal);
    if (f.core_dumped) f.what += ", core dumped";
  } else {
    f.exit_code = WEXITSTATUS(wait_status);
    f.status = f.exit_code;
    f.what = "exited with status " + std::to_string(f.exit_code);
  }
  f.out_of_memory = message.out_of_memory;
  f.own_error = torch_error(message.error_file);
  failed(std::move(f));
  worker_over_if_drained(rank);
}

// An agent that ends its workers without our order got a signal, or its guard died.
void Supervisor::agent_ended(HostLink& host) {
  JobFailure f;
  f.host = host.name();
  f.status = kExitUnreachable;
  f.what = "the agent was ended from outside, and its workers with it";
  f.when = just_now();
  failed(std::move(f));
}

// The first one that drun hears of begins the end. Which one was the first is found when all is known.
void Supervisor::failed(JobFailure failure) {
  const bool is_known = std::any_of(failures_.begin(), failures_.end(), [&](const JobFailure& f) {
    return f.rank == failure.rank && (f.rank >= 0 || f.host == failure.host);
  });
  log::info(failure.name() + " " + failure.what);
  if (is_known) return;  // it asked for the abort, and then it exited
  failures_.push_back(failure);
  if (stopping_) return;
  failed_ = true;
  rendezvous::Abort abort;
  abort.rank = failure.rank;
  abort.host = failure.host;
  abort.pid = failure.pid;
  abort.why = failure.rank >= 0 ? failure.what : "host " + failure.host + " was lost: " + failure.what;
  server_->abort(abort);
  stop(failure.status, failure.name() + " " + failure.what);
}

void Supervisor::worker_over(int rank) {
  auto& worker = workers_[static_cast<std::size_t>(rank)];
  if (worker.over) return;
  worker.over = true;
  worker.exited = true;
  if (parts_.stdin_taken) parts_.stdin_taken(rank, kRankOver);
  ++n_over_;
}

bool Supervisor::has_open_output(const HostLink& host) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const WorkerRecord& worker) {
    return parts_.hosts[static_cast<std::size_t>(worker.host)] == &host && !worker.over;
  });
}

// Nothing more will be heard of the host's workers that have not exited; with `output_too`, nor of any other.
void Supervisor::workers_gone(const HostLink& host, bool output_too) {
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    const auto& worker = workers_[rank];
    if (parts_.hosts[static_cast<std::size_t>(worker.host)] != &host) continue;
    if (output_too || !worker.exited) worker_over(static_cast<int>(rank));
  }
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
  if (record.finished) {
    // In a good end every output has ended before the connection does.
    if (has_open_output(host)) {
      reporter_.warning("host " + host.name() + " was lost before all of its workers' output had come: " + error.cause);
      if (status_ == 0) status_ = kExitUnreachable;
    }
    workers_gone(host, true);
    check_over();
    return;
  }
  record.finished = true;
  if (!active_) {
    record.lost = std::move(error);
    return;
  }
  workers_gone(host, true);
  JobFailure f;
  f.host = host.name();
  f.status = kExitUnreachable;
  f.what = error.cause;
  // A connection that ended tells when; of a silent host only the last sign of life is known.
  f.when = host.lost_in_silence() ? silence_until_now(host.last_heard()) : just_now();
  add_lines(f.details, error.context);
  if (stopping_ && !failed_) reporter_.warning("host " + host.name() + " was lost: " + error.cause);
  failed(std::move(f));
  stop_if_all_over();
}

void Supervisor::on_abort_requested(const rendezvous::Abort& abort) {
  if (abort.rank < 0 || abort.rank >= static_cast<int>(workers_.size())) return;
  JobFailure f;
  f.rank = abort.rank;
  f.host = host_name(abort.rank);
  f.pid = workers_[static_cast<std::size_t>(abort.rank)].pid;
  f.status = 1;
  f.what = "called abort: " + abort.why;
  f.when = just_now();
  failed(std::move(f));
}

void Supervisor::on_joined(int rank) {
  if (rank >= 0 && rank < static_cast<int>(workers_.size())) workers_[static_cast<std::size_t>(rank)].complaint.clear();
}

void Supervisor::on_complaint(int rank, const std::string& text) {
  if (rank < 0 || rank >= static_cast<int>(workers_.size())) return;
  log::debug(worker_name(rank) + " says: " + text);
  auto& complaint = workers_[static_cast<std::size_t>(rank)].complaint;
  if (complaint.empty()) complaint = text;
}

void Supervisor::on_output_broken(Error error) {
  const bool ends_well = stopping_ && status_ == 0 && !failed_;
  if (stopping_ && !ends_well) return;  // the job is being ended for a better reason
  if (!reader_left(error)) reporter_.error(error);
  log::info("output: " + error.message());
  const int status = output_status(error);
  const std::string why = "drun's output was closed";
  if (ends_well) {  // all workers did, but not all that they wrote has arrived
    status_ = status;
    why_ = why;
    return;
  }
  stop(status, why);
}

void Supervisor::stop(int status, const std::string& why) {
  if (stopping_) return;
  stopping_ = true;
  stop_ns_ = monotonic_ns();
  notice_at_ = Clock::now() + kPatience;
  if (status_ == 0) status_ = status;
  why_ = why;
  log::info("stopping: " + why);
  parts_.events->stop_ordered(why, status);
  const bool all_over = n_over_ == static_cast<int>(workers_.size());
  if (!all_over && !failed_) {
    rendezvous::Abort abort;
    abort.why = why;
    server_->abort(abort);
  }
  order_stop(true, all_over ? milliseconds(0) : grace_);
  check_over();
}

void Supervisor::stop_now() {
  if (!stopping_) stop(kExitSignal + SIGINT, "interrupted");
  order_stop(false, milliseconds(0));
}

void Supervisor::order_stop(bool with_lead, milliseconds grace) {
  std::vector<control::Stop> orders(parts_.hosts.size());
  auto delay = milliseconds(0);
  if (with_lead) {
    for (const int rank : server_->joined()) {
      const auto& worker = workers_[static_cast<std::size_t>(rank)];
      if (worker.exited) continue;
      delay = kAbortLead;
      orders[static_cast<std::size_t>(worker.host)].delayed.push_back(static_cast<std::uint32_t>(rank));
    }
  }
  for (std::size_t i = 0; i < orders.size(); ++i) {
    orders[i].delay_ms = static_cast<std::uint32_t>(kAbortLead.count());
    orders[i].grace_ms = static_cast<std::uint32_t>(grace.count());
    parts_.hosts[i]->send(control::Type::kStop, control::encode(orders[i]));
  }
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
  stop_deadline_ = Deadline::max();  // nothing runs any more; what was written last comes at the reader's pace
  if (n_over_ < static_cast<int>(workers_.size())) return;
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

std::size_t Supervisor::n_alive() const {
  return static_cast<std::size_t>(
      std::count_if(workers_.begin(), workers_.end(), [](const auto& w) { return !w.exited; }));
}

// Of a job that ended well: otherwise its user expects that all is gone.
void Supervisor::say_what_was_left() {
  if (status_ != 0) return;
  std::vector<LeftRunning> left;
  for (const HostLink* host : parts_.hosts) {
    const auto& record = hosts_[host];
    if (record.n_leftovers > 0) left.push_back(LeftRunning{host->name(), record.n_leftovers, record.leftover_name});
  }
  if (!left.empty()) reporter_.note(left_running_text(left));
}

// The box comes at the end; until then nobody shall wonder.
void Supervisor::say_what_is_going_on() {
  if (!failed_ || n_alive() == 0) return;
  const auto grace = std::chrono::duration_cast<std::chrono::seconds>(grace_ + milliseconds(999)).count();
  reporter_.note(why_ + "; waiting for " + plural(n_alive(), "other worker") + " to end (KILL after " +
                 std::to_string(grace) + " s)");
}

Task<void> Supervisor::wait() {
  while (!over_.is_set()) {
    const bool changed = co_await deadline_changed_.wait_until(std::min(stop_deadline_, notice_at_));
    deadline_changed_.reset();
    if (Clock::now() >= notice_at_) {
      notice_at_ = Deadline::max();
      say_what_is_going_on();
    }
    if (!changed && Clock::now() >= stop_deadline_) break;
  }
  if (failed_) {
    for (auto& f : failures_) {
      if (f.rank < 0) continue;
      const auto& worker = workers_[static_cast<std::size_t>(f.rank)];
      f.local_rank = parts_.placement.ranks[static_cast<std::size_t>(f.rank)].local_rank;
      f.complaint = worker.complaint;
      f.last_lines = worker.last_lines.lines();
    }
    first_failure_ = find_first_failure(std::move(failures_), stop_ns_);
    find_same_tracebacks();
    const JobFailure& first = first_failure_->first.front();
    status_ = first.status;
    parts_.events->first_failure(first.rank, first.host, first.pid, first.what, first.status);
  }
  say_what_was_left();
  for (auto& [host, record] : hosts_) {
    if (!record.relay) continue;
    record.relay->stop();
    co_await record.relay->join();
  }
}

// Of the workers that drun ended.
void Supervisor::find_same_tracebacks() {
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    const auto& worker = workers_[rank];
    if (!worker.ended_by_drun) continue;
    JobFailure f;
    f.rank = static_cast<int>(rank);
    f.local_rank = parts_.placement.ranks[rank].local_rank;
    f.pid = worker.pid;
    f.host = host_name(f.rank);
    f.last_lines = worker.last_lines.lines();
    if (wrote_same_traceback(first_failure_->first.front(), f)) first_failure_->wrote_the_same.push_back(f.rank);
  }
}

JobReport Supervisor::report() const {
  JobReport out;
  out.status = status_;
  if (status_ != 0) out.why = why_;
  for (const HostLink* host : parts_.hosts) out.hosts.push_back(host->name());
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const auto& worker = workers_[i];
    RankReport r;
    r.rank = static_cast<int>(i);
    r.host = host_name(r.rank);
    r.pid = worker.pid;
    r.wait_status = worker.wait_status;
    r.ended_by_drun = worker.ended_by_drun;
    if (worker.wait_status) r.seconds = worker.seconds;
    if (worker.ended_by_drun) ++out.n_ended_by_drun;
    out.ranks.push_back(std::move(r));
  }
  out.failure = first_failure_;
  if (first_failure_) {
    out.failed_after_s = static_cast<double>(first_failure_->first.front().when.middle_ns() - spawned_ns_) * 1e-9;
  }
  return out;
}

}  // namespace drun::launcher
