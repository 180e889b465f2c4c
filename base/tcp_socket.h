// Options of TCP sockets. C++17: used by libdrun, too.
#pragma once

#include <chrono>

namespace drun {

// Makes the socket send small messages at once, probe an idle connection from `idle` on, every 5 s, and break it if
// data or probes have had no answer for `user_timeout`. No error for other sockets. To Linux a peer that is alive but
// does not read looks dead.
void tune_tcp(int fd, std::chrono::milliseconds user_timeout, std::chrono::seconds idle = std::chrono::seconds(10));

}  // namespace drun
