#include "agent/runtime_watch.h"

#include "agent/loaded_runtime.h"
#include "agent/process_list.h"
#include "base/fd.h"

namespace drun::agent {

using std::chrono::seconds;

namespace {
constexpr seconds kSettled{20};  // enough for slow imports
constexpr std::size_t kMaxProcesses = 64;
}  // namespace

RuntimeWatch::RuntimeWatch(const asio::any_io_executor& executor, control::FrameQueue& to_drun,
                           const WorkerGroup& workers)
    : to_drun_(to_drun), workers_(workers), tasks_(executor), wake_(executor) {}

void RuntimeWatch::start() { tasks_.spawn(watch()); }

// Polls early for a user who watches the job, and later for slow imports.
Task<void> RuntimeWatch::watch() {
  constexpr seconds kPolls[] = {seconds(1), seconds(2),  seconds(3),  seconds(4),
                                seconds(6), seconds(10), seconds(20), seconds(60)};
  const Deadline began = Clock::now();
  for (const auto time : kPolls) {
    co_await wake_.wait_until(began + time);
    if (is_stopped_ || to_drun_.is_closed()) co_return;
    control::Text notice;
    notice.text = poll(time >= kSettled);
    if (notice.text.empty()) continue;
    to_drun_.push(control::Type::kNotice, control::encode(notice));
    co_return;
  }
}

// The first warning about any process of the workers; "" if there is none.
std::string RuntimeWatch::poll(bool settled) const {
  const ProcessTable table = ProcessTable::read();
  std::size_t n_read = 0;
  for (const auto& [rank, worker] : workers_.workers()) {
    // Before Linux 5.7 the files of a process that hangs in its exec can't be opened.
    if (!worker.running || !worker.executed) continue;
    for (const auto& process : table.family_of(worker.pid)) {
      if (++n_read > kMaxProcesses) break;
      const auto maps = read_file(proc_file(process.pid, "maps"));
      const auto environment = read_file(proc_file(process.pid, "environ"));
      if (!maps || !environment) continue;  // it is gone, or another user's
      const std::string text = alone_warning(loaded_runtime(*maps), process.name, *environment, settled);
      if (!text.empty()) return text;
    }
  }
  return "";
}

void RuntimeWatch::stop() {
  is_stopped_ = true;
  wake_.notify();
}

}  // namespace drun::agent
