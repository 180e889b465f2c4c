// Reads an ELF file's headers: the processor that it is built for, and the libraries that it needs.
#pragma once

#include <string>
#include <vector>

namespace drun::agent {

// The processor type that a binary is built for, "aarch64"; "" if that is this host's own or the file is not ELF. A
// binary for another type passes access(X_OK) and fails only at exec.
std::string foreign_machine(const std::string& path);

// The libraries that the dynamic linker will load (DT_NEEDED): "libc.so.6". For 64-bit little-endian files; empty for
// a static file, a script, or a broken file.
std::vector<std::string> needed_libraries(const std::string& path);

// The MPI library among them: Open MPI's, MPICH's, Intel's, MVAPICH's or Cray's; "" if there is none.
std::string mpi_library(const std::vector<std::string>& libraries);

}  // namespace drun::agent
