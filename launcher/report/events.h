// --events F: the events of the job as JSON lines, written as they happen. docs/events.md has every field.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/messages.h"
#include "launcher/output/background_writer.h"
#include "launcher/report/progress.h"
#include "launcher/report/reporter.h"

namespace drun::launcher {

// Owned by the job; one thread. Before open() every call does nothing. The file is written on a thread of its own, as
// fast as its reader and its file system allow. A failed write causes one warning and ends the file, never the job.
class Events {
 public:
  // `max_waiting`: bytes of events that a slow reader has not taken; more end the file.
  explicit Events(Reporter& reporter, std::size_t max_waiting = 16u << 20)
      : reporter_(reporter), max_waiting_(max_waiting) {}
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  Result<void> open(const std::string& path);
  // Returns when all events are written, at most after `limit`. Later ones are dropped.
  void close(std::chrono::milliseconds limit);

  struct JobHost {
    std::string name;
    int n_workers = 0;
  };
  void job_begun(const std::string& job_id, const std::vector<std::string>& command, int np,
                 const std::vector<JobHost>& hosts);
  void host_connected(const std::string& host, const Progress::Times& phases);
  void agent_ready(const std::string& host, const control::Hello& hello, const Progress::Times& phases);
  void host_failed(const std::string& host, const Error& error);
  void interface_chosen(const std::string& host, const std::string& interface, const std::string& address,
                        const std::vector<std::string>& all, bool cached);
  void worker_started(int rank, const std::string& host, int pid);
  void worker_exited(int rank, const std::string& host, const control::Exited& message);
  // rank -1: not caused by a worker.
  void first_failure(int rank, const std::string& host, int pid, const std::string& why, int status);
  void stop_ordered(const std::string& why, int status);
  void job_ended(int status);

 private:
  struct Line;
  void write(const Line& line);
  void give_up(const std::string& why);
  void warn(const std::string& why);

  Reporter& reporter_;
  const std::size_t max_waiting_;
  std::string path_;
  std::unique_ptr<BackgroundWriter> file_;
  std::chrono::steady_clock::time_point began_;
  bool first_ = true;
};

// "2026-01-31T12:00:00.123Z".
std::string rfc3339(std::chrono::system_clock::time_point time);

}  // namespace drun::launcher
