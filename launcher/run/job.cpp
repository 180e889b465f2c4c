#include "launcher/run/job.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/exit_status.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/report/left_running.h"
#include "launcher/run/job_phases.h"

namespace drun::launcher {

namespace {

using std::chrono::milliseconds;

// Entries of a rank's flight recorder for --timeline: enough for the calls between two polls of its agent, 640 a
// millisecond.
constexpr std::uint32_t kTimelineEntries = 32768;
constexpr auto kTimelineEvery = milliseconds(50);
constexpr auto kTimelineEnd = milliseconds(5000);       // for what is still on its way when all workers are over
constexpr auto kEventsEnd = milliseconds(2000);         // for the reader of the last events
constexpr auto kJoinNoticeDelay = milliseconds(30000);  // then the ranks that have not joined are named, once

}  // namespace

int Job::report(const std::vector<Error>& errors) {
  int status = 0;
  const auto folded = fold_errors(errors);
  why_not_started_ = folded.front().message();
  for (const auto& e : folded) {
    reporter_.error(e);
    if (status == 0) status = exit_status(e.code);
  }
  return status;
}

int Job::report(const Error& error) {
  why_not_started_ = error.message();
  reporter_.error(error);
  return exit_status(error.code);
}

Task<int> Job::run() {
  const int status = co_await run_phases();
  co_return co_await finish(status);
}

Task<int> Job::run_phases() {
  signals_.catch_them();
  tasks_.spawn(signals_.watch());
  start_deadline_ = Clock::now() + options_.connect.start_timeout;
  int status = open_files();
  if (status == kExitOk) status = co_await connect();
  if (status == kExitOk) status = co_await choose_network();
  if (status == kExitOk) status = start_rendezvous();
  if (status == kExitOk) status = co_await prepare();
  if (status == kExitOk) status = co_await run_workers();
  co_return status;
}

// From here on the job's end is the supervisor's.
Task<int> Job::run_workers() {
  auto files = co_await output_.open(hosts_, plan_.placement, start_deadline_);
  if (!files) co_return report(files.error());
  auto active = supervisor_.activate();
  if (!active) co_return report(active.error());
  tasks_.spawn(output_.run());
  const Deadline deadline = start_deadline(start_deadline_);
  spawn(deadline);
  tasks_.spawn(joins_.watch_start(deadline));
  tasks_.spawn(joins_.watch_joins(std::min<milliseconds>(kJoinNoticeDelay, options_.connect.start_timeout / 2)));
  if (input_) tasks_.spawn(input_->read());
  if (options_.stdin_mode == StdinMode::kAll) tasks_.spawn(input_->watch());
  if (options_.timeout.count() > 0) {
    const auto joined = [this] { return rendezvous_.server()->joined(); };
    const auto ended = [this] { output_.writer().limit_wait(); };
    tasks_.spawn(timeout_.watch(hosts_, plan_.placement, options_.timeout, joined, ended));
  }
  if (options_.stall_timeout.count() > 0) tasks_.spawn(stalls_.watch(hosts_, options_.stall_timeout));
  co_await supervisor_.wait();
  stalls_.stop();
  if (timeout_.has_passed()) co_await timeout_.finish_report();
  if (timeline_.is_open()) co_await timeline_.wait(Clock::now() + kTimelineEnd);
  co_await output_.finish();
  if (const auto late = supervisor_.unfinished_hosts(); !late.empty()) reporter_.warning(unconfirmed_text(late));
  co_return timeout_.has_passed() ? static_cast<int>(kExitTimeout) : supervisor_.status();
}

void Job::spawn(Deadline deadline) {
  say_bindings();
  say_threads();
  if (options_.pty) signals_.on_resize([this] { output_.resize_workers(); });
  if (timeline_.is_open()) {
    control::Record order;
    order.n_entries = kTimelineEntries;
    order.timeline_ms = static_cast<std::uint32_t>(kTimelineEvery.count());
    for (AgentChannel* host : hosts_) host->send(control::Type::kRecord, control::encode(order));
  }
  auto orders = spawn_orders(options_, plan_, output_.window());
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    orders[i].start_ms = time_of_agent(left_until(deadline));
    hosts_[i]->send(control::Type::kSpawn, control::encode(orders[i]));
  }
  watch_.begin(Stage::kStart, plan_.host_names);
  for (std::size_t i = 0; i < hosts_.size(); ++i) watch_.enter(i, transport::Phase::kStart);
  workers_started_ = true;
  signals_.workers_started();
}

void Job::say_bindings() {
  for (const auto& place : plan_.placement.ranks) {
    const auto* binding = plan_.binding_of(place);
    if (binding == nullptr) continue;
    log::info("rank " + std::to_string(place.rank) + " on " + plan_.host_names[static_cast<std::size_t>(place.host)] +
              ": " + binding->place + " (CPUs " + binding->cpus + ")");
  }
}

// A note at a terminal only, as that of the network.
void Job::say_threads() {
  const std::string text = threads_in_short(threads_of(options_, plan_));
  if (text.empty()) return;
  if (reporter_.status_width() > 0) {
    reporter_.note(text);
  } else {
    log::info(text);
  }
}

// Answers to the questionnaire and what flight recorders say are the job's; the rest is the supervisor's.
void Job::on_frame(AgentChannel& host, control::Frame frame) {
  if (frame.type == control::Type::kDescribed) {
    auto message = control::decode<control::Described>(frame.body);
    if (message && supervisor_.speaks_for(host, message->rank, "a snapshot")) timeout_.take(std::move(*message));
    return;
  }
  if (frame.type == control::Type::kActivity) {
    const auto message = control::decode<control::Activity>(frame.body);
    const auto is_own = [&](const auto& rank) { return supervisor_.speaks_for(host, rank.rank, "the progress"); };
    if (message && std::all_of(message->ranks.begin(), message->ranks.end(), is_own))
      activity_.take(*message, Clock::now());
    return;
  }
  if (frame.type == control::Type::kRas) {
    if (auto message = control::decode<control::Text>(frame.body)) stalls_.take_ras(host.name(), message->text);
    return;
  }
  if (frame.type == control::Type::kTimeline) {
    const auto message = control::decode<control::Timeline>(frame.body);
    if (!message) return;
    const bool is_end = message->rank == control::Timeline::kEnd;
    if (is_end || supervisor_.speaks_for(host, message->rank, "the timeline")) timeline_.take(host, *message);
    return;
  }
  if (frame.type == control::Type::kOutput) watch_.stop();
  supervisor_.on_frame(host, std::move(frame));
}

void Job::report_job(int status) {
  JobReport report;
  if (workers_started_) report = supervisor_.report();
  for (auto& rank : report.ranks) {
    const auto* binding = plan_.binding_of(plan_.placement.ranks[static_cast<std::size_t>(rank.rank)]);
    if (binding != nullptr) rank.cpus = binding->cpus;
  }
  if (report.failure) activity_.add_to(*report.failure);
  if (report.why.empty()) report.why = why_not_started_;
  report.status = status;
  report.job_id = job_id_;
  report.command = options_.command;
  report.working_directory = options_.working_directory;
  report.allocation = options_.hosts.front().job;
  report.begin = began_;
  report.seconds = static_cast<double>(monotonic_ns() - began_ns_) * 1e-9;
  reporter_.job_over(report);
}

// Also of a job that failed.
void Job::write_timeline() {
  if (!timeline_.is_open() || !workers_started_) return;
  auto written = timeline_.write(job_id_);
  if (!written) return reporter_.warning(written.error().message());
  if (timeline_.n_lost() == 0) return;
  reporter_.warning("--timeline: " + std::to_string(timeline_.n_lost()) + " of " +
                    std::to_string(timeline_.n_lost() + timeline_.n_calls()) +
                    " calls are not in it: they came faster than they could be collected");
}

Task<int> Job::finish(int status) {
  watch_.stop();
  events_.job_ended(status);
  timeout_.stop();
  joins_.stop();
  stalls_.stop();
  if (input_) input_->stop();
  if (status != kExitOk) network_.forget();
  signals_.release();
  // Below everything that the workers wrote. Now, because a signal from here on ends drun at once.
  report_job(status);
  write_timeline();
  co_await end_channels(io_, connected_.agents);
  rendezvous_.stop();
  co_await tasks_.join();
  co_await rendezvous_.join();
  events_.close(kEventsEnd);
  co_return status;
}

namespace {

Task<void> run_and_store(Job& job, int& status) { status = co_await job.run(); }

}  // namespace

int run_job(JobOptions options, Reporter& reporter) {
  asio::io_context io(1);
  int status = kExitInternal;
  Job job(io, std::move(options), reporter);
  run_on_loop(io, run_and_store(job, status));
  if (job.has_stuck_thread()) {
    reporter.last_words(kLastWords);
    std::_Exit(status);
  }
  return status;
}

}  // namespace drun::launcher
