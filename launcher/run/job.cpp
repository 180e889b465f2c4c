#include "launcher/run/job.h"

#include <signal.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/exit_status.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/connect/start_watch.h"
#include "launcher/output/worker_window.h"
#include "launcher/report/events.h"
#include "launcher/run/collective_progress.h"
#include "launcher/run/job_network.h"
#include "launcher/run/job_orders.h"
#include "launcher/run/job_rendezvous.h"
#include "launcher/run/job_signals.h"
#include "launcher/run/join_tracker.h"
#include "launcher/run/rank_snapshots.h"
#include "launcher/run/stall_report.h"
#include "launcher/run/supervisor.h"
#include "launcher/run/timeline.h"
#include "launcher/run/worker_input.h"
#include "transport/helper_pool.h"

namespace drun::launcher {

namespace {

using std::chrono::milliseconds;

// Of a rank's flight recorder, for --timeline: enough for all calls between two looks of its agent, 640 a millisecond.
constexpr std::uint32_t kTimelineEntries = 32768;
constexpr auto kTimelineEvery = milliseconds(50);
constexpr auto kTimelineEnd = milliseconds(5000);       // for what is still on its way when all workers are over
constexpr auto kJoinNoticeDelay = milliseconds(30000);  // then the ranks that have not joined are named, once

// Better one line before the start than whatever fails first in the middle of it.
Result<void> check_open_files(std::size_t n_hosts, std::size_t n_workers, bool with_files) {
  constexpr std::size_t kOwn = 64;
  constexpr std::size_t kPerHost = 4;  // a socket and its duplicate, or the pipes of a child
  const std::size_t need =
      kOwn + kPerHost * n_hosts + (with_files ? 3 : 1) * n_workers;  // each may join the rendezvous
  const std::size_t limit = raise_open_file_limit();
  if (limit == 0 || limit >= need) return {};
  return fail(Error(Errc::kUsage, "open files",
                    plural(n_hosts, "host") + " and " + plural(n_workers, "worker") + " need about " +
                        std::to_string(need) + " descriptors, and the hard limit here is " + std::to_string(limit))
                  .with_hint("as root: ulimit -Hn " + std::to_string(need) +
                             "; for good: nofile in /etc/security/limits.conf"));
}

std::string make_job_id() {
  std::string bytes(8, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  return hex(bytes);
}

class Job {
 public:
  Job(asio::io_context& io, JobOptions options, Reporter& reporter)
      : io_(io),
        options_(std::move(options)),
        reporter_(reporter),
        tasks_(io.get_executor()),
        timeout_(io.get_executor()),
        output_done_(io.get_executor()),
        events_(reporter),
        watch_(io, reporter, events_),
        snapshots_(io),
        asked_(io.get_executor()),
        network_(io, reporter, events_, watch_, options_.cache_directory, options_.read_cache),
        supervisor_(io, reporter, options_.grace),
        rendezvous_(io, supervisor_, job_id_),
        activity_(supervisor_.ranks()),
        stalls_(io, reporter, activity_, supervisor_),
        timeline_(io),
        output_(
            io, options_.output,
            [this](int rank, control::Stream stream, std::size_t n) { give_credit(rank, stream, n); },
            [this](Error error) { supervisor_.on_output_broken(error); }),
        joins_(io, reporter, supervisor_, watch_, events_),
        signals_(io, reporter, channels_, supervisor_, events_, output_) {}

  Task<int> run();

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

  void attach();
  void configure_agents();
  Task<int> check_hosts_first(std::optional<NetworkProbe>* network);
  void put_rank_0_where_all_reach_it();
  void expect_workers();
  Task<void> prepare_host(std::size_t host, std::vector<Error>& errors);
  void spawn();
  void say_bindings();
  void say_threads();

  void on_frame(AgentChannel& host, control::Frame frame);
  void give_credit(int rank, control::Stream stream, std::size_t n_bytes);
  control::WindowSize window() const;
  void resize_workers();
  Task<void> write_output();
  void speak_through(const Reporter::Sink& sink);
  Task<void> watch_timeout();
  Task<void> report_timeout();

  void report_events(const Placement& planned);
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
  Event timeout_, output_done_;
  Events events_;
  StartWatch watch_;
  Deadline start_deadline_{};
  RankSnapshots snapshots_;
  bool timed_out_ = false;
  Event asked_;  // the snapshots of --timeout have been reported
  std::string job_id_ = make_job_id();
  AgentChannels channels_;
  Connected connected_;
  std::vector<AgentChannel*> hosts_;  // those that have a rank, by used host
  StartPlan plan_;
  control::WindowSize window_;
  JobNetwork network_;
  Supervisor supervisor_;
  JobRendezvous rendezvous_;
  CollectiveProgress activity_;
  StallReporter stalls_;
  Timeline timeline_;
  OutputWriter output_;
  JoinTracker joins_;
  JobSignals signals_;
  std::unique_ptr<WorkerInput> input_;
  std::chrono::system_clock::time_point began_ = std::chrono::system_clock::now();
  std::int64_t began_ns_ = monotonic_ns();
  bool workers_started_ = false;
  std::string why_not_started_;
};

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
  if (status != kExitOk) network_.forget();
  write_timeline();
  report_job(status);  // below everything that the workers wrote
  co_return status;
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
  co_return co_await finish(status);
}

int Job::open_files() {
  if (!options_.events_file.empty()) {
    if (auto open = events_.open(options_.events_file); !open) return report(open.error());
  }
  if (!options_.timeline_file.empty()) {
    if (auto open = timeline_.open(options_.timeline_file); !open) return report(open.error());
  }
  return kExitOk;
}

Task<int> Job::connect() {
  // Bad placement shows before anything is connected; two names of one machine only afterwards.
  auto planned = place(options_.hosts, options_.np);
  if (!planned) co_return report(planned.error());
  auto enough_files = check_open_files(planned->host_indices.size(), static_cast<std::size_t>(planned->size),
                                       !options_.output.directory.empty());
  if (!enough_files) co_return report(enough_files.error());
  report_events(*planned);
  tasks_.spawn(watch_.draw());

  options_.connect.grace = options_.grace;
  connected_ =
      co_await connect_hosts(io_, helper_.get(), channels_, options_.hosts, options_.connect, reporter_, &watch_);
  if (!connected_.errors.empty()) co_return report(connected_.errors);
  std::vector<Host> machines;
  for (const auto& link : connected_.links) machines.push_back(link->host());
  auto placed = place(machines, options_.np);
  if (!placed) co_return report(placed.error());
  plan_.job_id = job_id_;
  plan_.placement = std::move(*placed);
  for (const int index : plan_.placement.host_indices) {
    hosts_.push_back(connected_.links[static_cast<std::size_t>(index)].get());
  }
  attach();
  configure_agents();
  co_return kExitOk;
}

void Job::configure_agents() {
  HeartbeatTimes beats;
  beats.timeout = options_.heartbeat_timeout;
  beats.interval = std::min(beats.interval, beats.timeout / 4);
  beats.warn = std::min(beats.warn, beats.timeout / 2);
  for (AgentChannel* host : hosts_) {
    host->on([this](AgentChannel& from, control::Frame frame) { on_frame(from, std::move(frame)); },
             [this](AgentChannel& from, const Error& error) {
               timeline_.host_lost();
               supervisor_.on_lost(from, error);
             },
             [this](AgentChannel& from, std::chrono::seconds silence) {
               reporter_.warning(from.name() + ": silent for " + std::to_string(silence.count()) + " s");
             });
    host->set_times(beats);
    control::Configure configure;
    configure.job_id = job_id_;
    configure.heartbeat_ms = static_cast<std::uint32_t>(beats.interval.count());
    configure.heartbeat_timeout_ms = static_cast<std::uint32_t>(beats.timeout.count());
    configure.grace_ms = static_cast<std::uint32_t>(options_.grace.count());
    host->send(control::Type::kConfigure, control::encode(configure));
  }
}

// Gives the supervisor what it needs, except for the rendezvous.
void Job::attach() {
  Supervisor::Parts parts;
  parts.hosts = hosts_;
  parts.placement = plan_.placement;
  parts.output = &output_;
  parts.events = &events_;
  parts.started = [this](const control::Started& m) { joins_.on_started(m); };
  parts.exited = [this](const control::Exited& m) { joins_.on_exited(m); };
  parts.stdin_taken = [this](int rank, std::uint64_t n_bytes) {
    if (input_) input_->on_taken(rank, n_bytes);
  };
  supervisor_.attach(std::move(parts));
}

Task<int> Job::choose_network() {
  std::optional<NetworkProbe> known;
  if (options_.examine_hosts) {
    const int status = co_await check_hosts_first(&known);
    if (status != kExitOk) co_return status;
  }
  auto found = co_await network_.find(hosts_, head_index(), options_.interfaces, std::move(known), start_deadline_);
  if (!found) co_return report(found.error());
  put_rank_0_where_all_reach_it();
  plan_.network = network_.choice();
  for (const AgentChannel* host : hosts_) {
    plan_.host_names.push_back(host->name());
    plan_.n_cpus.push_back(static_cast<int>(host->hello().n_cpus));
  }
  co_return kExitOk;
}

Task<int> Job::check_hosts_first(std::optional<NetworkProbe>* network) {
  const auto began = Clock::now();
  const int status = co_await options_.examine_hosts(io_, hosts_, head_index(), reporter_, network);
  start_deadline_ += Clock::now() - began;
  if (status != kExitOk) why_not_started_ = "--check found that the hosts are not ready";
  co_return status;
}

// MASTER_ADDR is rank 0's host, so every other host must reach it. Else the first host that all reach gets the first
// ranks.
void Job::put_rank_0_where_all_reach_it() {
  const int host = network_.reached_by_all();
  if (host == 0) return;
  const std::string why = "not every host can connect to " + hosts_.front()->name();
  if (host < 0) {
    reporter_.warning(why + ", where MASTER_ADDR is, nor to any other: torch can't start");
    return;
  }
  const std::string& name = hosts_[static_cast<std::size_t>(host)]->name();
  reporter_.warning(why + ": rank 0 and MASTER_ADDR are on " + name + "; put " + name + " first in the list of hosts");
  plan_.placement = led_by(plan_.placement, host);
  std::rotate(hosts_.begin(), hosts_.begin() + host, hosts_.begin() + host + 1);
  network_.move_to_front(host);
  supervisor_.place(hosts_, plan_.placement);
}

int Job::head_index() const {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (is_head(i)) return static_cast<int>(i);
  }
  return -1;
}

int Job::start_rendezvous() {
  rendezvous::ServerEvents events;
  events.joined = [this](int rank, int pid) {
    supervisor_.on_joined(rank);
    joins_.on_joined(rank, pid);
  };
  events.complained = [this](int rank, const std::string& text) { supervisor_.on_complaint(rank, text); };
  events.abort_requested = [this](const rendezvous::Abort& abort) { supervisor_.on_abort_requested(abort); };
  auto started = rendezvous_.start(hosts_, head_index(), plan_.placement, plan_.network, std::move(events));
  if (!started) return report(started.error());
  expect_workers();
  return kExitOk;
}

void Job::expect_workers() {
  activity_.expect(hosts_);
  if (timeline_.is_open()) timeline_.expect(hosts_, supervisor_.ranks(), began_ns_);
  joins_.expect(rendezvous_.server());
  if (options_.stdin_mode == StdinMode::kNone) return;
  std::vector<int> readers;
  for (const auto& place : plan_.placement.ranks) {
    if (options_.stdin_mode == StdinMode::kAll || place.rank == options_.stdin_rank) readers.push_back(place.rank);
  }
  input_ = std::make_unique<WorkerInput>(io_, reporter_, supervisor_, hosts_, plan_.placement, readers);
}

Task<int> Job::prepare() {
  std::vector<std::vector<Error>> errors(hosts_.size());
  plan_.bindings.resize(hosts_.size());
  TaskGroup group(io_.get_executor());
  watch_.begin(Stage::kPrepare, plan_.host_names);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    watch_.enter(i, transport::Phase::kPrepare);
    group.spawn(prepare_host(i, errors[i]));
  }
  co_await group.join();
  watch_.end();
  std::vector<Error> all;
  for (auto& list : errors) {
    for (auto& e : list) all.push_back(std::move(e));
  }
  if (!all.empty()) co_return report(all);
  plan_.key = rendezvous_.key();
  plan_.handouts = rendezvous_.handouts();
  co_return kExitOk;
}

Task<void> Job::prepare_host(std::size_t host, std::vector<Error>& errors) {
  auto route = co_await rendezvous_.choose_route(host, start_deadline_);
  if (!route) {
    errors.push_back(std::move(route.error()));
    co_return;
  }
  std::string body = control::encode(prepare_order(options_, plan_, host, is_head(host)));
  if (body.size() >= control::kMaxFrame) {
    errors.push_back(Error(Errc::kUsage, "environment and command", "larger than 16 MiB"));
    co_return;
  }
  auto reply = co_await hosts_[host]->request(control::Type::kPrepare, std::move(body), control::Type::kPrepared,
                                              "prepare", start_deadline_);
  if (!reply) {
    errors.push_back(std::move(reply.error()));
    co_return;
  }
  watch_.done(host);
  auto prepared = control::decode<control::Prepared>(reply->body);
  if (!prepared) {
    errors.push_back(std::move(prepared.error()).with_subject(hosts_[host]->name()));
    co_return;
  }
  if (host == 0) plan_.master_port = prepared->master_port;
  errors = errors_of(*prepared, hosts_[host]->name());
  plan_.bindings[host] = std::move(prepared->bindings);
}

// From here on the job's end is the supervisor's.
Task<int> Job::run_workers() {
  std::vector<RankLabel> labels;
  for (const auto& place : plan_.placement.ranks) {
    labels.push_back(RankLabel{plan_.host_names[static_cast<std::size_t>(place.host)], place.host});
  }
  auto files = output_.open(labels);
  if (!files) co_return report(files.error());
  auto active = supervisor_.activate();
  if (!active) co_return report(active.error());
  tasks_.spawn(write_output());
  speak_through([this](const std::string& text) { output_.push_own(text); });
  spawn();
  tasks_.spawn(joins_.watch_start(start_deadline_));
  tasks_.spawn(joins_.watch_joins(std::min<milliseconds>(kJoinNoticeDelay, options_.connect.start_timeout / 2)));
  if (input_) tasks_.spawn(input_->read());
  if (options_.stdin_mode == StdinMode::kAll) tasks_.spawn(input_->watch());
  if (options_.timeout.count() > 0) tasks_.spawn(watch_timeout());
  if (options_.stall_timeout.count() > 0) tasks_.spawn(stalls_.watch(hosts_, options_.stall_timeout));
  co_await supervisor_.wait();
  stalls_.stop();
  if (timed_out_) {
    snapshots_.cancel();
    co_await asked_.wait();
  }
  if (timeline_.is_open()) co_await timeline_.wait(Clock::now() + kTimelineEnd);
  output_.stop();
  co_await output_done_.wait();  // what is written last may fail, too
  speak_through(nullptr);
  if (output_.left_a_line_open()) reporter_.line_is_open();
  int status = timed_out_ ? kExitTimeout : supervisor_.status();
  if (const auto late = supervisor_.unfinished_hosts(); !late.empty()) {
    reporter_.warning(join(late, ", ") + " did not confirm that all its workers have ended");
    if (status == kExitOk) status = kExitTimeout;
  }
  co_return status;
}

void Job::spawn() {
  say_bindings();
  say_threads();
  window_ = window();
  if (options_.pty) signals_.on_resize([this] { resize_workers(); });
  if (timeline_.is_open()) {
    control::Record order;
    order.n_entries = kTimelineEntries;
    order.timeline_ms = static_cast<std::uint32_t>(kTimelineEvery.count());
    for (AgentChannel* host : hosts_) host->send(control::Type::kRecord, control::encode(order));
  }
  const auto orders = spawn_orders(options_, plan_, window_);
  for (std::size_t i = 0; i < hosts_.size(); ++i) hosts_[i]->send(control::Type::kSpawn, control::encode(orders[i]));
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

// Of the workers' terminals.
control::WindowSize Job::window() const {
  const TerminalSize size = worker_window(own_terminal_size(), output_.tag_width());
  control::WindowSize out;
  out.columns = static_cast<std::uint16_t>(size.columns);
  out.rows = static_cast<std::uint16_t>(size.rows);
  return out;
}

// drun's terminal has another size.
void Job::resize_workers() {
  const control::WindowSize now = window();
  if (now == window_) return;
  window_ = now;
  for (AgentChannel* host : hosts_) host->send(control::Type::kResize, control::encode(now));
}

void Job::report_events(const Placement& planned) {
  std::vector<Events::JobHost> hosts;
  for (std::size_t i = 0; i < planned.host_indices.size(); ++i) {
    Events::JobHost host;
    host.name = options_.hosts[static_cast<std::size_t>(planned.host_indices[i])].name;
    host.n_workers = planned.local_sizes[i];
    hosts.push_back(std::move(host));
  }
  events_.job_begun(job_id_, options_.command, planned.size, hosts);
}

// Answers to the questionnaire and what flight recorders say are the job's; the rest is the supervisor's.
void Job::on_frame(AgentChannel& host, control::Frame frame) {
  if (frame.type == control::Type::kDescribed) {
    if (auto message = control::decode<control::Described>(frame.body)) snapshots_.take(std::move(*message));
    return;
  }
  if (frame.type == control::Type::kActivity) {
    if (auto message = control::decode<control::Activity>(frame.body)) activity_.take(*message, Clock::now());
    return;
  }
  if (frame.type == control::Type::kRas) {
    if (auto message = control::decode<control::Text>(frame.body)) stalls_.take_ras(host.name(), message->text);
    return;
  }
  if (frame.type == control::Type::kTimeline) {
    if (auto message = control::decode<control::Timeline>(frame.body)) timeline_.take(host, *message);
    return;
  }
  if (frame.type == control::Type::kOutput) watch_.stop();
  supervisor_.on_frame(host, std::move(frame));
}

Task<void> Job::report_timeout() {
  timed_out_ = true;
  const auto ms = options_.timeout.count();
  const std::string seconds =
      std::to_string(ms / 1000) + (ms % 1000 >= 100 ? "." + std::to_string(ms % 1000 / 100) : "");
  const auto stacks = options_.stack_timeout;
  log::info("--timeout: asking every rank what it does");
  std::vector<int> joined = rendezvous_.server()->joined();
  const auto ranks = co_await snapshots_.ask(hosts_, plan_.placement, std::move(joined), stacks);
  Error error(Errc::kTimeout, "--timeout", "the job did not end within " + seconds + " s");
  error = std::move(error).with_context(describe_ranks(ranks));
  if (const auto text = describe_stacks(ranks); !text.empty()) error = std::move(error).with_context(text);
  reporter_.error(error);
  asked_.notify();
}

Task<void> Job::write_output() {
  co_await output_.run();
  output_done_.notify();
}

// drun's words for people, and on a terminal also those for developers; elsewhere these wait for no reader of the
// workers' output. Nothing: straight to stderr.
void Job::speak_through(const Reporter::Sink& sink) {
  reporter_.write_through(sink);
  if (::isatty(STDERR_FILENO) == 1) log::write_through(sink);
}

void Job::give_credit(int rank, control::Stream stream, std::size_t n_bytes) {
  control::Credit m;
  m.rank = static_cast<std::uint32_t>(rank);
  m.stream = stream;
  m.n_bytes = static_cast<std::uint32_t>(n_bytes);
  const auto host = plan_.placement.ranks[static_cast<std::size_t>(rank)].host;
  hosts_[static_cast<std::size_t>(host)]->send(control::Type::kCredit, control::encode(m));
}

Task<void> Job::watch_timeout() {
  const bool over = co_await timeout_.wait_until(Clock::now() + options_.timeout);
  if (over || supervisor_.stopping()) co_return;
  co_await report_timeout();
  supervisor_.stop(kExitTimeout, "the job's --timeout passed");
  output_.limit_wait();
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
  timeout_.notify();
  joins_.stop();
  stalls_.stop();
  if (input_) input_->stop();
  output_.stop();
  signals_.release();
  co_await end_channels(io_, connected_.links);
  rendezvous_.stop();
  co_await tasks_.join();
  speak_through(nullptr);
  co_await rendezvous_.join();
  co_return status;
}

Task<void> run_and_store(Job& job, int& status) { status = co_await job.run(); }

}  // namespace

int run_job(JobOptions options, Reporter& reporter) {
  asio::io_context io(1);
  ::signal(SIGPIPE, SIG_IGN);
  int status = kExitInternal;
  Job job(io, std::move(options), reporter);
  TaskGroup top(io.get_executor());
  top.spawn(run_and_store(job, status));
  io.run();
  return status;
}

}  // namespace drun::launcher
