#include "agent/worker_streams.h"

#include <fcntl.h>

#include <chrono>
#include <utility>

namespace drun::agent {

using control::Stream;
using control::Type;

namespace {

constexpr std::size_t kNoLimit = SIZE_MAX / 2;

std::uint64_t wall_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

WorkerStreams::WorkerStreams(asio::io_context& io, control::FrameQueue& to_drun, const Settings& settings,
                             WorkerProcess& process, const std::function<void()>& output_ended)
    : io_(io), to_drun_(to_drun), settings_(settings) {
  if (settings_.pty) terminal_.reset(::fcntl(process.stdout_end.get(), F_DUPFD_CLOEXEC, 3));
  out_ = pump_output(std::move(process.stdout_end), Stream::kStdout, output_ended);
  if (process.stderr_end) {
    err_ = pump_output(std::move(process.stderr_end), Stream::kStderr, output_ended);
  } else {
    control::Output none;
    none.rank = settings_.rank;
    none.stream = Stream::kStderr;
    to_drun_.push_bulk(Type::kOutputEnd, control::encode(none));
  }
  if (process.stdin_end) in_ = pump_input(std::move(process.stdin_end));
}

std::unique_ptr<OutputPump> WorkerStreams::pump_output(Fd fd, Stream stream,
                                                       const std::function<void()>& output_ended) {
  const auto emit = [this, stream](std::string bytes) {
    control::Output m;
    m.rank = settings_.rank;
    m.stream = stream;
    m.time_ns = wall_clock_ns();
    m.bytes = std::move(bytes);
    to_drun_.push_bulk(Type::kOutput, control::encode(m));
  };
  const auto ended = [this, stream, output_ended] {
    control::Output m;
    m.rank = settings_.rank;
    m.stream = stream;
    to_drun_.push_bulk(Type::kOutputEnd, control::encode(m));
    output_ended();
  };
  return std::make_unique<OutputPump>(io_, std::move(fd), to_drun_.is_closed() ? kNoLimit : settings_.credit, emit,
                                      ended);
}

std::unique_ptr<StdinPump> WorkerStreams::pump_input(Fd fd) {
  const auto give_credit = [this](std::size_t n) {
    control::Credit m;
    m.rank = settings_.rank;
    m.stream = Stream::kStdin;
    m.n_bytes = static_cast<std::uint32_t>(n);
    to_drun_.push(Type::kStdinCredit, control::encode(m));
  };
  const auto refused = [give_credit] { give_credit(control::Credit::kNoMore); };
  return std::make_unique<StdinPump>(io_, std::move(fd), settings_.pty, give_credit, refused);
}

void WorkerStreams::run_in(TaskGroup& pumps) {
  pumps.spawn(out_->run());
  if (err_) pumps.spawn(err_->run());
  if (in_) pumps.spawn(in_->run());
}

void WorkerStreams::add_credit(Stream stream, std::size_t n_bytes) {
  auto& pump = stream == Stream::kStdout ? out_ : err_;
  if (pump) pump->add_credit(n_bytes);
}

void WorkerStreams::drop_limits() {
  out_->add_credit(kNoLimit);
  if (err_) err_->add_credit(kNoLimit);
}

void WorkerStreams::deliver(std::string input) {
  if (in_) in_->deliver(std::move(input));
}

void WorkerStreams::end_input() {
  if (in_) in_->end();
}

void WorkerStreams::close_input() {
  if (in_) in_->close();
}

void WorkerStreams::resize(TerminalSize size) { out_->resize_terminal(size); }

void WorkerStreams::finish_soon() {
  terminal_.reset();
  out_->finish_soon();
  if (err_) err_->finish_soon();
}

bool WorkerStreams::output_ended() const { return out_->ended() && (!err_ || err_->ended()); }

}  // namespace drun::agent
