// Watches the workers start and the ranks join the rendezvous; names those that keep the others waiting.
#pragma once

#include <chrono>
#include <string>

#include "base/asio.h"
#include "control/messages.h"
#include "launcher/connect/start_watch.h"
#include "launcher/report/reporter.h"
#include "launcher/run/supervisor.h"
#include "rendezvous/server.h"

namespace drun::launcher {

// The time by which all workers must have been started: as wanted, but at least 5 s from now.
Deadline start_deadline(Deadline wanted);

// Owned by the job, on its thread; what it is given outlives it.
class JoinTracker {
 public:
  JoinTracker(asio::io_context& io, Reporter& reporter, Supervisor& supervisor, StartWatch& watch, Events& events);

  void expect(rendezvous::Server* server) { server_ = server; }
  // After the supervisor's ranks() have it.
  void on_started(const control::Started& message);
  void on_exited(const control::Exited& message);
  void on_joined(int rank, int pid);

  // Ends the job if a host has not reported the start of all its workers by then.
  Task<void> watch_start(Deadline deadline);
  // Warns once of the ranks that have not joined `delay` after the first one did.
  Task<void> watch_joins(std::chrono::milliseconds delay);
  void stop();  // ends both watches; idempotent

 private:
  const RankTable& ranks() const { return supervisor_.ranks(); }
  std::string absent_ranks() const;

  Reporter& reporter_;
  Supervisor& supervisor_;
  StartWatch& watch_;
  Events& events_;
  rendezvous::Server* server_ = nullptr;
  bool over_ = false;
  Event all_started_, first_joined_, all_joined_;
};

}  // namespace drun::launcher
