#include "agent/tool.h"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "agent/worker_process.h"
#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

Tools::Tools(asio::io_context& io, const std::string& path) : io_(io), lookups_(io) {
  for (const auto folder : split(path, ':')) {
    if (!folder.empty()) folders_.emplace_back(folder);
  }
  for (const char* usual : {"/usr/local/bin", "/usr/bin", "/bin"}) folders_.emplace_back(usual);
}

Task<FoundTool> Tools::find(std::vector<std::string> names, Deadline deadline) {
  FoundTool out;
  if (const auto known = found_.find(names.front()); known != found_.end()) {
    out.path = known->second;
    co_return out;
  }
  const ForkedFunction find = [this, &names](const ReportStep& report) {
    for (const auto& name : names) {
      for (const auto& folder : folders_) {
        std::string path = folder + "/" + name;
        report(path);
        if (::access(path.c_str(), X_OK) == 0) return path;
      }
    }
    return std::string();
  };
  const ForkedResult result = co_await lookups_.call(find, deadline);
  out.path = result.value.value_or("");
  if (!out.path.empty()) found_[out.path.substr(out.path.rfind('/') + 1)] = out.path;
  if (result.late)
    out.problem = "looking for " + (result.step.empty() ? names.front() : result.step) + " did not end in time";
  if (!result.problem.empty()) out.problem = "looking for " + names.front() + ": " + result.problem;
  co_return out;
}

Task<ToolOutput> Tools::run(std::vector<std::string> argv, std::map<std::string, std::string> environment,
                            Deadline deadline, std::size_t limit) {
  ToolOutput out;
  if (stopped_) {
    out.late = true;
    co_return out;
  }
  WorkerStart start;
  start.file = "/bin/sh";
  start.argv = {"sh", "-c", "exec \"$@\" 2>&1 </dev/null", "sh"};
  start.argv.insert(start.argv.end(), argv.begin(), argv.end());
  start.environment = std::move(environment);
  const auto began = Clock::now();
  auto started = start_worker(start);
  if (!started) {
    out.problem = started.error().message();
    co_return out;
  }
  const pid_t pid = started->pid;
  running_.insert(pid);
  set_nonblocking(started->exec_report.get(), true);
  set_nonblocking(started->stdout_end.get(), true);
  asio::posix::stream_descriptor output(io_, started->stdout_end.release());
  std::string chunk(16u << 10, '\0');
  {
    DeadlineGuard guard(io_.get_executor(), deadline, [&output] {
      boost::system::error_code ignored;
      output.close(ignored);
    });
    while (out.text.size() < limit) {
      const auto buffer = asio::buffer(chunk);
      const auto [ec, n] = co_await output.async_read_some(buffer, as_result);
      out.text.append(chunk, 0, n);
      if (ec) break;
    }
    out.late = guard.fired() || stopped_;
  }
  char report[64];
  const ssize_t n_report = ::read(started->exec_report.get(), report, sizeof report);
  if (n_report > 0) {
    const auto executed = exec_result(std::string_view(report, static_cast<std::size_t>(n_report)), start.file);
    if (!executed) out.problem = executed.error().message();
  }
  out.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  out.cut = out.text.size() >= limit;
  if (out.cut) out.text.resize(limit);
  if ((out.late || out.cut) && running_.count(pid) > 0) ::kill(-pid, SIGKILL);
  co_return out;
}

void Tools::stop() {
  stopped_ = true;
  lookups_.stop();
  for (const pid_t pid : running_) ::kill(-pid, SIGKILL);
}

}  // namespace drun::agent
