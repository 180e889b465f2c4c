// Finds the interpreter of a script. exec fails with "no such file" if the interpreter is missing, although the
// script exists.
#pragma once

#include <string>
#include <string_view>

namespace drun::agent {

// The interpreter named after "#!" in the beginning of a file, as the kernel reads it: up to a space or the end of
// the line, so it includes the CR of a DOS line end. "" if the file is not a script. Pure.
std::string interpreter_in(std::string_view beginning);

// The interpreter of the file at `path`; "" also if the file can't be read.
std::string interpreter_of(const std::string& path);

}  // namespace drun::agent
