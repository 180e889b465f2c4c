// Reads an ELF file's headers: the processor that it is built for, and the libraries that it needs.
#pragma once

#include <string>
#include <vector>

namespace drun::agent {

// A binary for another processor type passes access(X_OK) and fails at exec only. Its type, "aarch64"; "" for this
// host's own, and for what is no ELF file.
std::string foreign_machine(const std::string& path);

// The names that the dynamic linker will look for, DT_NEEDED: "libc.so.6". Of 64-bit files; none of a static one, of a
// script, and of what is broken.
std::vector<std::string> needed_libraries(const std::string& path);

// The one of MPI among them: Open MPI's, MPICH's, Intel's, MVAPICH's or Cray's; "" if there is none.
std::string mpi_library(const std::vector<std::string>& libraries);

}  // namespace drun::agent
