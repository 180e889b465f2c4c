#include "launcher/run/job_signals.h"

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "base/exit_status.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/report/signal_text.h"

namespace drun::launcher {

namespace {

bool ignored_at_start(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

JobSignals::JobSignals(asio::io_context& io, Reporter& reporter, AgentChannels& channels, Supervisor& supervisor,
                       Events& events, OutputWriter& output)
    : reporter_(reporter),
      channels_(channels),
      supervisor_(supervisor),
      events_(events),
      output_(output),
      signals_(io) {}

void JobSignals::catch_them() {
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGUSR1, SIGUSR2}) {
    if (!ignored_at_start(s)) signals_.add(s);
  }
}

Task<void> JobSignals::watch() {
  while (!released_) {
    const auto [ec, number] = co_await signals_.async_wait(as_result);
    if (ec || released_) break;
    if (number == SIGUSR1 || number == SIGUSR2) {
      if (workers_started_) supervisor_.forward_signal(number);
    } else if (number == SIGWINCH) {
      if (resized_) resized_();
    } else if (number == SIGTSTP) {
      co_await stop_ourselves();
    } else {
      end_job(number);
    }
  }
}

void JobSignals::end_job(int number) {
  const std::string name = signal_name(number);
  if (!workers_started_) {
    // Nothing runs yet: the agents see the end of their channels and exit.
    reporter_.warning("ended by " + (number == SIGINT ? "Ctrl-C" : name) + " before anything was started");
    events_.job_ended(kExitSignal + number);
    events_.close(kLastWords);
    reporter_.last_words(kLastWords);
    std::_Exit(kExitSignal + number);
  }
  ++n_ends_;
  if (n_ends_ == 1) {
    reporter_.warning(number == SIGINT ? "ending the job; press Ctrl-C again to kill it at once"
                                       : "ending the job: got " + name);
    supervisor_.stop(kExitSignal + number, "drun got " + name);
    output_.limit_wait();
  } else if (n_ends_ == 2) {
    supervisor_.stop_now();
  } else {
    std::_Exit(kExitSignal + number);
  }
}

// Ctrl-Z: the agents stop the workers first, then drun stops itself; the time until `fg` counts for no deadline. A job
// that is being ended continues to end.
Task<void> JobSignals::stop_ourselves() {
  co_await channels_.pause();
  const auto stopped = std::chrono::steady_clock::now();
  struct sigaction ours {};
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGTSTP, &standard, &ours);
  ::raise(SIGTSTP);  // returns when drun is continued; at once if nothing can continue it (an orphaned process group)
  ::sigaction(SIGTSTP, &ours, nullptr);
  // A second SIGTSTP that came before drun stopped is dropped, as the kernel drops a pending one when CONT comes.
  boost::system::error_code ignored;
  signals_.remove(SIGTSTP, ignored);
  signals_.add(SIGTSTP, ignored);
  Clock::was_stopped_for(std::chrono::steady_clock::now() - stopped);
  channels_.resume();
  output_.forget_screen();
  if (resized_) resized_();  // the terminal may have been resized meanwhile
}

void JobSignals::release() {
  released_ = true;
  boost::system::error_code ignored;
  signals_.cancel(ignored);
  signals_.clear(ignored);
}

}  // namespace drun::launcher
