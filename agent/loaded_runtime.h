// What a program that drun did not see into before its start turns out to be: a Python that uses MPI, say. The texts of
// /proc/PID/maps and environ tell. Pure.
#pragma once

#include <string>
#include <string_view>

namespace drun::agent {

struct LoadedRuntime {
  std::string mpi;  // the library's name, "libmpi.so.40"; "" = none
  bool tensorflow = false;
  bool libdrun = false;
};

// `maps`: as /proc/PID/maps has it.
LoadedRuntime loaded_runtime(std::string_view maps);

// What to tell the user of a process of a job of several workers: that each of them is a job of its own, and what to
// do. "" = nothing. `program`: its name. `environment`: as it was when it started, names and values ended by NUL; a
// process that mpirun has started, below drun, is one of several. `settled`: it has had time to load all that it will.
std::string alone_warning(const LoadedRuntime& runtime, const std::string& program, std::string_view environment,
                          bool settled);

}  // namespace drun::agent
