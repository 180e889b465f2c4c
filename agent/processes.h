// The kernel's part in a group of workers: to start processes, to signal them, and which of them are left. Tests
// have a fake in its place.
#pragma once

#include <sys/types.h>

#include <vector>

#include "agent/worker_process.h"
#include "base/clock.h"
#include "base/error.h"

namespace drun::agent {

class Processes {
 public:
  virtual ~Processes() = default;
  // start_worker()
  virtual Result<WorkerProcess> start(const WorkerStart& start) = 0;
  virtual void signal_group(pid_t group, int number) = 0;
  // A child that has not been reaped.
  virtual void signal_child(pid_t pid, int number) = 0;
  // True if the process group has members that are our descendants: the number of an empty group may be reused.
  virtual bool has_members(pid_t group) = 0;
  // False: there is no descendant either.
  virtual bool has_children() = 0;
  virtual std::vector<pid_t> descendants() = 0;
};

// The processes below this one, which must be a subreaper (sweep.h).
class OwnProcesses final : public Processes {
 public:
  Result<WorkerProcess> start(const WorkerStart& start) override;
  void signal_group(pid_t group, int number) override;
  void signal_child(pid_t pid, int number) override;
  bool has_members(pid_t group) override;
  bool has_children() override;
  std::vector<pid_t> descendants() override;

 private:
  // Descendants as of seen_at_: one pass over /proc for all groups whose members are among them.
  std::vector<pid_t> seen_;
  Deadline seen_at_{};
};

}  // namespace drun::agent
