// Classes of environment variables, by name, which decide whether a variable is passed to the workers. The reasons are
// in docs/environment.md.
#pragma once

#include <string_view>

namespace drun::launcher {

enum class EnvClass {
  kOrdinary,   // goes to every worker
  kAssigned,   // drun sets it for each worker; a value of the user or of an outer job never replaces it
  kLaunch,     // left by an outer job of Slurm, MPI, torch, horovod or drun: removed, only -x NAME restores it
  kHostOwned,  // describes the login or machine it comes from: -x passes it on, a bare -x '*' does not
  kDevice,     // names devices of this host: like kHostOwned, but only for other hosts
};

EnvClass classify(std::string_view name);

}  // namespace drun::launcher
