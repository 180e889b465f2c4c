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
#include "launcher/network/network.h"
#include "launcher/network/network_speed.h"
#include "launcher/network/network_text.h"
#include "launcher/output/worker_window.h"
#include "launcher/report/events.h"
#include "launcher/run/collective_progress.h"
#include "launcher/run/job_signals.h"
#include "launcher/run/join_tracker.h"
#include "launcher/run/rank_snapshots.h"
#include "launcher/run/stall_report.h"
#include "launcher/run/supervisor.h"
#include "launcher/run/timeline.h"
#include "launcher/run/worker_input.h"
#include "rendezvous/agent_socket.h"
#include "transport/helper_pool.h"

namespace drun::launcher {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kOutputBudget = 32u << 20;  // bytes of output on the way, over all workers
// Of a rank's flight recorder, for --timeline: enough for all calls between two looks of its agent, 640 a millisecond.
constexpr std::uint32_t kTimelineEntries = 32768;
constexpr auto kSpeedTransfer = milliseconds(50);  // on a network whose speed no driver tells
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
        job_id_(make_job_id()),
        key_(rendezvous::make_job_key()),
        probe_cache_(options_.cache_directory),
        supervisor_(io, reporter, options_.grace),
        activity_(supervisor_.ranks()),
        stalls_(io, reporter, activity_, supervisor_),
        timeline_(io),
        output_(
            io, options_.output,
            [this](int rank, control::Stream stream, std::size_t n) { give_credit(rank, stream, n); },
            [this](Error error) { supervisor_.on_output_broken(error); }),
        joins_(io, reporter, supervisor_, watch_, events_),
        signals_(io, reporter, links_, supervisor_, events_, output_) {}

  Task<int> run();

 private:
  Task<int> run_phases();
  Task<Result<void>> find_network(std::optional<NetworkProbe> known);
  Task<int> check_hosts_first(std::optional<NetworkProbe>* network);
  int head_index() const;  // into hosts_; -1: this machine is not among them
  Result<void> start_rendezvous();
  Task<Result<void>> choose_route(std::size_t host);
  Task<std::vector<Error>> prepare();
  Task<void> prepare_host(std::size_t host, std::vector<Error>& errors);
  const control::Binding* binding_of(const RankPlace& place) const;  // none without --bind-to
  void say_bindings();
  std::vector<ThreadsOfHost> threads() const;
  void say_threads();
  control::WindowSize window() const;
  void resize_workers();
  void spawn();
  Task<void> write_output();
  void speak_through(const Reporter::Sink& sink);
  void attach();
  void put_rank_0_where_all_reach_it();
  void expect_workers();
  void report_events(const Placement& planned);
  void on_frame(AgentChannel& host, control::Frame frame);
  Task<void> report_timeout();
  std::vector<std::string> host_names() const;
  void give_credit(int rank, control::Stream stream, std::size_t n_bytes);
  Task<void> watch_timeout();
  void report_job(int status);
  void write_timeline();
  Task<int> finish(int status);
  int report(const std::vector<Error>& errors);
  int report(const Error& error);
  bool is_head(std::size_t host) const { return connected_.head == placement_.host_indices[host]; }

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
  Event asked_;  // what the ranks do is on the screen
  std::string job_id_;
  rendezvous::JobKey key_;
  AgentChannels links_;
  Connected connected_;
  Placement placement_;
  std::vector<AgentChannel*> hosts_;  // those that have a rank, by used host
  ProbeCache probe_cache_;
  std::string probe_key_;
  netdetect::Choice network_;
  std::unique_ptr<rendezvous::Server> server_;
  std::string server_address_;  // "" = nothing listens on this machine: all is relayed
  int server_port_ = 0;
  std::vector<rendezvous::Handout> handouts_;  // by used host
  int master_port_ = 0;
  control::WindowSize window_;
  std::vector<std::vector<control::Binding>> bindings_;  // by used host and local rank; empty without --bind-to
  Supervisor supervisor_;
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
  // Whatever it failed of: if it was the network, what was found of it is not true any more, and else it costs little
  // to find it out again.
  if (status != kExitOk && !probe_key_.empty()) probe_cache_.drop(probe_key_);
  write_timeline();
  report_job(status);  // below everything that the workers wrote
  co_return status;
}

Task<int> Job::run_phases() {
  signals_.catch_them();
  tasks_.spawn(signals_.watch());

  start_deadline_ = Clock::now() + options_.connect.start_timeout;
  if (!options_.events_file.empty()) {
    if (auto open = events_.open(options_.events_file); !open) co_return co_await finish(report(open.error()));
  }

  if (!options_.timeline_file.empty()) {
    if (auto open = timeline_.open(options_.timeline_file); !open) co_return co_await finish(report(open.error()));
  }

  // Bad placement shows before anything is connected; two names of one machine only afterwards.
  auto planned = place(options_.hosts, options_.np);
  if (!planned) co_return co_await finish(report(planned.error()));
  auto enough_files = check_open_files(planned->host_indices.size(), static_cast<std::size_t>(planned->size),
                                       !options_.output.directory.empty());
  if (!enough_files) co_return co_await finish(report(enough_files.error()));

  report_events(*planned);
  tasks_.spawn(watch_.draw());

  options_.connect.grace = options_.grace;
  connected_ = co_await connect_hosts(io_, helper_.get(), links_, options_.hosts, options_.connect, reporter_, &watch_);
  if (!connected_.errors.empty()) co_return co_await finish(report(connected_.errors));
  std::vector<Host> machines;
  for (const auto& link : connected_.links) machines.push_back(link->host());
  auto placed = place(machines, options_.np);
  if (!placed) co_return co_await finish(report(placed.error()));
  placement_ = std::move(*placed);
  for (const int index : placement_.host_indices) {
    hosts_.push_back(connected_.links[static_cast<std::size_t>(index)].get());
  }

  attach();
  HeartbeatTimes beats;
  beats.timeout = options_.heartbeat_timeout;
  beats.interval = std::min(beats.interval, beats.timeout / 4);
  beats.warn = std::min(beats.warn, beats.timeout / 2);
  Supervisor* const supervisor = &supervisor_;
  for (AgentChannel* link : hosts_) {
    link->on([this](AgentChannel& host, control::Frame frame) { on_frame(host, std::move(frame)); },
             [this, supervisor](AgentChannel& host, Error error) {
               timeline_.host_lost();
               supervisor->on_lost(host, error);
             },
             [this](AgentChannel& host, std::chrono::seconds silence) {
               reporter_.warning(host.name() + ": silent for " + std::to_string(silence.count()) + " s");
             });
    link->set_times(beats);
    control::Configure configure;
    configure.job_id = job_id_;
    configure.heartbeat_ms = static_cast<std::uint32_t>(beats.interval.count());
    configure.heartbeat_timeout_ms = static_cast<std::uint32_t>(beats.timeout.count());
    configure.grace_ms = static_cast<std::uint32_t>(options_.grace.count());
    link->send(control::Type::kConfigure, control::encode(configure));
  }

  std::optional<NetworkProbe> known;
  if (options_.examine_hosts) {
    const int status = co_await check_hosts_first(&known);
    if (status != kExitOk) co_return co_await finish(status);
  }
  auto network = co_await find_network(std::move(known));
  if (!network) co_return co_await finish(report(network.error()));
  put_rank_0_where_all_reach_it();
  auto rendezvous = start_rendezvous();
  if (!rendezvous) co_return co_await finish(report(rendezvous.error()));

  supervisor_.serve(*server_);
  expect_workers();

  std::vector<Error> errors = co_await prepare();
  if (!errors.empty()) co_return co_await finish(report(errors));
  std::vector<RankLabel> labels;
  for (const auto& place : placement_.ranks) {
    labels.push_back(RankLabel{hosts_[static_cast<std::size_t>(place.host)]->name(), place.host});
  }
  auto files = output_.open(labels);
  if (!files) co_return co_await finish(report(files.error()));

  auto active = supervisor_.activate();
  if (!active) co_return co_await finish(report(active.error()));
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
  co_return co_await finish(status);
}

// The parts that the supervisor needs, but for the rendezvous.
void Job::attach() {
  Supervisor::Parts parts;
  parts.hosts = hosts_;
  parts.placement = placement_;
  parts.output = &output_;
  parts.events = &events_;
  parts.started = [this](const control::Started& m) { joins_.on_started(m); };
  parts.exited = [this](const control::Exited& m) { joins_.on_exited(m); };
  parts.stdin_taken = [this](int rank, std::uint64_t n_bytes) {
    if (input_) input_->on_taken(rank, n_bytes);
  };
  supervisor_.attach(std::move(parts));
}

// MASTER_ADDR is rank 0's host, so every other has to reach it. Else the first one that all reach gets the first ranks.
void Job::put_rank_0_where_all_reach_it() {
  const auto& chosen = network_.hosts;
  if (chosen.front().reached_by_all) return;
  const auto other = std::find_if(chosen.begin(), chosen.end(), [](const auto& host) { return host.reached_by_all; });
  const std::string why = "not every host can connect to " + hosts_.front()->name();
  if (other == chosen.end()) {
    reporter_.warning(why + ", where MASTER_ADDR is, nor to any other: torch can't start");
    return;
  }
  const int host = static_cast<int>(other - chosen.begin());
  const std::string& name = hosts_[static_cast<std::size_t>(host)]->name();
  reporter_.warning(why + ": rank 0 and MASTER_ADDR are on " + name + "; put " + name + " first in the list of hosts");
  const auto to_front = [host](auto& list) { std::rotate(list.begin(), list.begin() + host, list.begin() + host + 1); };
  placement_ = led_by(placement_, host);
  to_front(hosts_);
  to_front(network_.hosts);
  to_front(network_.reach);
  for (auto& row : network_.reach) to_front(row);
  supervisor_.place(hosts_, placement_);
}

// Who is about to start.
void Job::expect_workers() {
  activity_.expect(hosts_);
  if (timeline_.is_open()) timeline_.expect(hosts_, supervisor_.ranks(), began_ns_);
  joins_.expect(server_.get());
  if (options_.stdin_mode == StdinMode::kNone) return;
  std::vector<int> readers;
  for (const auto& place : placement_.ranks) {
    if (options_.stdin_mode == StdinMode::kAll || place.rank == options_.stdin_rank) readers.push_back(place.rank);
  }
  input_ = std::make_unique<WorkerInput>(io_, reporter_, supervisor_, hosts_, placement_, readers);
}

int Job::head_index() const {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (is_head(i)) return static_cast<int>(i);
  }
  return -1;
}

Task<int> Job::check_hosts_first(std::optional<NetworkProbe>* network) {
  const auto began = Clock::now();
  const int status = co_await options_.examine_hosts(io_, hosts_, head_index(), reporter_, network);
  start_deadline_ += Clock::now() - began;
  if (status != kExitOk) why_not_started_ = "--check found that the hosts are not ready";
  co_return status;
}

// `known`: what --check has found a moment ago.
Task<Result<void>> Job::find_network(std::optional<NetworkProbe> known) {
  Result<NetworkProbe> probe = NetworkProbe();
  if (known) {
    probe = std::move(*known);
  } else {
    probe = co_await probe_network(io_, hosts_, head_index(), options_.interfaces, start_deadline_, &watch_,
                                   options_.read_cache ? &probe_cache_ : nullptr);
  }
  if (!probe) co_return fail(std::move(probe.error()));
  if (!known && !probe->age) {
    bool speeds_known = true;
    if (probe->choice()) {
      LinkCheck links(io_, hosts_, probe->most.choice, quick_link_times());
      std::vector<int> gone;
      speeds_known = co_await choose_by_speed(*probe, links, std::move(gone), kSpeedTransfer, start_deadline_);
      for (const auto& note : links.notes()) log::info(note);
    }
    if (speeds_known) keep(probe_cache_, *probe);
  }
  probe_key_ = probe->cache_key;
  for (const auto& r : probe->candidates.rejected) {
    log::debug(hosts_[static_cast<std::size_t>(r.host)]->name() + ": " + r.interface + " " + r.address + ": " +
               r.reason);
  }
  auto choice = probe->choice();
  if (!choice) co_return fail(std::move(choice.error()));
  network_ = std::move(*choice);
  for (const auto& note : network_.notes) log::info(note);
  if (probe->age) {
    log::info("network: as found " + std::to_string(probe->age->count()) + " s ago; --no-cache tries again");
  }
  // For who looks on. Scripts that read stderr are told at -v, and by --events.
  if (reporter_.status_width() > 0) {
    std::vector<std::string> names;
    for (const AgentChannel* host : hosts_) names.push_back(host->name());
    if (const std::string in_short = network_in_short(names, network_.hosts); !in_short.empty())
      reporter_.note(in_short);
  }
  for (const auto& warning : network_.warnings) reporter_.warning(warning);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    log::info(hosts_[i]->name() + ": using " + network_.hosts[i].interface + " (" + network_.hosts[i].address.text() +
              ")");
    events_.interface_chosen(hosts_[i]->name(), network_.hosts[i].interface, network_.hosts[i].address.text(),
                             network_.hosts[i].interfaces, probe->age.has_value());
  }
  const int head = head_index();
  // Where the rendezvous listens, and each host's way to it.
  if (head >= 0) server_address_ = network_.hosts[static_cast<std::size_t>(head)].address.text();
  co_return Result<void>();
}

Result<void> Job::start_rendezvous() {
  std::vector<rendezvous::Member> members;
  for (const auto& place : placement_.ranks) {
    rendezvous::Member m;
    m.rank = place.rank;
    m.local_rank = place.local_rank;
    m.local_size = place.local_size;
    m.cross_rank = place.cross_rank;
    m.cross_size = place.cross_size;
    m.host_index = place.host;
    m.host = hosts_[static_cast<std::size_t>(place.host)]->name();
    members.push_back(std::move(m));
  }
  rendezvous::ServerEvents events;
  events.joined = [this](int rank, int pid) {
    supervisor_.on_joined(rank);
    joins_.on_joined(rank, pid);
  };
  events.complained = [this](int rank, const std::string& text) { supervisor_.on_complaint(rank, text); };
  events.abort_requested = [this](const rendezvous::Abort& abort) { supervisor_.on_abort_requested(abort); };
  server_ = rendezvous::Server::create(io_.get_executor(), key_, std::move(members), job_id_, std::move(events));
  if (!server_address_.empty()) {
    auto port = server_->listen(server_address_);
    if (!port) return fail(std::move(port.error()).with_subject("rendezvous"));
    server_port_ = *port;
    log::info("rendezvous on " + host_port(server_address_, server_port_));
  }
  handouts_.resize(hosts_.size());
  return {};
}

// A host that reaches the head's address talks to the server itself; any other goes through its agent.
Task<Result<void>> Job::choose_route(std::size_t host) {
  auto& handout = handouts_[host];
  handout.key = key_;
  handout.job_id = job_id_;
  handout.data_address = network_.hosts[host].address.text();
  bool direct = false;
  for (std::size_t head = 0; head < hosts_.size(); ++head) {
    if (!is_head(head)) continue;
    const bool same_net = hosts_[head]->hello().boot_id == hosts_[host]->hello().boot_id &&
                          hosts_[head]->hello().net_namespace == hosts_[host]->hello().net_namespace;
    direct = head == host || same_net || network_.reach[host][head] == 1;
  }
  if (direct && !server_address_.empty()) {
    handout.rendezvous_address = server_address_;
    handout.rendezvous_port = server_port_;
    co_return Result<void>();
  }
  supervisor_.add_relay(*hosts_[host]);
  auto reply = co_await hosts_[host]->request(control::Type::kRelayListen, std::string(),
                                              control::Type::kRelayListening, "relay", start_deadline_);
  if (!reply) co_return fail(std::move(reply.error()));
  auto port = control::decode<control::Port>(reply->body);
  if (!port || !port->error.empty()) {
    co_return fail(Errc::kUnreachable, hosts_[host]->name(), "relay: " + (port ? port->error : port.error().cause));
  }
  handout.rendezvous_address = port->address;
  handout.rendezvous_port = port->port;
  log::info(hosts_[host]->name() + ": its rendezvous is relayed over the control channel");
  co_return Result<void>();
}

Task<void> Job::prepare_host(std::size_t host, std::vector<Error>& errors) {
  auto way = co_await choose_route(host);
  if (!way) {
    errors.push_back(std::move(way.error()));
    co_return;
  }
  control::Prepare order;
  order.argv = options_.command;
  order.working_directory = options_.working_directory;
  order.environment = base_environment(options_.own_env, options_.env, !is_head(host));
  if (options_.pty) forget_terminal_size(order.environment, options_.own_env, options_.env);
  if (host == 0) order.master_address = network_.hosts[0].address.text();
  order.refuses_mpi = !options_.allows_mpi && placement_.size > 1;
  order.bind_to = options_.bind_to;
  order.shares_cores = options_.shares_cores;
  for (const auto& place : placement_.ranks) {
    if (place.host == static_cast<int>(host)) order.gpus.push_back(place.gpu);
  }
  std::string body = control::encode(order);
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
  if (host == 0) master_port_ = prepared->master_port;
  bindings_[host] = std::move(prepared->bindings);
  for (auto& p : prepared->problems) {
    Errc code = Errc::kUnreachable;
    if (p.kind == control::ProblemKind::kNotFound) code = Errc::kNotFound;
    if (p.kind == control::ProblemKind::kNotExecutable) code = Errc::kNotExecutable;
    if (p.kind == control::ProblemKind::kWorkingDirectory || p.kind == control::ProblemKind::kMpi ||
        p.kind == control::ProblemKind::kBinding) {
      code = Errc::kUsage;
    }
    errors.push_back(Error(code, hosts_[host]->name(), std::move(p.cause)).with_hint(std::move(p.hint)));
  }
}

Task<std::vector<Error>> Job::prepare() {
  std::vector<std::vector<Error>> errors(hosts_.size());
  bindings_.resize(hosts_.size());
  TaskGroup group(io_.get_executor());
  watch_.begin(Stage::kPrepare, host_names());
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
  co_return all;
}

const control::Binding* Job::binding_of(const RankPlace& place) const {
  const auto host = static_cast<std::size_t>(place.host), local_rank = static_cast<std::size_t>(place.local_rank);
  if (host >= bindings_.size() || local_rank >= bindings_[host].size()) return nullptr;
  return &bindings_[host][local_rank];
}

void Job::say_bindings() {
  for (const auto& place : placement_.ranks) {
    const auto* binding = binding_of(place);
    if (binding == nullptr) continue;
    log::info("rank " + std::to_string(place.rank) + " on " + hosts_[static_cast<std::size_t>(place.host)]->name() +
              ": " + binding->place + " (CPUs " + binding->cpus + ")");
  }
}

// By rank where workers are bound, else by host.
std::vector<ThreadsOfHost> Job::threads() const {
  std::vector<ThreadsOfHost> out;
  const auto add = [&](const AgentChannel& host, int n_workers, int bound) {
    const int n_cpus = static_cast<int>(host.hello().n_cpus);
    const int n = threads_of_worker(n_cpus, n_workers, options_.env, options_.own_env, bound);
    out.push_back({host.name(), n_cpus, n_workers, n, bound > 0});
  };
  for (const auto& place : placement_.ranks) {
    const auto* binding = binding_of(place);
    if (binding == nullptr) continue;
    add(*hosts_[static_cast<std::size_t>(place.host)], place.local_size, static_cast<int>(binding->threads));
  }
  if (!out.empty()) return out;
  for (std::size_t i = 0; i < hosts_.size(); ++i) add(*hosts_[i], placement_.local_sizes[i], 0);
  return out;
}

// For who looks on, as of the network.
void Job::say_threads() {
  const std::string text = threads_in_short(threads());
  if (text.empty()) return;
  if (reporter_.status_width() > 0) {
    reporter_.note(text);
  } else {
    log::info(text);
  }
}

void Job::spawn() {
  const auto credit =
      std::clamp<std::size_t>(kOutputBudget / (2 * static_cast<std::size_t>(placement_.size)), 16u << 10, 512u << 10);
  std::vector<control::Spawn> orders(hosts_.size());
  for (const auto& place : placement_.ranks) {
    const auto host = static_cast<std::size_t>(place.host);
    RankEnvInput in;
    in.place = place;
    in.size = placement_.size;
    in.n_hosts = static_cast<int>(hosts_.size());
    in.master_addr = network_.hosts[0].address.text();
    in.master_port = master_port_;
    in.job_id = job_id_;
    in.rendezvous = host_port(handouts_[host].rendezvous_address, handouts_[host].rendezvous_port);
    in.nccl_interfaces = network_.hosts[host].interfaces;
    in.ip_interface = network_.hosts[host].interface;
    in.n_cpus = static_cast<int>(hosts_[host]->hello().n_cpus);
    if (const auto* binding = binding_of(place)) in.bound_threads = static_cast<int>(binding->threads);
    control::WorkerSpec spec;
    spec.rank = static_cast<std::uint32_t>(place.rank);
    spec.local_rank = static_cast<std::uint32_t>(place.local_rank);
    spec.wants_stdin = options_.stdin_mode == StdinMode::kAll ||
                       (options_.stdin_mode == StdinMode::kRank && options_.stdin_rank == place.rank);
    spec.environment = rank_environment(in, options_.env, options_.own_env);
    // For a container around the worker, which can't reach the agent's socket.
    const auto& exports = options_.env.exports;
    if (std::find(exports.begin(), exports.end(), "DRUN_KEY") != exports.end()) {
      spec.environment["DRUN_KEY"] = rendezvous::job_key_to_hex(key_);
      if (!set_by_user(options_.env, options_.own_env, "DRUN_DATA_ADDRESS")) {
        spec.environment["DRUN_DATA_ADDRESS"] = handouts_[host].data_address;
      }
    }
    orders[host].workers.push_back(std::move(spec));
  }
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
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    orders[i].pty = options_.pty;
    orders[i].window = window_;
    orders[i].umask = options_.umask;
    orders[i].handout = rendezvous::encode_handout(handouts_[i]);
    orders[i].output_credit = static_cast<std::uint32_t>(credit);
    hosts_[i]->send(control::Type::kSpawn, control::encode(orders[i]));
  }
  watch_.begin(Stage::kStart, host_names());
  for (std::size_t i = 0; i < hosts_.size(); ++i) watch_.enter(i, transport::Phase::kStart);
  workers_started_ = true;
  signals_.workers_started();
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

std::vector<std::string> Job::host_names() const {
  std::vector<std::string> out;
  for (const AgentChannel* host : hosts_) out.push_back(host->name());
  return out;
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
  std::vector<int> joined = server_->joined();
  const auto ranks = co_await snapshots_.ask(hosts_, placement_, std::move(joined), stacks);
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
  const auto host = placement_.ranks[static_cast<std::size_t>(rank)].host;
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
    const auto* binding = binding_of(placement_.ranks[static_cast<std::size_t>(rank.rank)]);
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
  if (server_) server_->stop();
  co_await tasks_.join();
  speak_through(nullptr);
  if (server_) co_await server_->join();
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
