// The agent's side of its guard: sends it a heartbeat each second, watches for its end and its silence, and announces
// what it must clean up if the agent dies. Owned by the agent; runs on its thread.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <string>

#include "agent/guard.h"
#include "base/asio.h"

namespace drun::agent {

class GuardWatch {
 public:
  // Calls `lost` once, if the guard is gone. A guard that is silent for kGuardSilenceLimit is killed first.
  GuardWatch(asio::io_context& io, GuardLink guard, std::function<void()> lost);

  void start();
  // Sends a heartbeat; for code that blocks for long. False if the guard is gone.
  bool beat();
  // Sends a message that GuardMessages parses. False if it can't be sent.
  bool announce(char what, const std::string& text) { return notify_guard(guard_, what, text); }
  int pid() const { return guard_.guard_pid; }

  // Ends the heartbeats. Continues the guard, if it was stopped.
  void stop();
  Task<void> join() { return tasks_.join(); }

 private:
  Task<void> send_heartbeats();
  Task<void> watch();
  void signal_guard(int signal);

  asio::io_context& io_;
  GuardLink guard_;
  asio::posix::stream_descriptor in_;
  TaskGroup tasks_;
  Event wake_;
  std::function<void()> lost_;
  bool is_stopped_ = false;
};

}  // namespace drun::agent
