// The environment of each worker. Pure: the caller passes all inputs. The rules and their reasons are in
// docs/environment.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/plan/placement.h"

namespace drun::launcher {

using Environment = std::map<std::string, std::string>;  // any bytes but NUL; names without '='

// The user's -x, --env-file and --env options.
struct EnvRequest {
  bool inherit = true;               // --env none: false
  std::vector<std::string> exports;  // -x words as typed: NAME, NAME=V, 'GLOB*'
  Environment file;                  // from --env-file
  std::string compat_folder;         // --compat: the first folder of the workers' PYTHONPATH; "" = none
  bool real_horovod = false;         // --compat real-horovod: drun serves the rendezvous of an installed Horovod
};

// Parses the text of an env file: NAME=VALUE lines, # comments, blank lines, optional "export ". Errors name
// file:line:column.
Result<Environment> parse_env_file(std::string_view text, const std::string& file);

// Checks -x words: an unset NAME is an error with a hint. A GLOB* that matches nothing is not an error: the caller
// warns.
Result<void> check_exports(const EnvRequest& request, const Environment& own);

// The part that all workers of one host share: first the variables of drun's environment `own` that are forwarded by
// default (see EnvClass; fewer for another host), then the env file, then -x. Names of EnvClass::kAssigned are always
// left out. PYTHONUNBUFFERED=1 unless set. With --compat, its folder comes first in PYTHONPATH.
Environment base_environment(const Environment& own, const EnvRequest& request, bool other_host);

// Removes COLUMNS and LINES for workers that have a terminal of their own (--pty): drun's values would differ from the
// size of that terminal, and would not follow it. They stay if the user set them.
void forget_terminal_size(Environment& environment, const Environment& own, const EnvRequest& request);

// True if the user set this name by -x or --env-file: then it wins over the value that drun detects.
bool set_by_user(const EnvRequest& request, const Environment& own, const std::string& name);

// The last -x word that gives the variable a value, or null. Valid as long as `request`.
const std::string* export_of(const EnvRequest& request, const Environment& own, const std::string& name);

// The way of a host's workers to Horovod's own rendezvous.
struct HorovodRoute {
  std::string host_name;  // rendezvous::horovod_host_names()
  std::string address;    // with the token: rendezvous::horovod_rendezvous_address()
  int port = 0;
};

struct RankEnvInput {
  RankPlace place;
  int size = 0;
  int n_hosts = 0;
  std::string master_addr;
  int master_port = 0;
  std::string job_id;
  std::string rendezvous;                    // host:port, for display only; the key is never in the environment
  std::vector<std::string> nccl_interfaces;  // exact names of the chosen NICs on this rank's host; may be empty
  std::string ip_interface;                  // the first of them, for GLOO and TP
  HorovodRoute horovod;                      // with EnvRequest::real_horovod
  int n_cpus = 0;                            // CPUs that the workers of this host may use at a time; 0: not known
  int bound_threads = 0;                     // control::Binding::threads of this worker; 0: not bound
};

// OMP_NUM_THREADS of each worker of a host that several workers share: without it each would compute on all processors.
// Returns 0 if drun does not set it, because the worker has the processors for itself or the user has set it. `bound`:
// for a worker that is bound to CPUs, the number of threads that these have room for; it replaces an even share.
int threads_of_worker(int n_cpus, int local_size, const EnvRequest& request, const Environment& own, int bound = 0);

// For display: "OMP_NUM_THREADS=4: 2 workers share the 8 processors of node1", or a text for several hosts at once.
// Empty if drun sets it on no host.
struct ThreadsOfHost {
  std::string host;
  int n_cpus = 0, n_workers = 0;
  int threads = 0;  // threads_of_worker()
  bool is_bound = false;
};
std::string threads_in_short(const std::vector<ThreadsOfHost>& hosts);

// The variables that drun itself sets for one rank (RANK ... DRUN_*, MASTER_*, *_SOCKET_IFNAME). The agent adds
// DRUN_AGENT. A name that the user set by -x is left out of the *_IFNAME and MASTER_* part, never of the rank part.
// With --compat also HOROVOD_RANK and the like, which scripts and Horovod's own tests read; with real_horovod all that
// horovodrun sets, of which -x wins over the variables about the network and the controller.
Environment rank_environment(const RankEnvInput& in, const EnvRequest& request, const Environment& own);

}  // namespace drun::launcher
