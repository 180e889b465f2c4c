// Hints for a command that names no program but that a shell would understand. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun::agent {

// The first word of a line: "./train" in "./train --lr 1".
std::string first_word(std::string_view line);

// The command to type instead of `argv`, whose first item is not a program: `cd`, `source`, `NAME=VALUE`, or a whole
// line as one word. "" = a shell does not know it either. `is_program`: first_word(argv[0]) is a program, so argv[0] is
// a line rather than a path with a space.
std::string hint_for_shell_word(const std::vector<std::string>& argv, bool is_program);

}  // namespace drun::agent
