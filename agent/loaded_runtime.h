// Detects what a running program turns out to use that drun could not see before its start, for example a Python
// program that uses MPI. Parses /proc/PID/maps and environ. Pure.
#pragma once

#include <string>
#include <string_view>

namespace drun::agent {

struct LoadedRuntime {
  std::string mpi;  // the library's name, "libmpi.so.40"; "" = none
  bool tensorflow = false;
  bool libdrun = false;
  bool horovod = false;  // Horovod itself, not drun's package of that name
};

// `maps`: the text of /proc/PID/maps.
LoadedRuntime loaded_runtime(std::string_view maps);

// The warning for a process of a job with several workers: each worker is a job of its own, and what to do about it.
// "" = none. `program`: its name. `environment`: its initial environment, names and values ended by NUL; a process
// that mpirun started below drun is one of several. `settled`: the process has had time to load all its libraries.
std::string alone_warning(const LoadedRuntime& runtime, const std::string& program, std::string_view environment,
                          bool settled);

}  // namespace drun::agent
