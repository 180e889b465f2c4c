// Follows the start of a job: which host is in which phase, since when. Reports to the terminal (one line, redrawn),
// the log (-v: a line per stage, -vv: one per host) and --events. Owned by the job, on its thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/report/events.h"
#include "launcher/report/progress.h"
#include "launcher/report/reporter.h"

namespace drun::launcher {

class StartWatch {
 public:
  StartWatch(asio::io_context& io, Reporter& reporter, Events& events)
      : reporter_(reporter), events_(events), wake_(io.get_executor()) {}

  // Begins a stage for these hosts, which are identified by their index until the next stage.
  void begin(Stage stage, std::vector<std::string> hosts);
  void enter(std::size_t host, transport::Phase phase);
  transport::OnPhase on_phase(std::size_t host);  // enter() as a callback; must not outlive this object
  void done(std::size_t host);
  void agent_ready(std::size_t host, const control::Hello& hello);  // also calls done()
  void failed(std::size_t host, const Error& error);
  void end();  // ends the stage and logs how long it took

  transport::Phase phase(std::size_t host) const { return progress_.phase(host); }

  // Draws until stop(). Returns at once if reporter.status_width() is 0.
  Task<void> draw();
  void stop();  // idempotent; removes the line

 private:
  Reporter& reporter_;
  Events& events_;
  Progress progress_;
  std::vector<bool> connected_;  // already reported to --events
  Event wake_;
  bool active_ = false;  // a stage is in progress
  bool stopped_ = false;
};

}  // namespace drun::launcher
