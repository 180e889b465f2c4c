// The command that no program has the name of, but that a shell would understand. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun::agent {

// The first word of a line: "./train" of "./train --lr 1".
std::string first_word(std::string_view line);

// What to type in place of `argv`, whose first item is no program: `cd`, `source`, `NAME=VALUE`, a whole line as one
// word.
// "" = nothing that a shell knows. `is_program`: first_word(argv[0]) is one, so that argv[0] is not a path with a
// space.
std::string hint_for_shell_word(const std::vector<std::string>& argv, bool is_program);

}  // namespace drun::agent
