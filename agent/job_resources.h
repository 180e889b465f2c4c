// The resources that the workers of a job share on this host: the socket by which they find the agent, and their
// cgroup. Each is announced to the guard, which removes them if the agent dies. Owned by the agent; runs on its thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/cgroup.h"
#include "agent/guard_watch.h"
#include "agent/recorders.h"
#include "agent/sweep.h"
#include "agent/worker_process.h"
#include "agent/worker_socket.h"
#include "base/asio.h"
#include "base/error.h"
#include "control/messages.h"

namespace drun::agent {

class JobResources {
 public:
  JobResources(asio::io_context& io, GuardWatch& guard);

  void set_job(std::string job_id) { job_id_ = std::move(job_id); }
  // Does nothing if there is a socket.
  Result<void> open_socket();
  // Optional: the job goes on without a cgroup.
  void make_cgroup(const CgroupFiles& files);

  // The handout of a worker that connects to the socket. `recorders` must outlive this. `warn` is called if the workers
  // that ask for shared memory can't have any.
  void hand_out(const control::Spawn& order, Recorders& recorders, const std::function<void(std::string)>& warn);
  // Adds what a worker needs to find these resources.
  void add_to(WorkerStart& start, std::uint32_t rank) const;
  // The contents of the file that torch's @record has written for that rank; "" = none.
  std::string read_error_file(std::uint32_t rank) const;
  // The file to which torch's @record writes the exception of that rank, unless the user chose another; "" = none.
  std::string error_file(std::uint32_t rank) const;

  // Kills every process of the job on this host, then removes the cgroup. Blocks, for less than kGuardSilenceLimit.
  Swept end_processes(const Reaped& reaped);

  void stop();  // the socket
  Task<void> join() { return tasks_.join(); }

 private:
  asio::io_context& io_;
  GuardWatch& guard_;
  TaskGroup tasks_;
  std::string job_id_;
  std::unique_ptr<WorkerSocket> socket_;
  std::optional<JobCgroup> cgroup_;
};

}  // namespace drun::agent
