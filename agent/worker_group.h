// The workers of this host: starts them, feeds them, reports how they end, and ends them. Owned by the agent; runs on
// its thread.
//
// States: empty -> running (start) -> ending (order_end, end) -> stopped. A group that is ending may still run: the
// order has times. After stop(), join() waits for the pumps.
//
// A worker: forked -> executed (its program runs) -> ended. A worker that can't execute its program, or not in time, is
// reported as not started, and never as ended; its process may hang until the end of the job.
#pragma once

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/end_plan.h"
#include "agent/processes.h"
#include "agent/worker_streams.h"
#include "base/asio.h"
#include "control/frame_queue.h"
#include "control/messages.h"

namespace drun::agent {

struct Worker {
  control::WorkerSpec spec;
  pid_t pid = 0;                           // also of its process group; 0: it was never started
  std::unique_ptr<WorkerStreams> streams;  // nullptr: it was never started, or could not be executed
  std::unique_ptr<asio::posix::stream_descriptor> exec_report;
  bool running = false;   // its process has not been reaped
  bool executed = false;  // and drun has been told so
  bool ended_by_drun = false;
  int wait_status = 0;
  bool group_alive = false;  // its process group may still have members
  EndPlan end;
};

class WorkerGroup {
 public:
  using Workers = std::map<std::uint32_t, Worker>;  // by rank
  // Completes the report of a worker's end, before it is sent.
  using Exiting = std::function<void(control::Exited&)>;
  using StartOf = std::function<WorkerStart(const control::WorkerSpec&)>;

  WorkerGroup(asio::io_context& io, Processes& processes, control::FrameQueue& to_drun, Exiting exiting);

  // Forks the workers of the order. Each is reported when it has executed its program; if it has not done so within
  // the order's time, it is reported as not started.
  void start(const control::Spawn& order, const StartOf& start_of);
  const Workers& workers() const { return workers_; }
  std::size_t n_running() const;

  // drun's orders. A rank that is not here is ignored.
  void deliver(control::Input input);
  void end_input(const control::Input& input);
  void add_credit(const control::Credit& credit);
  void resize(control::WindowSize window);
  void signal(int number);
  void pause();  // drun is about to be stopped by Ctrl-Z, and is silent until it continues
  void resume();

  // The agent has reaped this child of its own, which need not be a worker.
  void reaped(pid_t pid, int wait_status);
  // drun is gone, so the output has no reader.
  void reader_lost();

  // Plans the end: TERM after `delay` for the ranks in `delayed`, and at once for the others, then KILL after `grace`.
  // A later order can only make it earlier.
  void order_end(std::chrono::milliseconds grace, std::chrono::milliseconds delay,
                 const std::vector<std::uint32_t>& delayed);
  // After a normal end: the processes that still run although all workers have ended. Gives them some time to end by
  // themselves.
  Task<std::vector<pid_t>> left_in_background();
  // Carries out the plan. After it no group has members, or all of them have got KILL.
  Task<void> end();
  void finish_output();  // all workers are over: what they have written is still sent
  // Waits until it is, at the reader's pace. Without a reader, does not wait.
  Task<void> output_sent();
  void stop();
  Task<void> join() { return pumps_.join(); }

 private:
  void start(Worker& worker, const control::Spawn& order, const WorkerStart& start);
  Task<void> await_exec(Worker& worker, std::string file, std::chrono::milliseconds limit);
  void report_failed_start(Worker& worker, int error, std::string what);
  void report_exit(Worker& worker);
  Task<void> finish_after_its_group(Worker& worker);
  void signal(Worker& worker, int number);
  bool alive(Worker& worker);
  Deadline send_due_signals(Deadline now);
  bool output_pending() const;
  WorkerStreams* streams_of(std::uint32_t rank);

  asio::io_context& io_;
  Processes& processes_;
  control::FrameQueue& to_drun_;
  Exiting exiting_;
  TaskGroup pumps_;
  Event changed_;  // a process or an output has ended, or the plan has changed
  Workers workers_;
  bool is_ending_ = false;
  bool is_paused_ = false;
};

}  // namespace drun::agent
