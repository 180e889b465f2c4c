// Which workers have started and which ranks have joined the rendezvous; names those that keep the others waiting.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/asio.h"
#include "control/messages.h"
#include "launcher/connect/host_link.h"
#include "launcher/connect/start_watch.h"
#include "launcher/plan/placement.h"
#include "launcher/report/reporter.h"
#include "launcher/run/supervisor.h"
#include "rendezvous/server.h"

namespace drun::launcher {

// Owned by the job, on its thread; what it is given outlives it.
class Attendance {
 public:
  Attendance(asio::io_context& io, Reporter& reporter, Supervisor& supervisor, StartWatch& watch, Events& events);

  // `hosts`: by used host.
  void expect(std::vector<HostLink*> hosts, Placement placement, rendezvous::Server* server);
  void on_started(const HostLink& host, const control::Started& message);
  void on_exited(const HostLink& host, const control::Exited& message);
  void on_joined(int rank, int pid);

  // Ends the job if a host has not started its workers by then, or within a few seconds.
  Task<void> watch_start(Deadline deadline);
  // Warns once of those who have not joined so long after the first one did.
  Task<void> watch_joins(std::chrono::milliseconds patience);
  void stop();  // nobody is waited for any more; idempotent

 private:
  std::string absent_ranks() const;

  Reporter& reporter_;
  Supervisor& supervisor_;
  StartWatch& watch_;
  Events& events_;
  std::vector<HostLink*> hosts_;
  Placement placement_;
  rendezvous::Server* server_ = nullptr;
  std::vector<int> n_unstarted_;  // workers, by used host
  std::map<int, int> pids_;       // of the workers that run, by rank
  std::set<int> joined_;          // ever
  bool over_ = false;
  Event all_started_, first_joined_, all_joined_;
};

}  // namespace drun::launcher
