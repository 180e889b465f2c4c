// Which names of an environment mean what, when it is to be handed to the workers. The reasons: docs/environment.md.
#pragma once

#include <string_view>

namespace drun::launcher {

enum class EnvClass {
  kOrdinary,   // goes to every worker
  kAssigned,   // drun gives each worker its own, and no user's or outer job's value ever takes its place
  kLaunch,     // left by an outer job of Slurm, MPI, torch, horovod or drun: scrubbed, -x NAME alone brings it back
  kHostOwned,  // describes the login or machine it comes from: -x brings it along, a bare -x '*' does not
  kDevice,     // names devices of this host: like kHostOwned, but only towards other hosts
};

EnvClass classify(std::string_view name);

}  // namespace drun::launcher
