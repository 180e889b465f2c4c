#include "launcher/plan/allocation.h"

#include <cstddef>
#include <cstdint>

#include "base/error_id.h"
#include "base/text.h"
#include "launcher/plan/allocation_file.h"
#include "launcher/plan/allocation_slurm.h"
#include "launcher/plan/allocation_words.h"

namespace drun::launcher {
namespace {

// The size of the job according to the variable; 0 if it is not a number.
std::uint64_t size_by(const Environment& env, const char* name) {
  return parse_number(value_of(env, name)).value_or(0);
}

Error several_tasks(const std::string& program, std::uint64_t n_tasks, const std::string& line) {
  return Error(Errc::kUsage, program,
               "started drun " + std::to_string(n_tasks) + " times, and each would start all workers: drun runs once")
      .with_hint(line)
      .with_id(error_id::kBatchJob);
}

}  // namespace

Result<std::optional<Allocation>> find_allocation(const Environment& env, const ReadFile& read) {
  // A worker that starts drun owns a slot of the job, not the whole job.
  if (env.count("DRUN_RANK") > 0) return std::nullopt;
  // Slurm first: some sites also set PBS variables in Slurm jobs, for older scripts.
  auto slurm = slurm_allocation(env);
  if (!slurm || *slurm) return slurm;
  for (const auto reader : {lsf_allocation, pbs_allocation, grid_engine_allocation, oar_allocation}) {
    auto found = reader(env, read);
    if (!found || *found) return found;
  }
  return std::nullopt;
}

std::string allocation_note(const std::vector<Host>& hosts) {
  if (hosts.empty() || hosts.front().job.empty()) return "";
  const std::string text =
      "in " + hosts.front().job + ": host" + (hosts.size() == 1 ? " " : "s ") + list_of(hosts, kMaxShown);
  if (hosts.size() <= kMaxShown) return text;
  std::size_t n_slots = 0;
  for (const auto& host : hosts) n_slots += static_cast<std::size_t>(host.slots);
  return text + " and " + plural(hosts.size() - kMaxShown, "other") + ", " + plural(n_slots, "slot") + " in all";
}

std::optional<Error> one_of_several_tasks(const Environment& env) {
  // A batch job inherits SLURM_STEP_* if sbatch was called in a step, but has a SLURM_NTASKS of its own. A step with
  // --pty has its terminal in task 0; the shells of the other tasks exit at once.
  const auto step_size = size_by(env, "SLURM_STEP_NUM_TASKS");
  const bool is_session = env.count("SLURM_PTY_PORT") > 0 && value_of(env, "SLURM_PROCID") == "0";
  if (step_size > 1 && size_by(env, "SLURM_NTASKS") == step_size && !is_session) {
    const std::string alone = "salloc -n " + std::to_string(step_size) + " drun ...";
    return several_tasks("srun", step_size, alone + ", or drun in the script of sbatch, without srun");
  }
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "JSM_NAMESPACE_SIZE"}) {
    const auto size = size_by(env, name);
    if (size > 1) {
      const std::string program = starts_with(name, "JSM") ? "jsrun" : "mpirun";
      return several_tasks(program, size, "drun -np " + std::to_string(size) + " ..., without " + program);
    }
  }
  return std::nullopt;
}

}  // namespace drun::launcher
