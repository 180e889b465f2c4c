#include "launcher/run/job_orders.h"

#include <algorithm>
#include <utility>

#include "base/error_id.h"
#include "base/text.h"
#include "launcher/output/worker_window.h"

namespace drun::launcher {

namespace {

constexpr std::size_t kOutputBudget = 32u << 20;  // bytes of output on the way, over all workers

Errc code_of(control::ProblemKind kind) {
  switch (kind) {
    case control::ProblemKind::kNotFound:
      return Errc::kNotFound;
    case control::ProblemKind::kNotExecutable:
      return Errc::kNotExecutable;
    case control::ProblemKind::kWorkingDirectory:
    case control::ProblemKind::kMpi:
    case control::ProblemKind::kBinding:
    case control::ProblemKind::kGpus:
    case control::ProblemKind::kCompat:
      return Errc::kUsage;
    case control::ProblemKind::kNoAnswer:
      return Errc::kTimeout;
    default:
      return Errc::kUnreachable;
  }
}

std::string_view id_of_problem(control::ProblemKind kind) {
  switch (kind) {
    case control::ProblemKind::kWorkingDirectory:
      return error_id::kWorkingDirectory;
    case control::ProblemKind::kMpi:
      return error_id::kMpiProgram;
    case control::ProblemKind::kBinding:
      return error_id::kBinding;
    case control::ProblemKind::kGpus:
      return error_id::kGpus;
    case control::ProblemKind::kCompat:
      return error_id::kCompat;
    default:
      return {};  // that of the Errc
  }
}

Environment environment_of(const RankPlace& place, const JobOptions& options, const StartPlan& plan) {
  const auto host = static_cast<std::size_t>(place.host);
  const auto& handout = plan.handouts[host];
  RankEnvInput in;
  in.place = place;
  in.size = plan.placement.size;
  in.n_hosts = static_cast<int>(plan.host_names.size());
  in.master_addr = plan.network.hosts[0].address.text();
  in.master_port = plan.master_port;
  in.job_id = plan.job_id;
  in.rendezvous = host_port(handout.rendezvous_address, handout.rendezvous_port);
  in.nccl_interfaces = plan.network.hosts[host].interfaces;
  in.ip_interface = plan.network.hosts[host].interface;
  in.n_cpus = plan.n_cpus[host];
  if (host < plan.horovod.size()) in.horovod = plan.horovod[host];
  if (const auto* binding = plan.binding_of(place)) in.bound_threads = static_cast<int>(binding->threads);
  Environment out = rank_environment(in, options.env, options.own_env);
  // For a container around the worker, which can't reach the agent's socket.
  const auto& exports = options.env.exports;
  if (std::find(exports.begin(), exports.end(), "DRUN_KEY") == exports.end()) return out;
  out["DRUN_KEY"] = rendezvous::job_key_to_hex(plan.key);
  if (!set_by_user(options.env, options.own_env, "DRUN_DATA_ADDRESS")) out["DRUN_DATA_ADDRESS"] = handout.data_address;
  return out;
}

}  // namespace

const control::Binding* StartPlan::binding_of(const RankPlace& place) const {
  const auto host = static_cast<std::size_t>(place.host), local_rank = static_cast<std::size_t>(place.local_rank);
  if (host >= bindings.size() || local_rank >= bindings[host].size()) return nullptr;
  return &bindings[host][local_rank];
}

std::uint32_t time_of_agent(std::chrono::milliseconds left) {
  constexpr std::chrono::milliseconds kForTheReply{1000};
  return static_cast<std::uint32_t>(
      std::max(left - std::min(kForTheReply, left / 4), std::chrono::milliseconds(0)).count());
}

control::Prepare prepare_order(const JobOptions& options, const StartPlan& plan, std::size_t host, bool is_head) {
  control::Prepare order;
  order.argv = options.command;
  order.working_directory = options.working_directory;
  order.environment = base_environment(options.own_env, options.env, !is_head);
  if (options.pty) forget_terminal_size(order.environment, options.own_env, options.env);
  if (host == 0) order.master_address = plan.network.hosts[0].address.text();
  order.compat_folder = options.env.compat_folder;
  order.refuses_mpi = !options.allows_mpi && plan.placement.size > 1;
  order.bind_to = options.bind_to;
  order.shares_cores = options.shares_cores;
  for (const auto& place : plan.placement.ranks) {
    if (place.host == static_cast<int>(host)) order.gpus.push_back(place.gpu);
  }
  return order;
}

std::vector<Error> errors_of(const control::Prepared& prepared, const std::string& host_name) {
  std::vector<Error> out;
  for (const auto& p : prepared.problems) {
    out.push_back(Error(code_of(p.kind), host_name, p.cause).with_hint(p.hint).with_id(id_of_problem(p.kind)));
  }
  return out;
}

std::size_t output_credit(std::size_t n_workers) {
  return std::clamp<std::size_t>(kOutputBudget / (2 * n_workers), 16u << 10, 512u << 10);
}

std::vector<control::Spawn> spawn_orders(const JobOptions& options, const StartPlan& plan, control::WindowSize window) {
  std::vector<control::Spawn> orders(plan.host_names.size());
  const auto n_workers = static_cast<std::size_t>(plan.placement.size);
  const std::size_t credit = output_credit(n_workers);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    orders[i].pty = options.pty;
    orders[i].window = window;
    orders[i].umask = options.umask;
    orders[i].handout = rendezvous::encode_handout(plan.handouts[i]);
    orders[i].output_credit = static_cast<std::uint32_t>(credit);
  }
  for (const auto& place : plan.placement.ranks) {
    control::WorkerSpec spec;
    spec.rank = static_cast<std::uint32_t>(place.rank);
    spec.local_rank = static_cast<std::uint32_t>(place.local_rank);
    spec.wants_stdin = options.stdin_mode == StdinMode::kAll ||
                       (options.stdin_mode == StdinMode::kRank && options.stdin_rank == place.rank);
    spec.environment = environment_of(place, options, plan);
    orders[static_cast<std::size_t>(place.host)].workers.push_back(std::move(spec));
  }
  return orders;
}

std::vector<ThreadsOfHost> threads_of(const JobOptions& options, const StartPlan& plan) {
  std::vector<ThreadsOfHost> out;
  const auto add = [&](std::size_t host, int n_workers, int bound) {
    const int n = threads_of_worker(plan.n_cpus[host], n_workers, options.env, options.own_env, bound);
    out.push_back({plan.host_names[host], plan.n_cpus[host], n_workers, n, bound > 0});
  };
  for (const auto& place : plan.placement.ranks) {
    const auto* binding = plan.binding_of(place);
    if (binding == nullptr) continue;
    add(static_cast<std::size_t>(place.host), place.local_size, static_cast<int>(binding->threads));
  }
  if (!out.empty()) return out;
  for (std::size_t i = 0; i < plan.host_names.size(); ++i) add(i, plan.placement.local_sizes[i], 0);
  return out;
}

}  // namespace drun::launcher
