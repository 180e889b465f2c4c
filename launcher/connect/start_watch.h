// Follows the start of a job: which host is in which phase, since when. Tells the terminal (one line, redrawn), the log
// (-v: a line per stage, -vv: one per host) and --events. Owned by the job, on its thread.
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

  // A stage begins for these hosts; they are known by their index until the next one.
  void begin(Stage stage, std::vector<std::string> hosts);
  void enter(std::size_t host, transport::Phase phase);
  transport::OnPhase on_phase(std::size_t host);  // the same, to be handed on; must not outlive this object
  void done(std::size_t host);
  void agent_ready(std::size_t host, const control::Hello& hello);  // and done
  void failed(std::size_t host, const Error& error);
  void end();  // of the stage; says what it took

  transport::Phase phase(std::size_t host) const { return progress_.phase(host); }

  // Draws until stop(). Only where reporter.status_width() is not 0.
  Task<void> draw();
  void stop();  // idempotent; takes the line away

 private:
  Reporter& reporter_;
  Events& events_;
  Progress progress_;
  std::vector<bool> connected_;  // told to --events
  Event wake_;
  bool active_ = false;  // a stage is in progress
  bool stopped_ = false;
};

}  // namespace drun::launcher
