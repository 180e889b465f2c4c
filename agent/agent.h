// The agent proper: one per host, single-threaded. Reads orders from stdin, writes reports to stdout, starts, feeds,
// watches and ends the workers of its host.
//
// It ends on a Stop order, on EOF of the channel, when drun or the guard falls silent, or on TERM, INT, HUP or QUIT:
// always by the same sequence (TERM, grace, KILL, sweep), always leaving nothing behind.
#pragma once

#include <sys/types.h>

#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "agent/control_channel.h"
#include "agent/guard_watch.h"
#include "agent/host_queries.h"
#include "agent/job_resources.h"
#include "agent/network_services.h"
#include "agent/oom_watch.h"
#include "agent/prepared_job.h"
#include "agent/processes.h"
#include "agent/recorder_feed.h"
#include "agent/runtime_watch.h"
#include "agent/worker_group.h"
#include "base/asio.h"
#include "control/frames.h"
#include "control/messages.h"

namespace drun::agent {

class Agent {
 public:
  explicit Agent(GuardLink guard);
  // Runs until the end of the job. Returns the exit status.
  int run();

 private:
  Task<void> watch_signals();
  Task<void> reap();
  Task<void> main();

  void send(control::Type type, std::string_view body) { channel_.outgoing().push(type, body); }

  void set_handlers();
  void configure(const control::Configure& message);
  void prepare(control::Prepare message);
  Task<void> send_prepared();
  void spawn(const control::Spawn& order);
  void on_reaped(pid_t pid, int wait_status);
  void complete(control::Exited& report);  // a worker has ended

  void channel_lost();
  // Sends TERM after `delay` to the ranks in `delayed`, and at once to the others.
  void begin_stop(std::chrono::milliseconds grace, std::chrono::milliseconds delay = {},
                  const std::vector<std::uint32_t>& delayed = {});
  Task<void> stop_sequence();
  void close_everything();

  const CgroupFiles cgroup_files_ = read_cgroup_files();  // as the agent found them at its start
  asio::io_context io_{1};
  GuardWatch guard_;
  ControlChannel channel_;
  NetworkServices network_;
  JobResources resources_;
  OwnProcesses processes_;
  WorkerGroup workers_;
  ForkedCalls prepare_calls_;
  HostQueries queries_;
  RecorderFeed feed_;
  RuntimeWatch runtimes_;
  asio::signal_set child_signal_, end_signals_;
  TaskGroup tasks_;
  Event over_;

  std::chrono::milliseconds grace_{5000};  // between TERM and KILL if drun is gone
  PreparedJob job_;
  std::optional<OomWatch> oom_;  // set once workers run

  bool stopping_ = false;
  bool closing_ = false;
};

}  // namespace drun::agent
