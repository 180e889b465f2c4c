// The hosts that a batch scheduler has given to the job in which drun was started: Slurm, LSF, PBS, Grid Engine, OAR.
// Pure: the environment and a way to read files go in. docs/schedulers.md has the rules.
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
  std::vector<Host> hosts;  // in the scheduler's order, each once, with at least one slot, and `job` in each
};

using ReadFile = std::function<Result<std::string>(const std::string& path)>;

// Nothing outside of a scheduler's job, and nothing in a worker of drun. Errc::kUsage in a job whose hosts can't be
// told, with what to type.
Result<std::optional<Allocation>> find_allocation(const Environment& env, const ReadFile& read);

// "in Slurm job 4: hosts n1:3,n2:1", for people; long lists are cut. "" for hosts that the user named.
std::string allocation_note(const std::vector<Host>& hosts);

// Where srun or mpirun started drun as one of several tasks, each of which would start a whole job: the error that says
// so, with what to type.
std::optional<Error> one_of_several_tasks(const Environment& env);

}  // namespace drun::launcher
