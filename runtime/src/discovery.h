// Where the job is: what a worker's environment says, and joining it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "rendezvous/handshake.h"
#include "runtime/src/failure.h"
#include "runtime/src/world.h"

namespace drun::runtime {

using GetEnv = std::function<const char*(const char*)>;

// What the environment says. Pure, given `get_env`.
struct Surroundings {
  enum class Kind {
    kAlone,  // not started by drun: a job of size 1
    kAgent,  // the agent's socket has the key
    kKey,    // a container around the worker: the key itself, no shared memory
  };
  Kind kind = Kind::kAlone;
  int rank = 0;
  std::string agent_socket;
  rendezvous::JobKey key{};
  bool has_key = false;  // kAgent: to fall back on when the socket can't be reached
  std::string rendezvous_address;
  int rendezvous_port = 0;
  bool use_memory = true;                       // $DRUN_SHARED_MEMORY is not 0
  int n_streams = 1;                            // $DRUN_STREAMS
  std::optional<AllreduceAlgorithm> allreduce;  // $DRUN_TEST_ALLREDUCE
  std::string data_address;  // $DRUN_DATA_ADDRESS; empty: the one that the rendezvous is reached from
  bool is_solo = false;      // $DRUN_SOLO is 1: to be alone is what is meant
};
Outcome<Surroundings> read_surroundings(const GetEnv& get_env);

// The nearest agent of drun's among the ancestors of this process; 0: none, or none that can be seen. `proc`: "/proc".
pid_t agent_above(const std::string& proc);

// Joins the job that the surroundings name, or a job of this process alone: not below drun, where it would be one of
// several that know nothing of each other, unless that is meant. `timeouts.init` bounds it.
Outcome<World> join_world(const Surroundings& surroundings, const Timeouts& timeouts);

}  // namespace drun::runtime
