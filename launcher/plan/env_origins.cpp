#include "launcher/plan/env_origins.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "control/messages.h"
#include "launcher/plan/env_names.h"

namespace drun::launcher {

namespace {

constexpr const char* kByDrun = "drun";
constexpr const char* kInherited = "environment of drun";
constexpr const char* kScheduler = "batch scheduler";

struct Reason {
  std::string_view pattern;  // of glob_match()
  std::string_view text;
};

// For the variables that drun sets.
constexpr Reason kReasons[] = {
    {"LOCAL_RANK", "number of the worker on its host"},
    {"DRUN_LOCAL_RANK", "number of the worker on its host"},
    {"*WORLD_SIZE", "number of workers, of those of its host, or of hosts"},
    {"*LOCAL_SIZE", "workers on its host"},
    {"*CROSS_RANK", "number of the host among those that have this local rank"},
    {"*CROSS_SIZE", "hosts that have this local rank"},
    {"NODE_RANK", "number of the host among the hosts that have a worker"},
    {"GROUP_RANK", "number of the host among the hosts that have a worker"},
    {"ROLE_*", "torchrun's roles, of which drun has one"},
    {"*RANK", "number of the worker in the job"},
    {"DRUN_SIZE", "workers in the job"},
    {"HOROVOD_HOSTNAME", "--compat real-horovod: this host, for libhorovod"},
    {"HOROVOD_GLOO_IFACE", "--compat real-horovod: the interface that drun chooses on this host"},
    {"HOROVOD_GLOO_RENDEZVOUS_*", "--compat real-horovod: Horovod's rendezvous, which drun serves"},
    {"HOROVOD_C*", "--compat real-horovod: the ranks find each other by Gloo"},
    {"HOROVOD_*", "--compat"},
    {"MASTER_ADDR", "address of rank 0's host on the network that drun chooses"},
    {"MASTER_PORT", "a port that is free on rank 0's host"},
    {"JAX_COORDINATOR_ADDRESS", "MASTER_ADDR and MASTER_PORT in one"},
    {"*_SOCKET_IFNAME", "interfaces that drun chooses on this host; not set if it chooses none"},
    {"NCCL_RAS_ADDR", "NCCL's RAS service, with a port for each job"},
    {"OMP_NUM_THREADS", "processors of the host divided by its workers, or those that the worker is bound to"},
    {"TORCHELASTIC_ERROR_FILE", "torch writes an exception there, for drun's report"},
    {"TORCHELASTIC_*", "by them Lightning and others recognize a launcher"},
    {"CUDA_VISIBLE_DEVICES", "the GPU that the list of hosts gives this worker"},
    {"CUDA_DEVICE_ORDER", "the numbers of GPUs are those of nvidia-smi"},
    {"DRUN_JOB_ID", "the same for all workers of a job"},
    {"DRUN_RENDEZVOUS", "the rendezvous server, for display"},
    {"DRUN_AGENT", "socket of the host's agent, which sends the key"},
    {"DRUN_KEY", "the job's key, because -x DRUN_KEY asks for it"},
    {"DRUN_DATA_ADDRESS", "this host's address, with -x DRUN_KEY"},
    {"PYTHONUNBUFFERED", "Python's output is shown when it is written"},
    {"PYTHONPATH", "--compat: drun's package of that name comes first"},
};

constexpr std::string_view kSchedulerNames[] = {"SLURM_*", "SLURMD_*", "SBATCH_*", "PBS_*", "LSB_*",
                                                "LSF_*",   "SGE_*",    "OAR_*",    "CSM_*"};

// In lower case.
constexpr std::string_view kSecretNames[] = {"drun_key",     "*token*",      "*secret*",   "*password*",
                                             "*passwd*",     "*_key",        "*_api_key*", "*apikey",
                                             "*access_key*", "*credential*", "*cookie*"};

template <typename Patterns>
bool matches(const Patterns& patterns, std::string_view name) {
  return std::any_of(std::begin(patterns), std::end(patterns),
                     [name](std::string_view pattern) { return glob_match(pattern, name); });
}

std::string reason_of(const std::string& name) {
  const auto found = std::find_if(std::begin(kReasons), std::end(kReasons),
                                  [&name](const Reason& reason) { return glob_match(reason.pattern, name); });
  return found == std::end(kReasons) ? "" : std::string(found->text);
}

// The variables that drun sets for the rank, with made-up values in place of those that only the start finds out.
Environment with_unknowns(const EnvQuestion& question, const EnvRequest& request, const Environment& own, int variant) {
  const std::string word = "unknown" + std::to_string(variant);
  RankEnvInput in;
  in.place = question.place;
  in.size = question.size;
  in.n_hosts = question.n_hosts;
  in.master_addr = word;
  in.master_port = variant;
  in.job_id = word;
  in.rendezvous = word;
  in.nccl_interfaces = {word};
  in.ip_interface = word;
  in.horovod = {word, word, variant};
  in.n_cpus = 1000000 * variant;
  in.bound_threads = question.is_bound ? variant : 0;
  return rank_environment(in, request, own);
}

using Variables = std::map<std::string, EnvVariable>;

void set(Variables& out, const std::string& name, std::optional<std::string> value, std::string source,
         std::string reason) {
  out[name] = {name, std::move(value), std::move(source), std::move(reason)};
}

// Everything that drun sends as the environment of the host.
void add_base(const EnvQuestion& question, const EnvRequest& request, const Environment& own, Variables& out) {
  Environment base = base_environment(own, request, !question.is_head);
  if (question.has_terminal) forget_terminal_size(base, own, request);
  for (const auto& [name, value] : base) {
    if (name == "PYTHONPATH" && !request.compat_folder.empty()) {
      set(out, name, value, kByDrun, reason_of(name));
    } else if (const std::string* word = export_of(request, own, name)) {
      const bool is_given = word->find('=') != std::string::npos;
      set(out, name, value, question.exports_source,
          "-x " + shell_quote(word->substr(0, word->find('='))) + (is_given ? "=VALUE" : ": drun's own value"));
    } else if (request.file.count(name) > 0) {
      set(out, name, value, question.env_file_source, "a line of the file");
    } else if (request.inherit && own.count(name) > 0) {
      const bool is_of_job = matches(kSchedulerNames, name);
      set(out, name, value, is_of_job ? kScheduler : kInherited,
          is_of_job ? "describes the whole batch job; drun passes it on"
                    : "passed on to the workers, but not with --env none");
    } else {
      set(out, name, value, kByDrun, reason_of(name));
    }
  }
}

// The variables that the agent adds: add_host_environment() in agent/prepared_job.cpp and JobResources::add_to().
void add_agents(const EnvQuestion& question, const Environment& own, Variables& out) {
  const std::string agent = "drun-agent on " + question.host;
  for (const char* name : control::kLoginVariables) {
    if (out.count(name) > 0) continue;
    const auto mine = own.find(name);
    if (question.is_head && mine == own.end()) continue;
    const bool is_known = question.is_head;
    set(out, name, is_known ? std::optional(mine->second) : std::nullopt, agent,
        is_known ? "of the login on this host" : "of the login on that host; not set if the login has none");
  }
  if (out.count("PWD") == 0) set(out, "PWD", question.working_directory, agent, "the working directory: --wdir");
  if (out.count("TORCHELASTIC_ERROR_FILE") == 0) {
    set(out, "TORCHELASTIC_ERROR_FILE", std::nullopt, agent, reason_of("TORCHELASTIC_ERROR_FILE"));
  }
  set(out, "DRUN_AGENT", std::nullopt, agent, reason_of("DRUN_AGENT"));
}

}  // namespace

std::vector<EnvVariable> explain_environment(const EnvQuestion& question, const EnvRequest& request,
                                             const Environment& own) {
  Variables variables;
  add_base(question, request, own, variables);
  add_agents(question, own, variables);
  const Environment one = with_unknowns(question, request, own, 1), two = with_unknowns(question, request, own, 2);
  for (const auto& [name, value] : one) {
    const bool is_known = two.at(name) == value;
    set(variables, name, is_known ? std::optional(value) : std::nullopt, kByDrun, reason_of(name));
  }
  if (std::find(request.exports.begin(), request.exports.end(), "DRUN_KEY") != request.exports.end()) {
    set(variables, "DRUN_KEY", std::nullopt, kByDrun, reason_of("DRUN_KEY"));
    if (!set_by_user(request, own, "DRUN_DATA_ADDRESS")) {
      set(variables, "DRUN_DATA_ADDRESS", std::nullopt, kByDrun, reason_of("DRUN_DATA_ADDRESS"));
    }
  }
  std::vector<EnvVariable> out;
  out.reserve(variables.size());
  for (auto& [name, variable] : variables) out.push_back(std::move(variable));
  return out;
}

bool is_secret(const std::string& name, const std::string& value) {
  if (matches(kSecretNames, lower(name))) return true;
  // "https://user:password@host/"
  const auto scheme = value.find("://");
  if (scheme == std::string::npos) return false;
  const std::string_view rest = std::string_view(value).substr(scheme + 3);
  const auto at = rest.substr(0, rest.find('/')).find('@');
  return at != std::string_view::npos && rest.substr(0, at).find(':') != std::string_view::npos;
}

}  // namespace drun::launcher
