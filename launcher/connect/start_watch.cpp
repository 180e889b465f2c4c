#include "launcher/connect/start_watch.h"

#include "base/log.h"

namespace drun::launcher {

namespace {
constexpr auto kQuiet = std::chrono::milliseconds(300);  // a job that has started by then shows no line
constexpr auto kRedraw = std::chrono::milliseconds(200);
}  // namespace

void StartWatch::begin(Stage stage, std::vector<std::string> hosts) {
  connected_.assign(hosts.size(), false);
  progress_.begin(stage, std::move(hosts), Clock::now());
  active_ = true;
}

void StartWatch::enter(std::size_t host, transport::Phase phase) {
  progress_.enter(host, phase, Clock::now());
  if ((phase == transport::Phase::kAgent || phase == transport::Phase::kDelivery) && !connected_[host]) {
    connected_[host] = true;
    Progress::Times times = progress_.times(host);
    times.pop_back();  // the phase that begins now
    events_.host_connected(progress_.name(host), times);
  }
}

transport::OnPhase StartWatch::on_phase(std::size_t host) {
  return [this, host](transport::Phase phase) { enter(host, phase); };
}

void StartWatch::done(std::size_t host) { progress_.done(host, Clock::now()); }

void StartWatch::agent_ready(std::size_t host, const control::Hello& hello) {
  done(host);
  events_.agent_ready(progress_.name(host), hello, progress_.times(host));
}

void StartWatch::failed(std::size_t host, const Error& error) {
  progress_.failed(host, Clock::now());
  events_.host_failed(progress_.name(host), error);
}

void StartWatch::end() {
  if (!active_) return;
  active_ = false;
  log::info(progress_.summary(Clock::now()));
  for (std::size_t host = 0; host < connected_.size(); ++host) log::debug(progress_.host_summary(host));
}

Task<void> StartWatch::draw() {
  if (reporter_.status_width() == 0) co_return;
  Deadline next = Clock::now() + kQuiet;
  while (!stopped_) {
    const bool woken = co_await wake_.wait_until(next);
    if (woken || stopped_) break;
    const std::size_t width = reporter_.status_width();
    reporter_.status(progress_.line(Clock::now(), width));
    next = Clock::now() + kRedraw;
  }
}

void StartWatch::stop() {
  if (stopped_) return;
  stopped_ = true;
  reporter_.status("");
  wake_.notify();
}

}  // namespace drun::launcher
