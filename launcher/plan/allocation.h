// The hosts of the batch job in which drun was started: Slurm, LSF, PBS, Grid Engine, OAR. Pure: the caller passes the
// environment and a function that reads files. The rules are in docs/schedulers.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "launcher/plan/worker_env.h"

namespace drun::launcher {

struct Allocation {
  std::string job;          // "Slurm job 4"
  std::vector<Host> hosts;  // in the scheduler's order, no duplicates, each with at least one slot and with `job` set
};

using ReadFile = std::function<Result<std::string>(const std::string& path)>;

// Returns nothing outside a scheduler's job and inside a worker of drun. Fails with Errc::kUsage, and what to type as
// the hint, if the hosts of the job can't be determined.
Result<std::optional<Allocation>> find_allocation(const Environment& env, const ReadFile& read);

// "in Slurm job 4: hosts n1:3,n2:1", for display; a long list is cut. "" for hosts that the user named.
std::string allocation_note(const std::vector<Host>& hosts);

// Returns an error, with what to type, if srun or mpirun started drun as one of several tasks: each task would start a
// whole job.
std::optional<Error> one_of_several_tasks(const Environment& env);

}  // namespace drun::launcher
