#include "launcher/plan/allocation_slurm.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/error_id.h"
#include "base/text.h"
#include "launcher/plan/allocation_words.h"
#include "launcher/plan/host_range.h"
#include "launcher/plan/hostlist.h"

namespace drun::launcher {
namespace {

constexpr std::uint64_t kMaxCount = 1u << 20;  // tasks or processors of a node

Error error_of(const std::string& job, std::string cause, const std::string& list) {
  return Error(Errc::kUsage, job, std::move(cause)).with_hint(list_hint(list)).with_id(error_id::kBatchJob);
}

// The nodes, each with one slot.
Result<std::vector<Host>> parse_nodes(const std::string& job, const std::string& name, const std::string& text) {
  auto nodes = parse_hostlist(text);
  if (!nodes) return fail(error_of(job, name + "=" + text + " can't be read: " + nodes.error().cause, ""));
  for (auto& node : *nodes) {
    if (node.slots_given || !node.user.empty()) {
      return fail(
          error_of(job, name + "=" + text + " can't be read: '" + to_item(node, node.slots) + "' is no node", ""));
    }
    node.where = name;
    node.job = job;
  }
  return nodes;
}

// Sets the slots of each node to its tasks and removes nodes without tasks. Returns false if the number of counts
// differs from the number of nodes, or if no node is left.
bool set_slots(std::vector<Host>& nodes, const std::vector<int>& counts) {
  if (counts.size() != nodes.size()) return false;
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].slots = counts[i];
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), [](const Host& node) { return node.slots == 0; }),
              nodes.end());
  return !nodes.empty();
}

// The hosts with the number of tasks that their processors allow, as a list for -H; "" if that is not known.
std::string list_by_processors(const Environment& env, std::vector<Host> nodes) {
  auto counts = parse_slurm_counts(value_of(env, "SLURM_JOB_CPUS_PER_NODE"));
  if (!counts) return "";
  const auto per_task = parse_number(value_of(env, "SLURM_CPUS_PER_TASK")).value_or(1);
  for (int& count : *counts) {
    count = std::max(1, count / static_cast<int>(std::clamp<std::uint64_t>(per_task, 1, kMaxCount)));
  }
  return set_slots(nodes, *counts) ? short_list(nodes) : "";
}

// The parts of a heterogeneous job as one list for -H; "" if one can't be read.
std::string list_of_parts(const Environment& env, const std::string& job, std::uint64_t n_parts) {
  std::vector<Host> all;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(n_parts, kMaxHosts); ++i) {
    const std::string suffix = "_HET_GROUP_" + std::to_string(i);
    const std::string name = "SLURM_JOB_NODELIST" + suffix;
    auto nodes = parse_nodes(job, name, value_of(env, name));
    const auto counts = parse_slurm_counts(value_of(env, "SLURM_TASKS_PER_NODE" + suffix));
    if (!nodes || !counts || !set_slots(*nodes, *counts)) return "";
    all.insert(all.end(), nodes->begin(), nodes->end());
  }
  return short_list(all);
}

}  // namespace

std::optional<std::vector<int>> parse_slurm_counts(std::string_view text) {
  std::vector<int> out;
  for (std::string_view item : split(text, ',')) {
    std::uint64_t times = 1;
    if (const auto open = item.find("(x"); open != std::string_view::npos) {
      if (item.back() != ')') return std::nullopt;
      const auto given = parse_number(item.substr(open + 2, item.size() - open - 3));
      if (!given || *given == 0) return std::nullopt;
      times = *given;
      item = item.substr(0, open);
    }
    const auto count = parse_number(item);
    if (!count || *count > kMaxCount || times > kMaxHosts - out.size()) return std::nullopt;
    out.insert(out.end(), static_cast<std::size_t>(times), static_cast<int>(*count));
  }
  return out;
}

Result<std::optional<Allocation>> slurm_allocation(const Environment& env) {
  const std::string id = first_of(env, {"SLURM_JOB_ID", "SLURM_JOBID"});
  if (id.empty()) return std::nullopt;
  const std::string job = "Slurm job " + id;
  if (const auto n_parts = parse_number(value_of(env, "SLURM_HET_SIZE")).value_or(1); n_parts > 1) {
    return fail(error_of(job, "a heterogeneous job of " + std::to_string(n_parts) + " parts: name the hosts",
                         list_of_parts(env, job, n_parts)));
  }
  const std::string nodelist = first_of(env, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (nodelist.empty()) return fail(error_of(job, "SLURM_JOB_NODELIST is not set: its hosts are not known", ""));
  auto nodes = parse_nodes(job, "SLURM_JOB_NODELIST", nodelist);
  if (!nodes) return fail(std::move(nodes.error()));
  const std::string tasks = value_of(env, "SLURM_TASKS_PER_NODE");
  const std::string list = list_by_processors(env, *nodes);
  if (tasks.empty()) return fail(error_of(job, "SLURM_TASKS_PER_NODE is not set: its slots are not known", list));
  const auto counts = parse_slurm_counts(tasks);
  if (!counts) return fail(error_of(job, "SLURM_TASKS_PER_NODE=" + tasks + " can't be read", list));
  const std::size_t n_nodes = nodes->size();
  if (set_slots(*nodes, *counts)) return Allocation{job, std::move(*nodes)};
  std::string cause = "SLURM_TASKS_PER_NODE=" + tasks + " does not fit SLURM_JOB_NODELIST=" + nodelist;
  // srun sets the tasks of the step, but the nodes of the job.
  if (env.count("SLURM_STEP_ID") > 0 && counts->size() < n_nodes) {
    cause = "this is a step on " + std::to_string(counts->size()) + " of its " + plural(n_nodes, "host") +
            ", and srun does not say how many tasks the job has on each";
  }
  return fail(error_of(job, cause, list));
}

}  // namespace drun::launcher
