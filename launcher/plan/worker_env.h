// The environment of each worker. Pure: what goes in is passed in. The rules and their reasons: docs/environment.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/plan/placement.h"

namespace drun::launcher {

using Environment = std::map<std::string, std::string>;  // any bytes but NUL; names without '='

// What the user asked for by -x, --env-file and --env.
struct EnvRequest {
  bool inherit = true;               // --env none: false
  std::vector<std::string> exports;  // -x words as typed: NAME, NAME=V, 'GLOB*'
  Environment file;                  // from --env-file
};

// `text` of an env file: NAME=VALUE lines, # comments, blank lines, optional "export ". Errors name file:line:column.
Result<Environment> parse_env_file(std::string_view text, const std::string& file);

// Checks -x words: an unset NAME is an error with a hint, a GLOB* that matches nothing is a warning by the caller.
Result<void> check_exports(const EnvRequest& request, const Environment& own);

// The part that all workers of one host share: drun's environment `own` beneath, scrubbed and filtered as the design
// says (what is never forwarded stays out unless asked for by -x; for another host more stays out), then the env
// file, then -x. PYTHONUNBUFFERED=1 unless set.
Environment base_environment(const Environment& own, const EnvRequest& request, bool other_host);

// For workers that have a terminal of their own (--pty): COLUMNS and LINES of drun's would say something else, and
// would not change with it. They stay if the user asked for them.
void forget_terminal_size(Environment& environment, const Environment& own, const EnvRequest& request);

// True if the user set this name by -x or --env-file: then it wins over what drun detects.
bool set_by_user(const EnvRequest& request, const Environment& own, const std::string& name);

struct RankEnvInput {
  RankPlace place;
  int size = 0;
  int n_hosts = 0;
  std::string master_addr;
  int master_port = 0;
  std::string job_id;
  std::string rendezvous;                    // host:port, for people to see; the key is never in the environment
  std::vector<std::string> nccl_interfaces;  // exact names of the chosen NICs on this rank's host; may be empty
  std::string ip_interface;                  // the first of them, for GLOO and TP
  int n_cpus = 0;                            // that the workers of this host may use at a time; 0: not known
  int bound_threads = 0;                     // control::Binding::threads of this worker; 0: not bound
};

// OMP_NUM_THREADS of each of the workers that share a host: without it each computes on all processors. 0: drun leaves
// it alone, since the worker has them for itself, or the user has set it. `bound`: of a worker that is bound to CPUs,
// as many as these have room for; it counts in place of an even share.
int threads_of_worker(int n_cpus, int local_size, const EnvRequest& request, const Environment& own, int bound = 0);

// For people: "OMP_NUM_THREADS=4: 2 workers share the 8 processors of node1", or of several hosts at once. Empty where
// it is set nowhere.
struct ThreadsOfHost {
  std::string host;
  int n_cpus = 0, n_workers = 0;
  int threads = 0;  // threads_of_worker()
  bool is_bound = false;
};
std::string threads_in_short(const std::vector<ThreadsOfHost>& hosts);

// The names that drun sets itself, for one rank (RANK ... DRUN_*, MASTER_*, *_SOCKET_IFNAME). DRUN_AGENT is added by
// the agent. Names that the user set by -x are left out of the *_IFNAME and MASTER_* part, never of the rank part.
Environment rank_environment(const RankEnvInput& in, const EnvRequest& request, const Environment& own);

}  // namespace drun::launcher
