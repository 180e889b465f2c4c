// Discovery of the job: reads a worker's environment and joins the job.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "rendezvous/handshake.h"
#include "runtime/src/failure.h"
#include "runtime/src/job_context.h"

namespace drun::runtime {

using GetEnv = std::function<const char*(const char*)>;

// The job as the environment describes it. Pure, given `get_env`.
struct Surroundings {
  enum class Kind {
    kAlone,  // not started by drun: a job of size 1
    kAgent,  // the agent's socket provides the key
    kKey,    // the worker is in a container: it has the key itself, and no shared memory
  };
  Kind kind = Kind::kAlone;
  int rank = 0;
  std::string agent_socket;
  rendezvous::JobKey key{};
  bool has_key = false;  // kAgent: the key to fall back on when the socket can't be reached
  std::string rendezvous_address;
  int rendezvous_port = 0;
  bool use_memory = true;                       // $DRUN_SHARED_MEMORY is not 0
  int n_streams = 1;                            // $DRUN_STREAMS
  std::optional<AllreduceAlgorithm> allreduce;  // $DRUN_TEST_ALLREDUCE
  std::string data_address;  // $DRUN_DATA_ADDRESS; empty: the local address of the route to the rendezvous
  bool is_solo = false;      // $DRUN_SOLO is 1: the process is meant to run alone
};
Outcome<Surroundings> read_surroundings(const GetEnv& get_env);

// The pid of the nearest drun-agent among the ancestors of this process; 0 if there is none or none is visible. `proc`
// is "/proc".
pid_t agent_above(const std::string& proc);

// Joins the job that the surroundings name, or creates a job of this process alone. The latter fails below drun unless
// is_solo is set, because the process would be one of several that don't know of each other. `timeouts.init` bounds the
// call.
Outcome<JobContext> join_world(const Surroundings& surroundings, const Timeouts& timeouts);

}  // namespace drun::runtime
