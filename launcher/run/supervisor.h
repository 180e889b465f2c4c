// The running job: which workers live, what the agents report, the first failure, and the end of everything.
//
// States: running -> stopping (all workers over, the first failure, an interrupt or a deadline) -> over (every agent
// has said Finished or is lost, and the output of its workers has ended). One thread; owned by the job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/host_link.h"
#include "launcher/output/output_writer.h"
#include "launcher/plan/placement.h"
#include "launcher/report/events.h"
#include "launcher/report/first_failure.h"
#include "launcher/report/job_report.h"
#include "launcher/report/last_lines.h"
#include "launcher/report/reporter.h"
#include "rendezvous/relay.h"
#include "rendezvous/server.h"

namespace drun::launcher {

inline constexpr std::uint64_t kRankOver = UINT64_MAX;

class Supervisor {
 public:
  struct Parts {
    std::vector<HostLink*> hosts;  // by used host
    Placement placement;
    OutputWriter* output = nullptr;
    // A rank has taken in that many bytes of stdin, or kRankOver: it will take no more. May be empty.
    std::function<void(int rank, std::uint64_t n_bytes)> stdin_taken;
    // What agents tell about ranks of the job, once it is known to be one.
    std::function<void(HostLink& host, const control::Started& message)> started;
    std::function<void(HostLink& host, const control::Exited& message)> exited;
    Events* events = nullptr;
  };

  Supervisor(asio::io_context& io, Reporter& reporter, std::chrono::milliseconds grace);
  void attach(Parts parts);
  // The same hosts in another order than attach() said, and so other ranks on them. Before activate().
  void place(std::vector<HostLink*> hosts, Placement placement);
  void serve(rendezvous::Server& server) { server_ = &server; }  // before add_relay() and activate()
  // Before this a lost host is only remembered: whoever waits for its answer reports it. An error if one is gone
  // already.
  Result<void> activate();
  // From here on relayed rendezvous streams of this host reach the server.
  void add_relay(HostLink& host);

  void on_frame(HostLink& host, control::Frame frame);
  void on_lost(HostLink& host, Error error);
  void on_abort_requested(const rendezvous::Abort& abort);
  // A rank's libdrun says that another one failed it.
  void on_complaint(int rank, const std::string& text);
  // A program of libdrun begins in the worker: complaints of an earlier one say nothing about how this one ends.
  void on_joined(int rank);
  void on_output_broken(Error error);
  // Ends the job. `status` is drun's exit status unless an earlier reason gave one; `why` is what the workers hear.
  void stop(int status, const std::string& why);
  void stop_now();  // no grace
  void forward_signal(int number);

  Task<void> wait();  // until over; bounded by the stop's own deadline
  // After wait().
  int status() const { return status_; }
  // Ranks, why, the first failure; the job adds the rest.
  JobReport report() const;
  bool stopping() const { return stopping_; }
  std::vector<std::string> unfinished_hosts() const;

 private:
  struct WorkerRecord {
    int host = 0;
    int pid = 0;
    bool exited = false;
    int open_streams = 2;
    bool over = false;  // it has exited and both outputs have ended, or its host is lost
    bool ended_by_drun = false;
    std::optional<int> wait_status;
    std::int64_t started_ns = 0;
    double seconds = 0;  // from its start to its end
    std::string complaint;
    LastLines last_lines;
  };
  struct HostRecord {
    bool finished = false;
    std::uint32_t n_leftovers = 0;  // processes that its workers had left in the background
    std::string leftover_name;
    Error lost;  // before activate()
    std::unique_ptr<rendezvous::RelaySink> relay;
  };

  void on_started(HostLink& host, const control::Started& message);
  void on_exited(HostLink& host, const control::Exited& message);
  void failed(JobFailure failure);
  void say_what_is_going_on();
  void say_what_was_left();
  void find_same_tracebacks();
  void worker_over(int rank);
  void worker_over_if_drained(int rank);
  void workers_gone(const HostLink& host, bool output_too);
  bool has_open_output(const HostLink& host) const;
  void agent_ended(HostLink& host);
  void stop_if_all_over();
  void order_stop(bool with_lead, std::chrono::milliseconds grace);
  void check_over();
  std::size_t n_alive() const;
  std::string worker_name(int rank) const;
  const std::string& host_name(int rank) const;

  asio::io_context& io_;
  Reporter& reporter_;
  std::chrono::milliseconds grace_;
  Parts parts_;
  rendezvous::Server* server_ = nullptr;
  std::vector<WorkerRecord> workers_;
  std::map<const HostLink*, HostRecord> hosts_;
  std::set<std::string> told_;  // what agents had to tell the user
  TaskGroup relays_;
  Event over_, deadline_changed_;
  Deadline stop_deadline_ = Deadline::max();
  int status_ = 0;
  bool active_ = false;
  // Everything that went wrong, in the order in which drun heard of it. The cause is found at the end.
  std::vector<JobFailure> failures_;
  std::optional<FirstFailure> first_failure_;
  bool failed_ = false;  // a failure began the end
  bool stopping_ = false;
  std::string why_;
  std::int64_t spawned_ns_ = 0;
  std::int64_t stop_ns_ = 0;
  Deadline notice_at_ = Deadline::max();
  int n_over_ = 0;
};

}  // namespace drun::launcher
