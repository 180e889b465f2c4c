// Names and descriptions of signals. Pure.
#pragma once

#include <string>
#include <string_view>

namespace drun::launcher {

// The causes of a worker's end in messages. libdrun repeats them to the other ranks, where reports_peer_loss() finds
// them.
inline constexpr std::string_view kKilledBy = "killed by ", kExitedWithStatus = "exited with status ";

// "killed by SIGSEGV (segmentation fault), core dumped", "exited with status 3". `wait_status`: as from waitpid.
std::string end_text(int wait_status);
// "SIGTERM"; "signal 40" if it has no name.
std::string signal_name(int number);
// "SIGTERM (terminated)".
std::string signal_text(int number);

}  // namespace drun::launcher
