// One job, from connected hosts to its end: the parts that run_job() wires, and its phases in their order. Private to
// launcher/run/job*.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/connect/start_watch.h"
#include "launcher/report/events.h"
#include "launcher/run/collective_progress.h"
#include "launcher/run/job.h"
#include "launcher/run/job_network.h"
#include "launcher/run/job_orders.h"
#include "launcher/run/job_output.h"
#include "launcher/run/job_rendezvous.h"
#include "launcher/run/job_signals.h"
#include "launcher/run/job_timeout.h"
#include "launcher/run/join_tracker.h"
#include "launcher/run/open_files.h"
#include "launcher/run/stall_report.h"
#include "launcher/run/supervisor.h"
#include "launcher/run/timeline.h"
#include "launcher/run/worker_input.h"
#include "transport/helper_pool.h"

namespace drun::launcher {

std::string make_job_id();

// Owned by run_job(), on its thread. The order of the members is that of their construction.
class Job {
 public:
  Job(asio::io_context& io, JobOptions options, Reporter& reporter)
      : io_(io),
        options_(std::move(options)),
        reporter_(reporter),
        tasks_(io.get_executor()),
        events_(reporter),
        watch_(io, reporter, events_),
        network_(io, reporter, events_, watch_, options_.cache_directory, options_.read_cache),
        supervisor_(io, reporter, options_.grace),
        rendezvous_(io, supervisor_, job_id_),
        activity_(supervisor_.ranks()),
        stalls_(io, reporter, activity_, supervisor_),
        timeline_(io),
        output_(io, options_.output, reporter, supervisor_),
        timeout_(io, reporter, supervisor_, options_.stack_timeout),
        joins_(io, reporter, supervisor_, watch_, events_),
        signals_(io, reporter, channels_, supervisor_, events_, output_.writer()) {}

  Task<int> run();
  bool has_stuck_thread() const { return output_.writer().is_stuck(); }  // after run(): no destructor must be called

 private:
  // The phases of a job. Each returns kExitOk, or the status with which the job ends there, reported.
  Task<int> run_phases();
  int open_files();
  Task<int> connect();
  Task<int> choose_network();
  int start_rendezvous();
  Task<int> prepare();
  Task<int> run_workers();
  Task<int> finish(int status);

  OpenFiles files_of(const Placement& placement) const;
  void attach();
  void configure_agents();
  Task<int> check_hosts_first(std::optional<NetworkProbe>* network);
  void put_rank_0_where_all_reach_it();
  void expect_workers();
  Task<void> prepare_host(std::size_t host, std::vector<Error>& errors);
  void spawn(Deadline deadline);
  void say_bindings();
  void say_threads();

  void on_frame(AgentChannel& host, control::Frame frame);

  void report_events(const Placement& planned, const std::vector<Host>& on);
  void report_job(int status);
  void write_timeline();
  int report(const std::vector<Error>& errors);
  int report(const Error& error);

  int head_index() const;  // into hosts_; -1: this machine is not among them
  bool is_head(std::size_t host) const { return connected_.head == plan_.placement.host_indices[host]; }

  asio::io_context& io_;
  transport::HelperPool helper_;
  JobOptions options_;
  Reporter& reporter_;
  TaskGroup tasks_;
  Events events_;
  StartWatch watch_;
  Deadline start_deadline_{};
  std::string job_id_ = make_job_id();
  AgentChannels channels_;
  Connected connected_;
  std::vector<AgentChannel*> hosts_;  // those that have a rank, by used host
  StartPlan plan_;
  JobNetwork network_;
  Supervisor supervisor_;
  JobRendezvous rendezvous_;
  CollectiveProgress activity_;
  StallReporter stalls_;
  Timeline timeline_;
  JobOutput output_;
  JobTimeout timeout_;
  JoinTracker joins_;
  JobSignals signals_;
  std::unique_ptr<WorkerInput> input_;
  std::chrono::system_clock::time_point began_ = std::chrono::system_clock::now();
  std::int64_t began_ns_ = monotonic_ns();
  bool workers_started_ = false;
  std::string why_not_started_;
};

}  // namespace drun::launcher
