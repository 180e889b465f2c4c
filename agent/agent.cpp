#include "agent/agent.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cstdlib>

#include "agent/clean.h"
#include "agent/inventory.h"
#include "agent/loaded_runtime.h"
#include "agent/process_list.h"
#include "agent/sweep.h"
#include "agent/worker_process.h"
#include "base/fd.h"
#include "base/process_stat.h"

namespace drun::agent {

namespace {

using control::Type;
using std::chrono::milliseconds;

constexpr auto kCleanTime = std::chrono::seconds(20);  // added to the grace time
// Poll interval for an ended worker's process group: its last member need not be a child of ours.
constexpr auto kGroupPoll = milliseconds(20);
// Time for helpers of ended workers to end by themselves, as those of Python's multiprocessing do when their pipe
// closes, before they count as leftovers.
constexpr auto kSettleTime = milliseconds(500);
constexpr std::uint32_t kFewestEntries = 16, kMaxEntries = 1u << 17;  // of a flight recorder
constexpr std::chrono::seconds kRasTime{15};                          // for NCCL to ask all of its ranks
constexpr std::size_t kMaxNewCalls = 4096;                            // calls in a frame of the timeline
constexpr std::size_t kMaxBulk = 8u << 20;                            // queued bytes above which the timeline pauses
constexpr std::size_t kErrorFileLimit = 64u << 10;
constexpr const char* kErrorFile = "TORCHELASTIC_ERROR_FILE";  // torch's @record writes the exception there

std::uint64_t wall_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

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
      child_signal_(io_, SIGCHLD),
      end_signals_(io_, SIGTERM, SIGINT, SIGHUP),
      tasks_(io_.get_executor()),
      pumps_(io_.get_executor()),
      workers_changed_(io_.get_executor()),
      timeline_wake_(io_.get_executor()),
      runtime_wake_(io_.get_executor()),
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
  send(Type::kHello, control::encode(take_inventory()));
  channel_.start();
  guard_.start();
  tasks_.spawn(watch_signals());
  tasks_.spawn(reap());
  co_await over_.wait();
  close_everything();
  co_await pumps_.join();
  co_await network_.join();
  co_await channel_.join();
  co_await guard_.join();
  co_await resources_.join();
  co_await tasks_.join();
  io_.stop();
}

// ---- the channel

// drun is gone or has sent an invalid frame: the workers' output has no reader, and the job is over.
void Agent::channel_lost() {
  channel_open_ = false;
  workers_changed_.notify();
  for (auto& [rank, worker] : workers_) {
    if (worker.out) worker.out->add_credit(SIZE_MAX / 2);
    if (worker.err) worker.err->add_credit(SIZE_MAX / 2);
  }
  if (closing_) return;
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
  channel_.on(Type::kHeartbeat, [] {});
  channel_.on<Configure>(Type::kConfigure, [this](const Configure& m) { configure(m); });
  channel_.on<ProbeListen>(Type::kProbeListen, [this](const ProbeListen& m) { network_.listen_for_probes(m); });
  channel_.on<ProbeRun>(Type::kProbeRun, [this](ProbeRun m) { network_.run_probes(std::move(m)); });
  channel_.on<LinkListen>(Type::kLinkListen, [this](const LinkListen& m) { network_.listen_for_links(m); });
  channel_.on<LinkRun>(Type::kLinkRun, [this](LinkRun m) { network_.run_links(std::move(m)); });
  channel_.on(Type::kRelayListen, [this] { network_.listen_for_relay(); });
  channel_.on<Relay>(Type::kRelayData, [this](Relay m) { network_.relay_data(std::move(m)); });
  channel_.on<Relay>(Type::kRelayClose, [this](const Relay& m) { network_.close_relayed(m); });
  channel_.on<Prepare>(Type::kPrepare, [this](Prepare m) { prepare(std::move(m)); });
  channel_.on<Spawn>(Type::kSpawn, [this](Spawn m) { spawn(std::move(m)); });
  channel_.on<Input>(Type::kStdin, [this](Input m) {
    const auto worker = workers_.find(m.rank);
    if (worker != workers_.end() && worker->second.in) worker->second.in->deliver(std::move(m.bytes));
  });
  channel_.on<Input>(Type::kStdinEnd, [this](const Input& m) {
    const auto worker = workers_.find(m.rank);
    if (worker != workers_.end() && worker->second.in) worker->second.in->end();
  });
  channel_.on<Credit>(Type::kCredit, [this](const Credit& m) {
    const auto worker = workers_.find(m.rank);
    if (worker == workers_.end()) return;
    auto& pump = m.stream == Stream::kStdout ? worker->second.out : worker->second.err;
    if (pump) pump->add_credit(m.n_bytes);
  });
  channel_.on<Signal>(Type::kSignal, [this](const Signal& m) { signal_workers(m.number); });
  channel_.on<WindowSize>(Type::kResize, [this](WindowSize m) { resize(m); });
  channel_.on<Describe>(Type::kDescribe, [this](const Describe& m) { describe(m); });
  channel_.on<AskFacts>(Type::kAskFacts, [this](AskFacts m) { tasks_.spawn(send_facts(std::move(m))); });
  channel_.on<Record>(Type::kRecord, [this](const Record& m) { record(m); });
  channel_.on(Type::kAskActivity, [this] { send_activity(); });
  channel_.on(Type::kAskRas, [this] { tasks_.spawn(send_ras()); });
  channel_.on<Stop>(Type::kStop, [this](const Stop& m) {
    begin_stop(milliseconds(m.grace_ms), milliseconds(m.delay_ms), m.delayed);
  });
  channel_.on<Ping>(Type::kPing, [this](const Ping& m) {
    Pong reply;
    reply.sent_ns = m.sent_ns;
    reply.host_ns = static_cast<std::uint64_t>(monotonic_ns());
    send(Type::kPong, encode(reply));
  });
  channel_.on(Type::kPause, [this] { pause(); });
  channel_.on(Type::kResume, [this] { resume(); });
  channel_.on<Clean>(Type::kClean, [this](Clean m) { tasks_.spawn(clean_host(std::move(m))); });
}

void Agent::configure(const control::Configure& message) {
  resources_.set_job(message.job_id);
  grace_ = milliseconds(message.grace_ms);
  channel_.set_heartbeat(milliseconds(message.heartbeat_ms), milliseconds(message.heartbeat_timeout_ms));
}

Task<void> Agent::clean_host(control::Clean message) {
  auto child = start_clean(message, guard_.pid());
  control::Cleaned failed;
  if (!child) {
    failed.error = child.error().message();
    send(Type::kCleaned, control::encode(failed));
    co_return;
  }
  asio::posix::stream_descriptor reply(io_, child->reply.release());
  std::string body;
  bool in_time = true;
  {
    const Deadline give_up = Clock::now() + milliseconds(message.grace_ms) + kCleanTime;
    const std::function<void()> cancel = [&reply] {
      boost::system::error_code ignored;
      reply.cancel(ignored);
    };
    DeadlineGuard limit(io_.get_executor(), give_up, cancel);
    std::string chunk(64u << 10, '\0');
    for (;;) {
      const auto buffer = asio::buffer(chunk);
      const auto [ec, n] = co_await reply.async_read_some(buffer, as_result);
      if (ec) break;
      body.append(chunk, 0, n);
    }
    in_time = !limit.fired();
  }
  if (!in_time) {
    ::kill(child->pid, SIGKILL);
    failed.error = "reading /proc took too long: a process may be stuck in the kernel (ps axl)";
    body = control::encode(failed);
  } else if (!control::decode<control::Cleaned>(body)) {
    failed.error = "reading /proc failed";
    body = control::encode(failed);
  }
  send(Type::kCleaned, body);
}

void Agent::prepare(control::Prepare message) {
  control::Prepared reply;
  job_ = prepare_job(std::move(message), reply);
  if (const auto opened = resources_.open_socket(); !opened) {
    control::Problem p;
    p.cause = opened.error().message();
    p.hint = "make /tmp writable on that host";
    reply.problems.push_back(std::move(p));
  }
  choose_cpus(job_, reply);
  send(Type::kPrepared, control::encode(reply));
}

// ---- workers

void Agent::spawn(control::Spawn message) {
  if (stopping_ || !workers_.empty()) return;
  if (WorkerSocket* socket = resources_.socket()) {
    socket->set_handout(message.handout);
    if (message.workers.size() > 1) socket->share_memory();
    socket->record(recorders_);
  }
  network_.stop_measuring();
  job_.master_port.socket.reset();
  resources_.make_cgroup();
  for (auto& spec : message.workers) {
    Worker worker;
    const std::uint32_t rank = spec.rank;
    worker.spec = std::move(spec);
    workers_.emplace(rank, std::move(worker));
  }
  oom_.emplace();
  for (auto& [rank, worker] : workers_) {
    start(worker, message);
    guard_.beat();  // each start waits for its exec, which may be slow
  }
  if (job_.order.refuses_mpi) tasks_.spawn(watch_runtimes());
  if (paused_) signal_workers(SIGSTOP);
}

void Agent::start(Worker& worker, const control::Spawn& order) {
  WorkerStart start;
  start.file = job_.command;
  start.argv = job_.order.argv;
  start.environment = job_.order.environment;
  for (const auto& [name, value] : worker.spec.environment) start.environment[name] = value;
  if (const WorkerSocket* socket = resources_.socket()) {
    start.environment["DRUN_AGENT"] = socket->path();
    start.environment.emplace(kErrorFile, socket->file("rank." + std::to_string(worker.spec.rank) + ".error"));
  }
  start.wants_stdin = worker.spec.wants_stdin;
  start.pty = order.pty;
  start.window = {order.window.columns, order.window.rows};
  start.umask = static_cast<mode_t>(order.umask & 0777);
  if (worker.spec.local_rank < job_.cpus.size()) start.cpus = job_.cpus[worker.spec.local_rank].cpus;
  start.cgroup_procs = resources_.cgroup_procs();

  control::Started reply;
  reply.rank = worker.spec.rank;
  auto process = start_worker(start);
  if (!process) {
    reply.error = process.error().code == Errc::kNotFound ? ENOENT : EACCES;
    reply.what = process.error().message();
    send(Type::kStarted, control::encode(reply));
    return;
  }
  worker.pid = process->pid;
  worker.running = true;
  worker.group_alive = true;
  reply.pid = worker.pid;
  send(Type::kStarted, control::encode(reply));
  pump_output(worker, worker.out, std::move(process->stdout_end), control::Stream::kStdout, order.output_credit);
  if (process->stderr_end) {
    pump_output(worker, worker.err, std::move(process->stderr_end), control::Stream::kStderr, order.output_credit);
  } else {
    control::Output none;  // a terminal has one output stream
    none.rank = worker.spec.rank;
    none.stream = control::Stream::kStderr;
    send_output(Type::kOutputEnd, control::encode(none));
  }
  if (process->stdin_end) {
    const std::uint32_t rank = worker.spec.rank;
    const auto credit_back = [this, rank](std::size_t n) {
      control::Credit m;
      m.rank = rank;
      m.stream = control::Stream::kStdin;
      m.n_bytes = static_cast<std::uint32_t>(n);
      send(Type::kStdinCredit, control::encode(m));
    };
    worker.in = std::make_unique<StdinPump>(io_, std::move(process->stdin_end), order.pty, credit_back,
                                            [credit_back] { credit_back(control::Credit::kNoMore); });
    pumps_.spawn(worker.in->run());
  }
}

void Agent::pump_output(Worker& worker, std::unique_ptr<OutputPump>& pump, Fd fd, control::Stream stream,
                        std::uint32_t credit) {
  const std::uint32_t rank = worker.spec.rank;
  const auto emit = [this, rank, stream](std::string bytes) {
    control::Output m;
    m.rank = rank;
    m.stream = stream;
    m.time_ns = wall_clock_ns();
    m.bytes = std::move(bytes);
    send_output(Type::kOutput, control::encode(m));
  };
  const auto ended = [this, rank, stream] {
    control::Output m;
    m.rank = rank;
    m.stream = stream;
    send_output(Type::kOutputEnd, control::encode(m));
    workers_changed_.notify();
  };
  pump = std::make_unique<OutputPump>(io_, std::move(fd), channel_open_ ? credit : SIZE_MAX / 2, emit, ended);
  pumps_.spawn(pump->run());
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
  workers_changed_.notify();  // it may have been the last member of a worker's process group
  if (describer_) describer_->reaped(pid);
  if (facts_) facts_->reaped(pid);
  for (auto& [rank, worker] : workers_) {
    if (worker.pid != pid || !worker.running) continue;
    worker.running = false;
    worker.wait_status = wait_status;
    if (worker.in) worker.in->close();
    // During a stop, the worker's descendants may still write output; otherwise they are not waited for.
    const bool has_more = alive(worker);
    if (!stopping_ || !has_more) finish_output(worker);
    send_activity_of(rank);
    if (timeline_ms_ > 0) send_new_calls_of(rank, true);
    // Send the exit ahead of the output: a reader that does not take the output must not hide a failure.
    control::Exited m;
    m.rank = rank;
    m.pid = worker.pid;
    m.wait_status = wait_status;
    m.ended_by_drun = worker.ended_by_drun;
    m.time_ns = static_cast<std::uint64_t>(monotonic_ns());
    if (!worker.ended_by_drun && wait_status != 0) {
      // A shell in between reports its child's SIGKILL as 128 + 9.
      const bool killed = (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL) ||
                          (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 128 + SIGKILL);
      if (killed && oom_) m.out_of_memory = oom_->evidence(worker.pid);
      if (const WorkerSocket* socket = resources_.socket()) {
        m.error_file = read_file(socket->file("rank." + std::to_string(rank) + ".error"), kErrorFileLimit).value_or("");
      }
    }
    send(Type::kExited, control::encode(m));
    return;
  }
}

void Agent::finish_output(Worker& worker) {
  if (worker.out) worker.out->finish_soon();
  if (worker.err) worker.err->finish_soon();
}

// True if some worker's output has not ended yet.
bool Agent::output_pending() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& entry) {
    const Worker& w = entry.second;
    return (w.out && !w.out->ended()) || (w.err && !w.err->ended());
  });
}

void Agent::signal_workers(int number) {
  for (auto& [rank, worker] : workers_) {
    if (alive(worker)) ::kill(-worker.pid, number);
  }
}

void Agent::resize(control::WindowSize window) {
  for (auto& [rank, worker] : workers_) {
    if (worker.out) worker.out->resize_terminal({window.columns, window.rows});
  }
}

// True if the worker's process group has members: its leader may end before the processes that it started. Only our
// descendants count, because the number of an empty group may be reused.
bool Agent::alive(Worker& worker) {
  if (worker.running || !worker.group_alive) return worker.running;
  worker.group_alive = ::kill(-worker.pid, 0) == 0;
  if (!worker.group_alive) return false;
  const auto now = Clock::now();
  if (now - descendants_seen_ > kGroupPoll / 2) {
    descendants_ = descendants();
    descendants_seen_ = now;
  }
  worker.group_alive =
      std::any_of(descendants_.begin(), descendants_.end(), [&](pid_t pid) { return ::getpgid(pid) == worker.pid; });
  return worker.group_alive;
}

// drun is about to be stopped by Ctrl-Z, and is silent until it continues.
void Agent::pause() {
  paused_ = true;
  channel_.set_paused(true);
  if (!stopping_) signal_workers(SIGSTOP);
}

void Agent::resume() {
  paused_ = false;
  channel_.set_paused(false);
  signal_workers(SIGCONT);
}

void Agent::describe(const control::Describe& message) {
  if (!describer_) describer_ = std::make_unique<SnapshotReader>(io_, job_.order.environment["PATH"]);
  if (stopping_) describer_->stop();
  std::vector<SnapshotReader::Subject> subjects;
  for (const auto& [rank, worker] : workers_) {
    SnapshotReader::Subject subject;
    subject.rank = rank;
    subject.pid = worker.pid;
    subject.running = worker.running;
    subject.wait_status = worker.wait_status;
    subjects.push_back(subject);
  }
  const SnapshotReader::Send reply = [this](const control::Described& m) {
    send(Type::kDescribed, control::encode(m));
  };
  const Deadline deadline = Clock::now() + milliseconds(message.stacks_ms);
  tasks_.spawn(describer_->describe(std::move(subjects), message.stacks_ms > 0, deadline, reply));
}

Task<void> Agent::send_facts(control::AskFacts message) {
  if (facts_ || stopping_) co_return;  // one request at a time; drun sends no more
  const auto path = message.environment.find("PATH");
  const char* own_path = std::getenv("PATH");
  const std::string folders = path != message.environment.end() ? path->second : own_path != nullptr ? own_path : "";
  facts_ = std::make_unique<FactsGatherer>(io_, folders);
  control::Facts reply;
  reply.facts = co_await facts_->gather(std::move(message));
  facts_.reset();
  send(Type::kFacts, control::encode(reply));
}

// ---- flight recorders

void Agent::record(const control::Record& message) {
  if (!workers_.empty()) return;
  recorders_.set_entries(std::clamp(message.n_entries, kFewestEntries, kMaxEntries));
  timeline_ms_ = message.timeline_ms;
  if (timeline_ms_ > 0) tasks_.spawn(send_timeline());
}

void Agent::send_activity() {
  control::Activity m;
  for (const auto& [rank, worker] : workers_) {
    if (auto activity = recorders_.activity_of(rank)) m.ranks.push_back(std::move(*activity));
  }
  send(Type::kActivity, control::encode(m));
}

void Agent::send_activity_of(std::uint32_t rank) {
  auto activity = recorders_.activity_of(rank);
  if (!activity) return;
  control::Activity m;
  m.ranks.push_back(std::move(*activity));
  send(Type::kActivity, control::encode(m));
}

Task<void> Agent::send_ras() {
  if (ras_ || stopping_ || workers_.empty()) co_return;
  std::string address;  // drun's, or the user's
  for (const auto* environment : {&job_.order.environment, &workers_.begin()->second.spec.environment}) {
    if (const auto found = environment->find("NCCL_RAS_ADDR"); found != environment->end()) address = found->second;
  }
  ras_ = std::make_unique<NcclRasClient>(io_.get_executor());
  control::Text reply;
  reply.text = co_await ras_->ask(std::move(address), Clock::now() + kRasTime);
  ras_.reset();
  if (!reply.text.empty() && !stopping_) send(Type::kRas, control::encode(reply));
}

Task<void> Agent::send_timeline() {
  while (!closing_ && channel_open_) {
    // While much is queued, new calls stay in the recorders, which overwrite the oldest.
    if (channel_.outgoing().bulk_bytes() < kMaxBulk) {
      for (const auto& [rank, worker] : workers_) {
        if (worker.running) send_new_calls_of(rank, false);
      }
    }
    co_await timeline_wake_.wait_until(Clock::now() + milliseconds(timeline_ms_));
  }
}

void Agent::send_new_calls_of(std::uint32_t rank, bool all) {
  for (std::size_t told = 0; told <= kMaxEntries; told += kMaxNewCalls) {  // bounded, whatever its counter says
    const control::Timeline m = recorders_.new_calls_of(rank, kMaxNewCalls, all);
    if (m.calls.empty() && m.n_lost == 0) break;
    send_output(Type::kTimeline, control::encode(m));
    if (m.calls.size() < kMaxNewCalls) break;
  }
}

// A Python program's libraries are known once it has imported them. Polls early for a user who watches the job, and
// later for slow imports.
Task<void> Agent::watch_runtimes() {
  using std::chrono::seconds;
  constexpr seconds kPolls[] = {seconds(2), seconds(6), seconds(20), seconds(60)}, kSettled(20);
  constexpr std::size_t kMaxProcesses = 64;
  const Deadline began = Clock::now();
  for (const auto poll : kPolls) {
    co_await runtime_wake_.wait_until(began + poll);
    if (closing_ || stopping_ || !channel_open_) co_return;
    const ProcessTable table = ProcessTable::read();
    std::size_t n_read = 0;
    for (const auto& [rank, worker] : workers_) {
      if (!worker.running) continue;
      for (const auto& process : table.family_of(worker.pid)) {
        if (++n_read > kMaxProcesses) break;
        const auto maps = read_file(proc_file(process.pid, "maps"));
        const auto environment = read_file(proc_file(process.pid, "environ"));
        if (!maps || !environment) continue;  // it is gone, or another user's
        const std::string text = alone_warning(loaded_runtime(*maps), process.name, *environment, poll >= kSettled);
        if (text.empty()) continue;
        control::Text notice;
        notice.text = text;
        send(Type::kNotice, control::encode(notice));
        co_return;
      }
    }
  }
}

// ---- the end

void Agent::begin_stop(milliseconds grace, milliseconds delay, const std::vector<std::uint32_t>& delayed) {
  const auto now = Clock::now();
  for (auto& [rank, worker] : workers_) {
    const bool waits = std::find(delayed.begin(), delayed.end(), rank) != delayed.end();
    const Deadline term_at = waits ? now + delay : now;
    // A second order can only make the times earlier.
    worker.term_at = stopping_ ? std::min(worker.term_at, term_at) : term_at;
    worker.kill_at = stopping_ ? std::min(worker.kill_at, term_at + grace) : term_at + grace;
  }
  workers_changed_.notify();
  if (stopping_) return;
  stopping_ = true;
  if (describer_) describer_->stop();  // no tool may start after the sweep
  if (facts_) facts_->stop();
  if (ras_) ras_->stop();
  network_.end();
  tasks_.spawn(stop_sequence());
}

// After a normal end: the processes that still run although all workers have ended. Gives them kSettleTime to end by
// themselves.
Task<std::vector<pid_t>> Agent::left_in_background() {
  std::vector<pid_t> left;
  const auto begin = Clock::now();
  for (const auto& [rank, worker] : workers_) {
    if (worker.running || worker.kill_at > begin) co_return left;
  }
  const Deadline end = begin + kSettleTime;
  while (has_children()) {
    left = descendants();
    const auto now = Clock::now();
    if (left.empty() || now >= end) co_return left;
    if (co_await workers_changed_.wait_until(std::min(end, now + kGroupPoll))) workers_changed_.reset();
  }
  left.clear();
  co_return left;
}

// Sends TERM to each worker's process group, and KILL after the grace time if it still has members. Then ends
// everything else.
Task<void> Agent::stop_sequence() {
  const std::vector<pid_t> left = co_await left_in_background();
  control::Finished m;
  m.leftover_name = name_of_first(left);
  for (;;) {
    const auto now = Clock::now();
    Deadline next = Deadline::max();
    for (auto& [rank, worker] : workers_) {
      if (!alive(worker)) continue;
      if (now >= worker.kill_at) {
        if (worker.running) worker.ended_by_drun = true;
        ::kill(-worker.pid, SIGKILL);  // reaped, or found dead, below
        continue;
      }
      if (!worker.termed && now >= worker.term_at) {
        worker.termed = true;
        if (worker.running) worker.ended_by_drun = true;
        ::kill(-worker.pid, SIGTERM);
        ::kill(-worker.pid, SIGCONT);
      }
      next = std::min(next, worker.termed ? worker.kill_at : std::min(worker.term_at, worker.kill_at));
      if (!worker.running) next = std::min(next, now + kGroupPoll);
    }
    if (next == Deadline::max()) break;
    if (co_await workers_changed_.wait_until(next)) workers_changed_.reset();
  }
  for (auto& [rank, worker] : workers_) {
    if (worker.running) worker.ended_by_drun = true;
  }
  signal_workers(SIGKILL);
  std::size_t n_own = 0;
  for (const auto& [rank, worker] : workers_) n_own += worker.running ? 1u : 0u;
  const Reaped reaped = [this](pid_t pid, int wait_status) { on_reaped(pid, wait_status); };
  const std::size_t n_killed = resources_.end_processes(reaped);
  for (auto& [rank, worker] : workers_) finish_output(worker);
  if (timeline_ms_ > 0) {
    control::Timeline last;
    last.rank = control::Timeline::kEnd;
    send_output(Type::kTimeline, control::encode(last));
  }
  m.leftovers = static_cast<std::uint32_t>(std::max(left.size(), n_killed > n_own ? n_killed - n_own : 0));
  send(Type::kFinished, control::encode(m));
  // The workers' last output is still sent, at the reader's pace. Without a reader, don't wait.
  while (channel_open_ && output_pending()) co_await workers_changed_.wait_and_reset();
  co_await channel_.outgoing().flush(Deadline::max());
  over_.notify();
}

void Agent::close_everything() {
  closing_ = true;
  boost::system::error_code ignored;
  for (auto& [rank, worker] : workers_) {
    if (worker.in) worker.in->close();
    if (worker.out) {
      worker.out->add_credit(SIZE_MAX / 2);
      worker.out->finish_soon();
    }
    if (worker.err) {
      worker.err->add_credit(SIZE_MAX / 2);
      worker.err->finish_soon();
    }
  }
  if (describer_) describer_->stop();
  if (facts_) facts_->stop();
  if (ras_) ras_->stop();
  resources_.stop();
  network_.stop();
  child_signal_.cancel(ignored);
  end_signals_.cancel(ignored);
  timeline_wake_.notify();
  runtime_wake_.notify();
  guard_.stop();
  channel_.stop();
}

}  // namespace drun::agent
