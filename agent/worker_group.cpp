#include "agent/worker_group.h"

#include <signal.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <utility>

#include "base/units.h"

namespace drun::agent {

using control::Type;
using std::chrono::milliseconds;

namespace {

// Poll interval for an ended worker's process group: its last member need not be a child of ours.
constexpr milliseconds kGroupPoll{20};
// Time for helpers of ended workers to end by themselves, as those of Python's multiprocessing do when their pipe
// closes, before they count as leftovers.
constexpr milliseconds kSettleTime{500};

int errno_of(const Error& failed_start) { return failed_start.code == Errc::kNotFound ? ENOENT : EACCES; }

void close_quietly(asio::posix::stream_descriptor& descriptor) {
  boost::system::error_code ignored;
  descriptor.close(ignored);
}

// The error of a worker whose chdir or exec has not come back.
std::string not_executed(pid_t pid, const std::string& file, milliseconds limit) {
  return "execute " + file + ": process " + std::to_string(pid) + " has not done it within " + limit_text(limit) +
         "; does its file system answer?";
}

}  // namespace

WorkerGroup::WorkerGroup(asio::io_context& io, Processes& processes, control::FrameQueue& to_drun, Exiting exiting)
    : io_(io),
      processes_(processes),
      to_drun_(to_drun),
      exiting_(std::move(exiting)),
      pumps_(io.get_executor()),
      changed_(io.get_executor()) {}

// ---- the start

void WorkerGroup::start(const control::Spawn& order, const StartOf& start_of) {
  for (const auto& spec : order.workers) workers_[spec.rank].spec = spec;
  for (auto& [rank, worker] : workers_) start(worker, order, start_of(worker.spec));
}

void WorkerGroup::start(Worker& worker, const control::Spawn& order, const WorkerStart& start) {
  auto process = processes_.start(start);
  if (!process) {
    report_failed_start(worker, errno_of(process.error()), process.error().message());
    return;
  }
  worker.pid = process->pid;
  worker.running = true;
  worker.group_alive = true;
  WorkerStreams::Settings settings;
  settings.rank = worker.spec.rank;
  settings.pty = order.pty;
  settings.credit = order.output_credit;
  worker.streams = std::make_unique<WorkerStreams>(io_, to_drun_, settings, *process, [this] { changed_.notify(); });
  set_nonblocking(process->exec_report.get(), true);
  worker.exec_report = std::make_unique<asio::posix::stream_descriptor>(io_, process->exec_report.release());
  pumps_.spawn(await_exec(worker, start.file, milliseconds(order.start_ms)));
}

// Reports the start of the worker. Its streams are pumped from then on, so that drun hears of it first.
Task<void> WorkerGroup::await_exec(Worker& worker, std::string file, milliseconds limit) {
  asio::posix::stream_descriptor& from = *worker.exec_report;
  std::string report;
  bool late = false;
  {
    const std::function<void()> give_up = [&from] { close_quietly(from); };
    DeadlineGuard guard(io_.get_executor(), Clock::now() + limit, give_up);
    char bytes[64];
    for (;;) {
      const auto buffer = asio::buffer(bytes);
      const auto [ec, n] = co_await from.async_read_some(buffer, as_result);
      if (ec) break;
      report.append(bytes, n);
    }
    late = guard.fired();
  }
  const bool is_given_up = !from.is_open();
  close_quietly(from);
  if (is_given_up) {
    if (late) report_failed_start(worker, ETIMEDOUT, not_executed(worker.pid, file, limit));
    co_return;
  }
  if (const auto executed = exec_result(report, file); !executed) {
    report_failed_start(worker, errno_of(executed.error()), executed.error().message());
    co_return;
  }
  worker.executed = true;
  if (is_paused_ && !is_ending_) signal(worker, SIGSTOP);
  control::Started reply;
  reply.rank = worker.spec.rank;
  reply.pid = worker.pid;
  to_drun_.push(Type::kStarted, control::encode(reply));
  worker.streams->run_in(pumps_);
  if (!worker.running) report_exit(worker);
}

void WorkerGroup::report_failed_start(Worker& worker, int error, std::string what) {
  control::Started reply;
  reply.rank = worker.spec.rank;
  reply.error = error;
  reply.what = std::move(what);
  to_drun_.push(Type::kStarted, control::encode(reply));
  worker.streams.reset();
  changed_.notify();
}

std::size_t WorkerGroup::n_running() const {
  return static_cast<std::size_t>(
      std::count_if(workers_.begin(), workers_.end(), [](const auto& entry) { return entry.second.running; }));
}

// ---- drun's orders

WorkerStreams* WorkerGroup::streams_of(std::uint32_t rank) {
  const auto worker = workers_.find(rank);
  return worker != workers_.end() ? worker->second.streams.get() : nullptr;
}

void WorkerGroup::deliver(control::Input input) {
  if (WorkerStreams* streams = streams_of(input.rank)) streams->deliver(std::move(input.bytes));
}

void WorkerGroup::end_input(const control::Input& input) {
  if (WorkerStreams* streams = streams_of(input.rank)) streams->end_input();
}

void WorkerGroup::add_credit(const control::Credit& credit) {
  if (WorkerStreams* streams = streams_of(credit.rank)) streams->add_credit(credit.stream, credit.n_bytes);
}

void WorkerGroup::resize(control::WindowSize window) {
  for (auto& [rank, worker] : workers_) {
    if (worker.streams) worker.streams->resize({window.columns, window.rows});
  }
}

void WorkerGroup::signal(int number) {
  for (auto& [rank, worker] : workers_) {
    if (alive(worker)) signal(worker, number);
  }
}

// A process that has not executed its program is alone, and may not have entered its process group yet.
void WorkerGroup::signal(Worker& worker, int number) {
  if (worker.executed || !worker.running) {
    processes_.signal_group(worker.pid, number);
  } else {
    processes_.signal_child(worker.pid, number);
  }
}

// A worker that has not executed its program is stopped when it has: until then it has a deadline.
void WorkerGroup::pause() {
  is_paused_ = true;
  if (is_ending_) return;
  for (auto& [rank, worker] : workers_) {
    if (worker.executed && alive(worker)) signal(worker, SIGSTOP);
  }
}

void WorkerGroup::resume() {
  is_paused_ = false;
  signal(SIGCONT);
}

// ---- ends of workers

void WorkerGroup::reaped(pid_t pid, int wait_status) {
  changed_.notify();  // it may have been the last member of a worker's process group
  const auto found = std::find_if(workers_.begin(), workers_.end(),
                                  [pid](const auto& entry) { return entry.second.pid == pid && entry.second.running; });
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.running = false;
  worker.wait_status = wait_status;
  if (worker.executed) report_exit(worker);
}

void WorkerGroup::report_exit(Worker& worker) {
  worker.streams->close_input();
  // Its descendants may still write: a shell does not wait for the filter of `exec > >(tee log)`.
  if (!alive(worker)) {
    worker.streams->finish_soon();
  } else if (!is_ending_) {
    pumps_.spawn(finish_after_its_group(worker));
  }
  // Send the exit ahead of the output: a reader that does not take the output must not hide a failure.
  control::Exited m;
  m.rank = worker.spec.rank;
  m.pid = worker.pid;
  m.wait_status = worker.wait_status;
  m.ended_by_drun = worker.ended_by_drun;
  m.time_ns = static_cast<std::uint64_t>(monotonic_ns());
  exiting_(m);
  to_drun_.push(Type::kExited, control::encode(m));
}

// Reads the output until the rest of the group has closed it, or has had time for that. During a stop that time is the
// stop's.
Task<void> WorkerGroup::finish_after_its_group(Worker& worker) {
  const Deadline end = Clock::now() + kSettleTime;
  while (!is_ending_ && !worker.streams->output_ended() && alive(worker) && Clock::now() < end) {
    co_await sleep_until(std::min(end, Clock::now() + kGroupPoll));
  }
  if (!is_ending_) worker.streams->finish_soon();
}

// True if the worker's process group has members: its leader may end before the processes that it started.
bool WorkerGroup::alive(Worker& worker) {
  if (!worker.running && worker.group_alive) worker.group_alive = processes_.has_members(worker.pid);
  return worker.running || worker.group_alive;
}

void WorkerGroup::reader_lost() {
  changed_.notify();
  for (auto& [rank, worker] : workers_) {
    if (worker.streams) worker.streams->drop_limits();
  }
}

// ---- the end

void WorkerGroup::order_end(milliseconds grace, milliseconds delay, const std::vector<std::uint32_t>& delayed) {
  const auto now = Clock::now();
  for (auto& [rank, worker] : workers_) {
    const bool waits = std::find(delayed.begin(), delayed.end(), rank) != delayed.end();
    worker.end.order(waits ? now + delay : now, grace);
  }
  is_ending_ = true;
  changed_.notify();
}

Task<std::vector<pid_t>> WorkerGroup::left_in_background() {
  std::vector<pid_t> left;
  const auto begin = Clock::now();
  for (const auto& [rank, worker] : workers_) {
    if (worker.running || worker.end.kill_at() > begin) co_return left;
  }
  const Deadline end = begin + kSettleTime;
  while (processes_.has_children()) {
    left = processes_.descendants();
    const auto now = Clock::now();
    if (left.empty() || now >= end) co_return left;
    if (co_await changed_.wait_until(std::min(end, now + kGroupPoll))) changed_.reset();
  }
  left.clear();
  co_return left;
}

Task<void> WorkerGroup::end() {
  for (;;) {
    const Deadline next = send_due_signals(Clock::now());
    if (next == Deadline::max()) break;
    if (co_await changed_.wait_until(next)) changed_.reset();
  }
  for (auto& [rank, worker] : workers_) {
    if (worker.running) worker.ended_by_drun = true;
  }
  signal(SIGKILL);
}

// Sends TERM to each worker's process group, and KILL after the grace time if it still has members. Returns the time
// of the next signal, or poll; Deadline::max() if every group has got KILL or is gone.
Deadline WorkerGroup::send_due_signals(Deadline now) {
  Deadline next = Deadline::max();
  for (auto& [rank, worker] : workers_) {
    if (!alive(worker)) continue;
    const EndPlan::Step step = worker.end.take(now);
    if (step != EndPlan::Step::kNone && worker.running) worker.ended_by_drun = true;
    if (step == EndPlan::Step::kKill) {
      signal(worker, SIGKILL);  // reaped, or found dead, by the sweep
      continue;
    }
    if (step == EndPlan::Step::kTerm) {
      signal(worker, SIGTERM);
      signal(worker, SIGCONT);
    }
    next = std::min(next, worker.end.next());
    if (!worker.running) next = std::min(next, now + kGroupPoll);
  }
  return next;
}

void WorkerGroup::finish_output() {
  for (auto& [rank, worker] : workers_) {
    if (worker.streams) worker.streams->finish_soon();
  }
}

bool WorkerGroup::output_pending() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.streams && !worker.streams->output_ended();
  });
}

Task<void> WorkerGroup::output_sent() {
  while (!to_drun_.is_closed() && output_pending()) co_await changed_.wait_and_reset();
}

void WorkerGroup::stop() {
  for (auto& [rank, worker] : workers_) {
    if (worker.exec_report) close_quietly(*worker.exec_report);
    if (!worker.streams) continue;
    worker.streams->close_input();
    worker.streams->drop_limits();
    worker.streams->finish_soon();
  }
}

}  // namespace drun::agent
