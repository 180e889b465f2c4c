// The states of a job from its start to its end: messages of agents and workers come in as events, and the actions that
// drun must take come out. docs/ending.md has the rules. Pure: no I/O, and the time is passed in.
//
//   starting -> running    activate()
//   running  -> stopping   all workers are over, the first failure, an interrupt, a deadline
//   stopping -> over       every agent has said Finished or is lost, and the output of its workers has ended
//            -> given up   the deadline of the end has passed
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "control/clock_alignment.h"
#include "control/messages.h"
#include "launcher/report/first_failure.h"
#include "launcher/report/job_report.h"
#include "launcher/run/rank_table.h"

namespace drun::launcher {

// One moment on drun's two clocks.
struct JobTime {
  Deadline now;         // for deadlines
  std::int64_t ns = 0;  // CLOCK_MONOTONIC, for comparison with other hosts
};

// Send this order to the agent of a used host.
struct SendStop {
  std::size_t host = 0;
  control::Stop order;
};
// Tell every rank that joined the rendezvous. rank -1: no worker is the reason.
struct AbortRanks {
  int rank = -1;
  std::string host;
  int pid = 0;
  std::string why;
};
// For --events.
struct StopOrdered {
  std::string why;
  int status = 0;
};
// The rank takes no more of stdin.
struct StdinOver {
  int rank = 0;
};
// For the user.
struct Say {
  bool is_warning = false;  // else a note
  std::string text;
};
// For the log.
struct Log {
  bool is_debug = false;
  std::string text;
};
using JobAction = std::variant<SendStop, AbortRanks, StopOrdered, StdinOver, Say, Log>;

// Hosts are indices of the used hosts.
class JobState {
 public:
  // `joined`: the ranks that are members of the rendezvous now.
  JobState(std::chrono::milliseconds grace, std::function<std::vector<int>()> joined)
      : grace_(grace), joined_(std::move(joined)) {}

  // May be called again before activate(): `from[i]` is the index that host i had before. Empty: the same order.
  void place(const Placement& placement, std::vector<std::string> host_names,
             const std::vector<std::size_t>& from = {});
  // The workers are about to be started. Before that a lost host is only remembered, as the request that waits for its
  // answer reports it. An error if a host is gone already.
  Result<void> activate(JobTime time);

  // Events. Those of ranks are ignored before activate().
  void started(const control::Started& message, JobTime time);
  void joined(int rank) { ranks_.joined(rank); }
  void complained(int rank, const std::string& text);
  void wrote(const control::Output& message);
  void output_ended(int rank, JobTime time);
  // `when`: the end on drun's clock, if that is known.
  void exited(const control::Exited& message, std::optional<control::Moment> when, JobTime time);
  void finished(std::size_t host, const control::Finished& message, JobTime time);
  // `silent_since`: the host's last sign of life, if it was lost in silence.
  void lost(std::size_t host, const Error& error, std::optional<Deadline> silent_since, JobTime time);
  void abort_requested(int rank, const std::string& why, JobTime time);
  // Nothing more can be written; `status` is drun's for that. False: the job is being ended for a better reason.
  bool output_broken(int status, JobTime time);
  // Ends the job. `status`: drun's, unless an earlier reason gave one; `why`: what the workers hear.
  void stop(int status, const std::string& why, JobTime time);
  void stop_now(JobTime time);  // without grace
  // To be called at wake_at().
  void time_passed(JobTime time);
  Deadline wake_at() const { return std::min(stop_deadline_, notice_at_); }

  // Returns the actions to carry out, in this order, and forgets them.
  std::vector<JobAction> take_actions() { return std::exchange(actions_, {}); }

  const RankTable& ranks() const { return ranks_; }
  bool active() const { return active_; }
  bool stopping() const { return stopping_; }
  bool over() const { return over_ || given_up_; }
  bool finished(std::size_t host) const { return hosts_[host].finished; }  // or lost
  std::vector<std::string> unfinished_hosts() const;

  // Once it is over: finds the first failure, whose status is the job's. A job without a failure has kExitTimeout if a
  // host did not confirm the end of its workers.
  void conclude();
  int status() const { return status_; }
  const std::optional<FirstFailure>& first_failure() const { return first_failure_; }
  // Ranks, why, the first failure; the caller adds the rest.
  JobReport report() const;

 private:
  struct HostEntry {
    bool finished = false;
    std::uint32_t n_leftovers = 0;  // processes that its workers had left in the background
    std::string leftover_name;
    Error lost;  // before activate()
  };

  bool knows(std::uint64_t rank) const { return active_ && ranks_.has(rank); }
  void failed(JobFailure failure, JobTime time);
  void agent_ended(std::size_t host, JobTime time);
  void set_over(int rank);
  void set_over_if_drained(int rank, JobTime time);
  void workers_gone(std::size_t host, bool output_too);
  void stop_if_all_over(JobTime time);
  void order_stop(bool with_lead, std::chrono::milliseconds grace, JobTime time);
  void check_over();
  // A status for a job that went well otherwise.
  void spoil(int status, std::string why) {
    if (status_ != 0) return;
    status_ = status;
    why_ = std::move(why);
  }
  void say(bool is_warning, std::string text) { actions_.push_back(Say{is_warning, std::move(text)}); }
  void log(std::string text, bool is_debug = false) { actions_.push_back(Log{is_debug, std::move(text)}); }
  void say_what_is_going_on();
  void say_what_was_left();
  void find_same_tracebacks();

  std::chrono::milliseconds grace_;
  std::function<std::vector<int>()> joined_;
  RankTable ranks_;
  std::vector<HostEntry> hosts_;
  std::vector<JobAction> actions_;
  Deadline stop_deadline_ = Deadline::max(), notice_at_ = Deadline::max();
  // Everything that went wrong, in the order in which drun heard of it. The cause is found at the end.
  std::vector<JobFailure> failures_;
  std::optional<FirstFailure> first_failure_;
  int status_ = 0;
  std::string why_;
  bool active_ = false;
  bool failed_ = false;  // a failure began the end
  bool stopping_ = false;
  bool over_ = false;
  bool given_up_ = false;
  std::int64_t spawned_ns_ = 0;
  std::int64_t stop_ns_ = 0;
};

}  // namespace drun::launcher
