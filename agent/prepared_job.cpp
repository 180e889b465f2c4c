#include "agent/prepared_job.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "agent/command_check.h"
#include "agent/gpu_nodes.h"
#include "agent/usable_cpus.h"
#include "base/text.h"
#include "base/units.h"

namespace drun::agent {

namespace {

void add_host_environment(control::Prepare& job) {
  for (const char* name : control::kLoginVariables) {
    if (const char* value = std::getenv(name)) job.environment.emplace(name, value);
  }
  job.environment.emplace("PWD", job.working_directory);
}

}  // namespace

PreparedJob prepare_job(control::Prepare order) {
  PreparedJob job;
  job.order = std::move(order);
  add_host_environment(job.order);
  return job;
}

Task<void> find_command(PreparedJob& job, ForkedCalls& calls, control::Prepared& reply) {
  const ForkedFunction check = [&job](const ReportStep& report) { return encode(check_command(job.order, report)); };
  const std::chrono::milliseconds limit(job.order.time_ms);
  const ForkedResult result = co_await calls.call(check, Clock::now() + limit);
  auto checked = decode_command_check(result.value.value_or(""));
  if (checked) {
    job.command = std::move(checked->command);
    for (auto& problem : checked->problems) reply.problems.push_back(std::move(problem));
    co_return;
  }
  control::Problem problem;
  problem.kind = control::ProblemKind::kNoAnswer;
  problem.cause = result.late ? "'" + result.step + "': its file system has given no answer within " + limit_text(limit)
                              : "the check of the command failed: " + result.problem;
  if (result.late) problem.hint = "is it a network file system whose server is down? on that host: df " + result.step;
  reply.problems.push_back(std::move(problem));
}

void reserve_master_port(PreparedJob& job, control::Prepared& reply) {
  if (job.order.master_address.empty()) return;
  auto reserved = reserve_port(job.order.master_address);
  if (reserved) {
    job.master_port = std::move(*reserved);
    reply.master_port = job.master_port.port;
    return;
  }
  control::Problem p;
  p.cause = "no free port for MASTER_PORT: " + reserved.error().message();
  reply.problems.push_back(std::move(p));
}

void check_gpus(const PreparedJob& job, control::Prepared& reply) {
  const auto& named = job.order.gpus;
  if (std::all_of(named.begin(), named.end(), [](const auto& name) { return name.empty(); })) return;
  const auto gpus = read_gpu_nodes("");
  const auto missing = missing_gpus(named, gpus);
  if (missing.empty()) return;
  control::Problem p;
  p.kind = control::ProblemKind::kGpus;
  p.cause = "gpus=" + join(missing, ",") + ": the host has " + plural(gpus.size(), "GPU") + ", " +
            (gpus.size() == 1 ? "number 0" : "numbers 0 to " + std::to_string(gpus.size() - 1));
  p.hint = "on that host: nvidia-smi -L";
  reply.problems.push_back(std::move(p));
}

void choose_cpus(PreparedJob& job, const CgroupFiles& cgroup_files, control::Prepared& reply) {
  const control::Prepare& order = job.order;
  if (order.bind_to == control::BindTo::kNone || order.gpus.empty()) return;
  const auto usable = cpus_of_affinity();
  BindingRequest request;
  request.to = order.bind_to;
  request.n_workers = static_cast<int>(order.gpus.size());
  request.shares_cores = order.shares_cores;
  if (request.to == control::BindTo::kNuma) {
    request.gpu_nodes = nodes_of_workers(order.gpus, read_gpu_nodes(""), order.environment);
  }
  auto bound = bind_workers(request, read_cores("", usable), usable, cpu_quota(cgroup_files));
  if (!bound) {
    control::Problem p;
    p.kind = control::ProblemKind::kBinding;
    p.cause = bound.error().cause;
    p.hint = bound.error().hint;
    reply.problems.push_back(std::move(p));
    return;
  }
  job.cpus = std::move(*bound);
  for (const auto& worker : job.cpus) {
    control::Binding binding;
    binding.cpus = ranges_text(worker.cpus);
    binding.place = worker.place;
    binding.threads = static_cast<std::uint32_t>(worker.threads);
    reply.bindings.push_back(std::move(binding));
  }
}

WorkerStart worker_start(const PreparedJob& job, const control::Spawn& order, const control::WorkerSpec& spec) {
  WorkerStart start;
  start.file = job.command;
  start.directory = job.order.working_directory;
  start.argv = job.order.argv;
  start.environment = job.order.environment;
  for (const auto& [name, value] : spec.environment) start.environment[name] = value;
  start.wants_stdin = spec.wants_stdin;
  start.pty = order.pty;
  start.window = {order.window.columns, order.window.rows};
  start.umask = static_cast<mode_t>(order.umask & 0777);
  if (spec.local_rank < job.cpus.size()) start.cpus = job.cpus[spec.local_rank].cpus;
  return start;
}

}  // namespace drun::agent
