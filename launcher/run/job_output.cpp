#include "launcher/run/job_output.h"

#include <unistd.h>

#include <chrono>
#include <functional>
#include <utility>

#include "base/log.h"
#include "base/terminal.h"
#include "launcher/output/worker_window.h"
#include "launcher/run/job_orders.h"

namespace drun::launcher {

namespace {
constexpr auto kSlowFiles = std::chrono::seconds(3);
}

JobOutput::JobOutput(asio::io_context& io, OutputOptions options, Reporter& reporter, Supervisor& supervisor)
    : reporter_(reporter),
      writer_(
          io, std::move(options),
          [this](int rank, control::Stream stream, std::size_t n) { give_credit(rank, stream, n); },
          [&supervisor](Error error) { supervisor.on_output_broken(error); }),
      done_(io.get_executor()) {
  writer_.write_after([&reporter](std::chrono::milliseconds limit) { return reporter.wait_written(limit); });
}

Task<Result<void>> JobOutput::open(std::vector<AgentChannel*> hosts, const Placement& placement, Deadline deadline) {
  hosts_ = std::move(hosts);
  std::vector<RankLabel> labels;
  for (const auto& place : placement.ranks) {
    host_of_.push_back(place.host);
    labels.push_back(RankLabel{hosts_[static_cast<std::size_t>(place.host)]->name(), place.host});
  }
  writer_.open(labels, output_credit(labels.size()));
  if (writer_.directory().empty()) co_return Result<void>();
  std::function<void()> warn = [this] {
    reporter_.warning("--output-filename: creating the files of the ranks in " + writer_.directory() +
                      " takes long: its file system answers slowly or not at all");
  };
  const DeadlineGuard slow(co_await asio::this_coro::executor, Clock::now() + kSlowFiles, std::move(warn));
  co_return co_await writer_.create_files(deadline);
}

Task<void> JobOutput::run() {
  speak_through([this](const std::string& text) { writer_.push_own(text); });
  return write();
}

Task<void> JobOutput::write() {
  co_await writer_.run();
  speak_through(nullptr);  // the writer has ended
  done_.notify();
}

Task<void> JobOutput::finish() {
  writer_.stop();
  co_await done_.wait();
  if (writer_.left_a_line_open()) reporter_.line_is_open();
}

// drun's messages to the user, and at a terminal its log, too; elsewhere the log does not wait for a reader of the
// workers' output. An empty sink: straight to stderr.
void JobOutput::speak_through(const Reporter::Sink& sink) {
  reporter_.write_through(sink);
  if (::isatty(STDERR_FILENO) == 1) log::write_through(sink);
}

void JobOutput::give_credit(int rank, control::Stream stream, std::size_t n_bytes) {
  control::Credit m;
  m.rank = static_cast<std::uint32_t>(rank);
  m.stream = stream;
  m.n_bytes = static_cast<std::uint32_t>(n_bytes);
  const auto host = static_cast<std::size_t>(host_of_[static_cast<std::size_t>(rank)]);
  hosts_[host]->send(control::Type::kCredit, control::encode(m));
}

control::WindowSize JobOutput::window() {
  const TerminalSize size = worker_window(own_terminal_size(), writer_.tag_width());
  window_.columns = static_cast<std::uint16_t>(size.columns);
  window_.rows = static_cast<std::uint16_t>(size.rows);
  return window_;
}

void JobOutput::resize_workers() {
  const control::WindowSize before = window_;
  if (window() == before) return;
  for (AgentChannel* host : hosts_) host->send(control::Type::kResize, control::encode(window_));
}

}  // namespace drun::launcher
