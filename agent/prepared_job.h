// The result of the order Prepare: the facts that this host has about a job before any worker starts. Each function
// adds its problems to the reply; a job without problems can be started.
#pragma once

#include <string>
#include <vector>

#include "agent/binding.h"
#include "agent/cgroup.h"
#include "agent/forked_call.h"
#include "agent/reserved_port.h"
#include "agent/worker_process.h"
#include "base/asio.h"
#include "control/messages.h"

namespace drun::agent {

struct PreparedJob {
  control::Prepare order;        // with this host's variables in the environment
  std::string command;           // path passed to execve
  ReservedPort master_port;      // until the workers start; closed if this host has not rank 0
  std::vector<WorkerCpus> cpus;  // by local rank; empty: not bound
};

// Adds this host's variables to the environment.
PreparedJob prepare_job(control::Prepare order);
// Checks the working directory and the command, in a child. By the order's time, a file system that does not answer is
// a problem. `job` must outlive it.
Task<void> find_command(PreparedJob& job, ForkedCalls& calls, control::Prepared& reply);
// Reserves MASTER_PORT if the order says so.
void reserve_master_port(PreparedJob& job, control::Prepared& reply);
// Finds the GPUs that the host list names for the workers. Without the driver's files, all are taken to be there.
void check_gpus(const PreparedJob& job, control::Prepared& reply);
// --bind-to: chooses the CPUs of the workers.
void choose_cpus(PreparedJob& job, const CgroupFiles& cgroup_files, control::Prepared& reply);

// The start of a worker of that job: its command, environment and CPUs. Pure.
WorkerStart worker_start(const PreparedJob& job, const control::Spawn& order, const control::WorkerSpec& spec);

}  // namespace drun::agent
