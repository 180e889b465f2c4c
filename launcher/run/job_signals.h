// Handles signals to a job: the first Ctrl-C, TERM, HUP or QUIT ends it, the second kills it; USR1 and USR2 are
// forwarded to the workers; Ctrl-Z and `fg` stop and continue it; WINCH is passed on by the owner. docs/ending.md has
// the table.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <functional>
#include <utility>

#include "base/asio.h"
#include "launcher/output/output_writer.h"
#include "launcher/report/events.h"
#include "launcher/report/reporter.h"
#include "launcher/run/supervisor.h"

namespace drun::launcher {

// To write them, before an end that waits for no thread; a stopped terminal shows none.
inline constexpr std::chrono::milliseconds kLastWords{2000};

// Owned by the job, on its thread. The objects passed to it must outlive it.
class JobSignals {
 public:
  JobSignals(asio::io_context& io, Reporter& reporter, AgentChannels& channels, Supervisor& supervisor, Events& events,
             OutputWriter& output);

  void catch_them();   // signals that were ignored at the start (nohup) stay ignored
  Task<void> watch();  // until release()
  void on_resize(std::function<void()> resized) { resized_ = std::move(resized); }  // of drun's terminal
  void workers_started() { workers_started_ = true; }
  // From here on these signals end drun, whatever it still waits for; the agents then see the end of their channels.
  void release();

 private:
  void end_job(int number);
  Task<void> stop_ourselves();

  Reporter& reporter_;
  AgentChannels& channels_;
  Supervisor& supervisor_;
  Events& events_;
  OutputWriter& output_;
  asio::signal_set signals_;
  std::function<void()> resized_;
  bool workers_started_ = false;
  bool released_ = false;
  int n_ends_ = 0;
};

}  // namespace drun::launcher
