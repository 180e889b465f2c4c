#include "launcher/allocation.h"

#include <cstddef>

#include "base/text.h"
#include "launcher/allocation_file.h"
#include "launcher/allocation_slurm.h"
#include "launcher/allocation_words.h"

namespace drun::launcher {

Result<std::optional<Allocation>> find_allocation(const Environment& env, const ReadFile& read) {
  // A worker that starts drun has a slot of the job, not the job.
  if (env.count("DRUN_RANK") > 0) return std::nullopt;
  // Slurm first: sites give its jobs the variables of PBS, too, for older scripts.
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
      "in " + hosts.front().job + ": host" + (hosts.size() == 1 ? " " : "s ") + list_of(hosts, kMostShown);
  if (hosts.size() <= kMostShown) return text;
  std::size_t n_slots = 0;
  for (const auto& host : hosts) n_slots += static_cast<std::size_t>(host.slots);
  return text + " and " + plural(hosts.size() - kMostShown, "other") + ", " + plural(n_slots, "slot") + " in all";
}

}  // namespace drun::launcher
