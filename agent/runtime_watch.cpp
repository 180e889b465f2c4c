#include "agent/runtime_watch.h"

#include "agent/loaded_runtime.h"
#include "agent/process_list.h"
#include "agent/rank_snapshot.h"
#include "base/fd.h"

namespace drun::agent {

using std::chrono::seconds;

namespace {
constexpr seconds kSettled{20};   // enough for slow imports
constexpr seconds kReadTime{10};  // for a pass over /proc, on a busy machine too
constexpr std::size_t kMaxProcesses = 64;

// The first warning about any process of the workers; "" if there is none.
std::string warning_about(const std::vector<pid_t>& workers, bool settled) {
  const ProcessTable table = ProcessTable::read();
  std::size_t n_read = 0;
  for (const pid_t worker : workers) {
    for (const auto& process : table.family_of(worker)) {
      if (++n_read > kMaxProcesses) break;
      const auto maps = read_file(proc_file(process.pid, "maps"));
      const auto environment = read_file(proc_file(process.pid, "environ"));
      if (!maps || !environment) continue;  // it is gone, or another user's
      std::string text = alone_warning(loaded_runtime(*maps), process.name, *environment, settled);
      if (!text.empty()) return text;
    }
  }
  return "";
}

}  // namespace

RuntimeWatch::RuntimeWatch(asio::io_context& io, control::FrameQueue& to_drun, const WorkerGroup& workers)
    : to_drun_(to_drun), workers_(workers), reads_(io), tasks_(io.get_executor()), wake_(io.get_executor()) {}

void RuntimeWatch::start() { tasks_.spawn(watch()); }

// Polls early for a user who watches the job, and later for slow imports.
Task<void> RuntimeWatch::watch() {
  constexpr seconds kPolls[] = {seconds(1), seconds(2),  seconds(3),  seconds(4),
                                seconds(6), seconds(10), seconds(20), seconds(60)};
  const Deadline began = Clock::now();
  for (const auto time : kPolls) {
    co_await wake_.wait_until(began + time);
    if (is_stopped_ || to_drun_.is_closed()) co_return;
    const std::vector<pid_t> workers = executed_workers();
    if (workers.empty()) continue;
    const ForkedFunction read = [&workers, time](const ReportStep&) {
      return warning_about(workers, time >= kSettled);
    };
    const ForkedResult result = co_await reads_.call(read, Clock::now() + kReadTime);
    control::Text notice;
    notice.text = result.value.value_or("");
    if (notice.text.empty()) continue;
    to_drun_.push(control::Type::kNotice, control::encode(notice));
    co_return;
  }
}

std::vector<pid_t> RuntimeWatch::executed_workers() const {
  std::vector<pid_t> out;
  for (const auto& [rank, worker] : workers_.workers()) {
    // Before Linux 5.7 the files of a process that hangs in its exec can't be opened.
    if (worker.running && worker.executed) out.push_back(worker.pid);
  }
  return out;
}

void RuntimeWatch::stop() {
  is_stopped_ = true;
  reads_.stop();
  wake_.notify();
}

}  // namespace drun::agent
