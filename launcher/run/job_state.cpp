#include "launcher/run/job_state.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "base/clean_text.h"
#include "base/error_id.h"
#include "base/exit_status.h"
#include "base/text.h"
#include "base/wording.h"
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
constexpr auto kNoticeDelay = milliseconds(1000);
// The maximum lag of drun's own moments (an abort that a worker asked for) behind the event itself.
constexpr std::int64_t kOwnLagNs = 50'000'000;
constexpr std::size_t kMaxNamed = 3;  // processes in a message

control::Moment moment_of(JobTime time) { return control::Moment{time.ns - kOwnLagNs, time.ns}; }

// Between the host's last sign of life and now.
control::Moment silence_until(JobTime time, Deadline last_heard) {
  return control::Moment{time.ns - std::chrono::nanoseconds(time.now - last_heard).count(), time.ns};
}

void add_lines(std::vector<std::string>& lines, const std::string& text) {
  for (const auto line : split(text, '\n')) {
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  }
}

// Fills in the end of the process.
void describe_end(JobFailure& f, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    f.signal = WTERMSIG(wait_status);
    f.core_dumped = WCOREDUMP(wait_status);
    f.status = kExitSignal + f.signal;
  } else {
    f.exit_code = WEXITSTATUS(wait_status);
    f.status = std::max(f.exit_code, 1);  // 0: the agent reported a process that has not ended, so it is broken
  }
  f.what = end_text(wait_status);
}

}  // namespace

void JobState::place(const Placement& placement, std::vector<std::string> host_names,
                     const std::vector<std::size_t>& from) {
  std::vector<HostEntry> before = std::move(hosts_);
  hosts_.assign(host_names.size(), {});
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const std::size_t old = from.empty() ? i : from[i];
    if (old < before.size()) hosts_[i] = std::move(before[old]);
  }
  ranks_.place(placement, std::move(host_names));
}

Result<void> JobState::activate(JobTime time) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].lost.code != Errc::kNone) return fail(hosts_[i].lost);
    if (hosts_[i].finished) {
      return fail(Error(Errc::kUnreachable, ranks_.hosts()[i], "its agent was ended from outside")
                      .with_id(error_id::kHostLost));
    }
  }
  active_ = true;
  spawned_ns_ = time.ns;
  return {};
}

void JobState::started(const control::Started& message, JobTime time) {
  if (!knows(message.rank)) return;
  const int rank = static_cast<int>(message.rank);
  ranks_.started(message, time.ns);
  if (message.error == 0) {
    log(ranks_.worker_name(rank) + " started", true);
    return;
  }
  JobFailure f;
  f.rank = rank;
  f.host = ranks_.host_name(rank);
  f.status = message.error == ENOENT ? kExitNotFound : message.error == ETIMEDOUT ? kExitTimeout : kExitNotExecutable;
  f.what = message.what;
  f.when = moment_of(time);
  set_over(rank);
  failed(std::move(f), time);
  stop_if_all_over(time);
}

void JobState::complained(int rank, const std::string& text) {
  if (rank < 0 || !ranks_.has(static_cast<std::uint64_t>(rank))) return;
  log(ranks_.worker_name(rank) + " says: " + text, true);
  ranks_.complained(rank, text);
}

void JobState::wrote(const control::Output& message) {
  if (knows(message.rank)) ranks_.wrote(message);
}

void JobState::output_ended(int rank, JobTime time) {
  if (!knows(static_cast<std::uint64_t>(rank))) return;
  ranks_.output_ended(rank);
  set_over_if_drained(rank, time);
}

void JobState::exited(const control::Exited& message, std::optional<control::Moment> when, JobTime time) {
  if (!knows(message.rank)) return;
  const int rank = static_cast<int>(message.rank);
  const int wait_status = message.wait_status;
  log(ranks_.worker_name(rank) + " ended with wait status " + std::to_string(wait_status), true);
  ranks_.exited(message, time.ns);
  actions_.push_back(StdinOver{rank});
  if (message.ended_by_drun && !stopping_) agent_ended(static_cast<std::size_t>(ranks_.at(rank).host), time);
  if ((WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) || message.ended_by_drun) {
    set_over_if_drained(rank, time);
    return;
  }
  JobFailure f;
  f.rank = rank;
  f.host = ranks_.host_name(rank);
  f.pid = message.pid;
  f.when = when.value_or(moment_of(time));
  describe_end(f, wait_status);
  f.out_of_memory = message.out_of_memory;
  f.own_error = clean_text(torch_error(message.error_file));
  failed(std::move(f), time);
  set_over_if_drained(rank, time);
}

void JobState::finished(std::size_t host, const control::Finished& message, JobTime time) {
  auto& entry = hosts_[host];
  entry.finished = true;
  if (message.leftovers > 0) {
    log(ranks_.hosts()[host] + ": ended " + plural(message.leftovers, "left-over process") + " of the job");
    entry.n_leftovers = message.leftovers;
    entry.leftover_name = message.leftover_name;
  }
  if (!message.stuck.empty()) {
    std::vector<std::string> stuck;
    for (const auto& process : message.stuck) stuck.push_back(clean_line(process));
    say(true,
        ranks_.hosts()[host] + ": still there after KILL: " + list_some(stuck, kMaxNamed) + " (`drun clean` shows it)");
    spoil(kExitTimeout, ranks_.hosts()[host] + ": processes of the job are still there after KILL");
  }
  if (active_ && !stopping_) agent_ended(host, time);
  workers_gone(host, false);
  check_over();
}

// An agent that ends its workers without our order got a signal, or its guard died.
void JobState::agent_ended(std::size_t host, JobTime time) {
  JobFailure f;
  f.host = ranks_.hosts()[host];
  f.status = kExitUnreachable;
  f.what = "the agent was ended from outside, and its workers with it";
  f.when = moment_of(time);
  failed(std::move(f), time);
}

void JobState::lost(std::size_t host, const Error& error, std::optional<Deadline> silent_since, JobTime time) {
  auto& entry = hosts_[host];
  const std::string& name = ranks_.hosts()[host];
  if (entry.finished) {
    // In a good end every output has ended before the connection does.
    if (!ranks_.all_over(static_cast<int>(host))) {
      say(true, "host " + name + " was lost before all of its workers' output had come: " + error.cause);
      if (status_ == 0) status_ = kExitUnreachable;
    }
    workers_gone(host, true);
    check_over();
    return;
  }
  entry.finished = true;
  if (!active_) {
    entry.lost = error;
    return;
  }
  workers_gone(host, true);
  JobFailure f;
  f.host = name;
  f.status = kExitUnreachable;
  f.what = error.cause;
  f.when = silent_since ? silence_until(time, *silent_since) : moment_of(time);
  add_lines(f.details, error.context);
  const std::string text = "host " + name + " was lost: " + error.cause;
  if (stopping_ && !failed_) say(true, text);
  if (stopping_) spoil(kExitTimeout, text);  // its ranks ended well; their processes may be there
  failed(std::move(f), time);
  stop_if_all_over(time);
}

void JobState::abort_requested(int rank, const std::string& why, JobTime time) {
  if (rank < 0 || !ranks_.has(static_cast<std::uint64_t>(rank))) return;
  JobFailure f;
  f.rank = rank;
  f.host = ranks_.host_name(rank);
  f.pid = ranks_.at(rank).pid;
  f.status = 1;
  f.what = "called abort: " + why;
  f.when = moment_of(time);
  failed(std::move(f), time);
}

// The first failure that drun hears of begins the end. Which one was the first is found when all is known.
void JobState::failed(JobFailure failure, JobTime time) {
  const bool is_known = std::any_of(failures_.begin(), failures_.end(), [&](const JobFailure& f) {
    return f.rank == failure.rank && (f.rank >= 0 || f.host == failure.host);
  });
  log(failure.sentence());
  if (is_known) return;  // it asked for the abort, and then it exited
  failures_.push_back(failure);
  if (stopping_) return;
  failed_ = true;
  const std::string why = failure.rank >= 0 ? failure.what : "host " + failure.host + " was lost: " + failure.what;
  actions_.push_back(AbortRanks{failure.rank, failure.host, failure.pid, why});
  stop(failure.status, failure.sentence(), time);
}

bool JobState::output_broken(int status, JobTime time) {
  const std::string why = "drun's output was closed";
  if (!stopping_) {
    stop(status, why, time);
    return true;
  }
  if (status_ != 0 || failed_) return false;
  spoil(status, why);  // all workers ended well, but not all that they wrote has arrived
  return true;
}

void JobState::set_over(int rank) {
  if (ranks_.set_over(rank)) actions_.push_back(StdinOver{rank});
}

void JobState::set_over_if_drained(int rank, JobTime time) {
  if (!ranks_.at(rank).exited || ranks_.at(rank).open_streams > 0) return;
  set_over(rank);
  stop_if_all_over(time);
}

// Nothing more will be heard of the host's workers that have not exited; with `output_too`, nor of any other.
void JobState::workers_gone(std::size_t host, bool output_too) {
  for (const auto& entry : ranks_) {
    if (static_cast<std::size_t>(entry.host) == host && (output_too || !entry.exited)) set_over(entry.rank);
  }
}

// Every worker is over: what is left of the job on the hosts goes too. After the failure of the last one was taken in.
void JobState::stop_if_all_over(JobTime time) {
  if (ranks_.all_over() && !stopping_) stop(0, "the job is over", time);
  check_over();
}

void JobState::stop(int status, const std::string& why, JobTime time) {
  if (stopping_) return;
  stopping_ = true;
  stop_ns_ = time.ns;
  notice_at_ = time.now + kNoticeDelay;
  if (status_ == 0) status_ = status;
  why_ = why;
  log("stopping: " + why);
  actions_.push_back(StopOrdered{why, status});
  if (!ranks_.all_over() && !failed_) actions_.push_back(AbortRanks{-1, "", 0, why});
  order_stop(true, ranks_.all_over() ? milliseconds(0) : grace_, time);
  check_over();
}

void JobState::stop_now(JobTime time) {
  if (!stopping_) stop(kExitSignal + SIGINT, "interrupted", time);
  order_stop(false, milliseconds(0), time);
}

void JobState::order_stop(bool with_lead, milliseconds grace, JobTime time) {
  std::vector<control::Stop> orders(hosts_.size());
  auto delay = milliseconds(0);
  for (const int rank : with_lead ? joined_() : std::vector<int>()) {
    if (ranks_.at(rank).exited) continue;
    delay = kAbortLead;
    orders[static_cast<std::size_t>(ranks_.at(rank).host)].delayed.push_back(static_cast<std::uint32_t>(rank));
  }
  for (std::size_t i = 0; i < orders.size(); ++i) {
    orders[i].delay_ms = static_cast<std::uint32_t>(kAbortLead.count());
    orders[i].grace_ms = static_cast<std::uint32_t>(grace.count());
    actions_.push_back(SendStop{i, std::move(orders[i])});
  }
  stop_deadline_ = std::min(stop_deadline_, time.now + delay + grace + kFinishTime);
}

void JobState::check_over() {
  if (!stopping_) return;
  if (!std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host.finished; })) return;
  stop_deadline_ = Deadline::max();  // nothing runs any more; what was written last comes at the reader's pace
  if (ranks_.all_over()) over_ = true;
}

void JobState::time_passed(JobTime time) {
  if (time.now >= notice_at_) {
    notice_at_ = Deadline::max();
    say_what_is_going_on();
  }
  if (time.now >= stop_deadline_) given_up_ = true;
}

// The report of the failure comes at the end. Until then, this says why the job is still running.
void JobState::say_what_is_going_on() {
  const std::size_t n = ranks_.n_running();
  if (!failed_ || n == 0) return;
  const auto grace = std::chrono::duration_cast<std::chrono::seconds>(grace_ + milliseconds(999)).count();
  say(false,
      why_ + "; waiting for " + plural(n, "other worker") + " to end (KILL after " + std::to_string(grace) + " s)");
}

std::vector<std::string> JobState::unfinished_hosts() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].finished) out.push_back(ranks_.hosts()[i]);
  }
  return out;
}

void JobState::conclude() {
  if (failed_) {
    for (auto& f : failures_) {
      if (f.rank < 0) continue;
      const auto& entry = ranks_.at(f.rank);
      f.local_rank = entry.local_rank;
      f.complaint = entry.complaint;
      f.last_lines = entry.last_lines.lines();
    }
    first_failure_ = find_first_failure(std::move(failures_), stop_ns_);
    find_same_tracebacks();
    status_ = first_failure_->first.front().status;
  }
  if (const auto late = unfinished_hosts(); !late.empty()) spoil(kExitTimeout, unconfirmed_text(late));
  say_what_was_left();
}

// Workers that drun ended had the same failure if they wrote the first failure's traceback.
void JobState::find_same_tracebacks() {
  for (const auto& entry : ranks_) {
    if (!entry.ended_by_drun) continue;
    JobFailure f;
    f.rank = entry.rank;
    f.local_rank = entry.local_rank;
    f.pid = entry.pid;
    f.host = ranks_.host_name(entry.rank);
    f.last_lines = entry.last_lines.lines();
    if (wrote_same_traceback(first_failure_->first.front(), f)) first_failure_->wrote_the_same.push_back(f.rank);
  }
}

// Only after a good end: after any other the user expects that all is gone.
void JobState::say_what_was_left() {
  if (status_ != 0) return;
  std::vector<LeftRunning> left;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto& entry = hosts_[i];
    if (entry.n_leftovers > 0) left.push_back(LeftRunning{ranks_.hosts()[i], entry.n_leftovers, entry.leftover_name});
  }
  if (!left.empty()) say(false, left_running_text(left));
}

JobReport JobState::report() const {
  JobReport out;
  out.status = status_;
  if (status_ != 0) out.why = why_;
  out.hosts = ranks_.hosts();
  for (const auto& entry : ranks_) {
    RankReport r;
    r.rank = entry.rank;
    r.host = ranks_.host_name(entry.rank);
    r.pid = entry.pid;
    r.wait_status = entry.wait_status;
    r.ended_by_drun = entry.ended_by_drun;
    if (entry.wait_status) r.seconds = entry.seconds;
    if (entry.ended_by_drun) ++out.n_ended_by_drun;
    out.ranks.push_back(std::move(r));
  }
  out.failure = first_failure_;
  if (first_failure_) {
    out.failed_after_s = static_cast<double>(first_failure_->first.front().when.middle_ns() - spawned_ns_) * 1e-9;
  }
  return out;
}

}  // namespace drun::launcher
