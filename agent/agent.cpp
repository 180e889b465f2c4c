#include "agent/agent.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "agent/exit_evidence.h"
#include "agent/inventory.h"
#include "agent/own_name.h"
#include "agent/sweep.h"
#include "base/fd.h"
#include "base/process_stat.h"

namespace drun::agent {

namespace {

using control::Type;
using std::chrono::milliseconds;

// The name of the process with the lowest pid; "" if there is none.
std::string name_of_first(const std::vector<pid_t>& processes) {
  const auto first = std::min_element(processes.begin(), processes.end());
  const auto stat = first != processes.end() ? stat_of(*first) : std::nullopt;
  return stat ? stat->name : "";
}

}  // namespace

Agent::Agent(GuardLink guard)
    : guard_(io_, std::move(guard), [this] { begin_stop(grace_); }),
      channel_(io_, STDIN_FILENO, STDOUT_FILENO, [this] { channel_lost(); }),
      network_(io_.get_executor(), channel_.outgoing()),
      resources_(io_, guard_),
      workers_(io_, processes_, channel_.outgoing(), [this](control::Exited& report) { complete(report); }),
      prepare_calls_(io_),
      queries_(io_, channel_.outgoing(), workers_),
      feed_(io_.get_executor(), channel_.outgoing(), workers_),
      runtimes_(io_, channel_.outgoing(), workers_),
      child_signal_(io_, SIGCHLD),
      end_signals_(io_, SIGTERM, SIGINT, SIGHUP),
      tasks_(io_.get_executor()),
      over_(io_.get_executor()) {
  set_handlers();
}

int Agent::run() {
  end_signals_.add(SIGQUIT);
  raise_open_file_limit();  // three descriptors per worker; the workers get the limit back
  TaskGroup top(io_.get_executor());
  top.spawn(main());
  io_.run();
  return 0;
}

Task<void> Agent::main() {
  channel_.outgoing().push_bytes(std::string(control::kMagic));
  send(Type::kHello, control::encode(take_inventory(cgroup_files_)));
  channel_.start();
  guard_.start();
  tasks_.spawn(watch_signals());
  tasks_.spawn(reap());
  co_await over_.wait();
  close_everything();
  co_await workers_.join();
  co_await network_.join();
  co_await queries_.join();
  co_await feed_.join();
  co_await runtimes_.join();
  co_await channel_.join();
  co_await guard_.join();
  co_await resources_.join();
  co_await tasks_.join();
  io_.stop();
}

// ---- the channel

// drun is gone or has sent an invalid frame: the workers' output has no reader, and the job is over.
void Agent::channel_lost() {
  workers_.reader_lost();
  begin_stop(grace_);
}

Task<void> Agent::watch_signals() {
  while (!closing_) {
    const auto [ec, number] = co_await end_signals_.async_wait(as_result);
    if (ec) break;
    control::Text notice;
    notice.text = "the agent got signal " + std::to_string(number);
    send(Type::kNotice, control::encode(notice));
    begin_stop(grace_);
  }
}

// ---- orders

// docs/protocol.md lists the frames.
void Agent::set_handlers() {
  using namespace control;
  channel_.on<Configure>(Type::kConfigure, [this](const Configure& m) { configure(m); });
  channel_.on<ProbeListen>(Type::kProbeListen, [this](const ProbeListen& m) { network_.listen_for_probes(m); });
  channel_.on<ProbeRun>(Type::kProbeRun, [this](ProbeRun m) { network_.run_probes(std::move(m)); });
  channel_.on<LinkListen>(Type::kLinkListen, [this](const LinkListen& m) { network_.listen_for_links(m); });
  channel_.on<LinkRun>(Type::kLinkRun, [this](LinkRun m) { network_.run_links(std::move(m)); });
  channel_.on<RelayListen>(Type::kRelayListen, [this](const RelayListen& m) { network_.listen_for_relay(m); });
  channel_.on<Relay>(Type::kRelayData, [this](Relay m) { network_.relay_data(std::move(m)); });
  channel_.on<Relay>(Type::kRelayClose, [this](const Relay& m) { network_.close_relayed(m); });
  channel_.on<Prepare>(Type::kPrepare, [this](Prepare m) { prepare(std::move(m)); });
  channel_.on<Spawn>(Type::kSpawn, [this](const Spawn& m) { spawn(m); });
  channel_.on<Input>(Type::kStdin, [this](Input m) { workers_.deliver(std::move(m)); });
  channel_.on<Input>(Type::kStdinEnd, [this](const Input& m) { workers_.end_input(m); });
  channel_.on<Credit>(Type::kCredit, [this](const Credit& m) { workers_.add_credit(m); });
  channel_.on<Signal>(Type::kSignal, [this](const Signal& m) { workers_.signal(m.number); });
  channel_.on<WindowSize>(Type::kResize, [this](WindowSize m) { workers_.resize(m); });
  channel_.on<Describe>(Type::kDescribe, [this](const Describe& m) { queries_.describe(m, job_.order.environment); });
  channel_.on<AskFacts>(Type::kAskFacts, [this](AskFacts m) { queries_.ask_facts(std::move(m)); });
  channel_.on<Record>(Type::kRecord, [this](const Record& m) { feed_.configure(m); });
  channel_.on(Type::kAskActivity, [this] { feed_.send_activity(); });
  channel_.on(Type::kAskRas, [this] { queries_.ask_ras(job_.order.environment); });
  channel_.on<Stop>(Type::kStop, [this](const Stop& m) {
    begin_stop(milliseconds(m.grace_ms), milliseconds(m.delay_ms), m.delayed);
  });
  channel_.on(Type::kPause, [this] {
    channel_.set_paused(true);
    workers_.pause();
  });
  channel_.on(Type::kResume, [this] {
    channel_.set_paused(false);
    workers_.resume();
  });
  channel_.on<Clean>(Type::kClean, [this](Clean m) { queries_.clean(std::move(m), guard_.pid()); });
}

void Agent::configure(const control::Configure& message) {
  resources_.set_job(message.job_id);
  grace_ = milliseconds(message.grace_ms);
  channel_.set_heartbeat(milliseconds(message.heartbeat_ms), milliseconds(message.heartbeat_timeout_ms));
}

void Agent::prepare(control::Prepare message) {
  job_ = prepare_job(std::move(message));
  tasks_.spawn(send_prepared());
}

Task<void> Agent::send_prepared() {
  control::Prepared reply;
  co_await find_command(job_, prepare_calls_, reply);
  if (stopping_) co_return;
  reserve_master_port(job_, reply);
  if (const auto opened = resources_.open_socket(); !opened) {
    control::Problem p;
    p.cause = opened.error().message();
    p.hint = "make /tmp writable on that host";
    reply.problems.push_back(std::move(p));
  }
  check_gpus(job_, reply);
  choose_cpus(job_, cgroup_files_, reply);
  send(Type::kPrepared, control::encode(reply));
}

// ---- workers

void Agent::spawn(const control::Spawn& order) {
  if (stopping_ || !workers_.workers().empty()) return;
  resources_.hand_out(order, feed_.recorders(), [this](std::string text) {
    control::Text notice;
    notice.text = std::move(text);
    send(Type::kNotice, control::encode(notice));
  });
  network_.stop_measuring();
  job_.master_port.socket.reset();
  resources_.make_cgroup(cgroup_files_);
  oom_.emplace(cgroup_files_);
  const auto start_of = [this, &order](const control::WorkerSpec& spec) {
    WorkerStart start = worker_start(job_, order, spec);
    resources_.add_to(start, spec.rank);
    return start;
  };
  workers_.start(order, start_of);
  if (job_.order.refuses_mpi) runtimes_.start();
  const bool needs_name = !order.workers.empty() && gives_out_own_name(order.workers.front().environment);
  if (needs_name) queries_.check_own_name(job_.order.environment);
}

Task<void> Agent::reap() {
  while (!closing_) {
    const auto [ec, number] = co_await child_signal_.async_wait(as_result);
    if (ec) break;
    const Reaped reaped = [this](pid_t pid, int wait_status) { on_reaped(pid, wait_status); };
    reap_ended(reaped);
  }
}

void Agent::on_reaped(pid_t pid, int wait_status) {
  prepare_calls_.reaped(pid);
  queries_.reaped(pid);
  runtimes_.reaped(pid);
  workers_.reaped(pid, wait_status);
}

void Agent::complete(control::Exited& report) {
  feed_.send_last(report.rank);
  const auto error_file = [&] { return resources_.read_error_file(report.rank); };
  if (oom_) add_evidence(report, *oom_, error_file);
}

// ---- the end

void Agent::begin_stop(milliseconds grace, milliseconds delay, const std::vector<std::uint32_t>& delayed) {
  workers_.order_end(grace, delay, delayed);
  if (stopping_) return;
  stopping_ = true;
  runtimes_.stop();
  prepare_calls_.stop();
  queries_.end();  // no tool may start after the sweep
  network_.end();
  tasks_.spawn(stop_sequence());
}

// Ends the workers by the plan, then everything else, and reports it.
Task<void> Agent::stop_sequence() {
  const std::vector<pid_t> left = co_await workers_.left_in_background();
  control::Finished m;
  m.leftover_name = name_of_first(left);
  co_await workers_.end();
  const std::size_t n_own = workers_.n_running();
  const Reaped reaped = [this](pid_t pid, int wait_status) { on_reaped(pid, wait_status); };
  Swept swept = resources_.end_processes(reaped);
  workers_.finish_output();
  feed_.send_end();
  m.leftovers = static_cast<std::uint32_t>(std::max(left.size(), swept.n_killed > n_own ? swept.n_killed - n_own : 0));
  m.stuck = std::move(swept.stuck);
  send(Type::kFinished, control::encode(m));
  co_await workers_.output_sent();
  co_await channel_.outgoing().flush(Deadline::max());
  over_.notify();
}

void Agent::close_everything() {
  closing_ = true;
  boost::system::error_code ignored;
  workers_.stop();
  resources_.stop();
  network_.stop();
  child_signal_.cancel(ignored);
  end_signals_.cancel(ignored);
  feed_.stop();
  guard_.stop();
  channel_.stop();
}

}  // namespace drun::agent
