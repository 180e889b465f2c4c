// Names and descriptions of signals. Pure.
#pragma once

#include <string>

namespace drun::launcher {

// "SIGTERM"; "signal 40" if it has no name.
std::string signal_name(int number);
// "SIGTERM (terminated)".
std::string signal_text(int number);

}  // namespace drun::launcher
