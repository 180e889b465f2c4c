// The standard streams of one worker: sends its output to drun, and drun's input to it. Owned by the worker group; runs
// on the agent's thread.
//
// States: open -> finishing (the worker has ended) -> ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/output_pump.h"
#include "agent/stdin_pump.h"
#include "agent/worker_process.h"
#include "base/asio.h"
#include "base/terminal.h"
#include "control/frame_queue.h"
#include "control/messages.h"

namespace drun::agent {

class WorkerStreams {
 public:
  struct Settings {
    std::uint32_t rank = 0;
    bool pty = false;
    std::size_t credit = 0;  // bytes of each output stream before the first add_credit()
  };

  // Takes the streams of `process`. `output_ended`: called at the end of each output stream.
  WorkerStreams(asio::io_context& io, control::FrameQueue& to_drun, const Settings& settings, WorkerProcess& process,
                const std::function<void()>& output_ended);
  // Spawns the pumps. This must outlive them.
  void run_in(TaskGroup& pumps);

  void add_credit(control::Stream stream, std::size_t n_bytes);
  void drop_limits();  // the output has no reader any more and needs no credit
  void deliver(std::string input);
  void end_input();
  void close_input();
  void resize(TerminalSize size);
  void finish_soon();  // OutputPump::finish_soon
  bool output_ended() const;

 private:
  std::unique_ptr<OutputPump> pump_output(Fd fd, control::Stream stream, const std::function<void()>& output_ended);
  std::unique_ptr<StdinPump> pump_input(Fd fd);

  asio::io_context& io_;
  control::FrameQueue& to_drun_;
  const Settings settings_;
  std::unique_ptr<OutputPump> out_, err_;  // no err_ with a terminal, which has one output stream
  std::unique_ptr<StdinPump> in_;          // none if its stdin is /dev/null
  // Keeps a terminal open until the worker has ended. Many programs close their output before they exit, and the last
  // close of our side would kill them by SIGHUP meanwhile.
  Fd terminal_;
};

}  // namespace drun::agent
