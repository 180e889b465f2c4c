// The interpreter of a script: exec fails with "no such file" if that is missing, although the script is there.
#pragma once

#include <string>
#include <string_view>

namespace drun::agent {

// What a file that begins like this names behind "#!", as the kernel reads it: up to a space or the end of the line, so
// with the CR of DOS. "" for what is no script. Pure.
std::string interpreter_in(std::string_view beginning);

// Of the file at `path`; "" also for one that can't be read.
std::string interpreter_of(const std::string& path);

}  // namespace drun::agent
