// Non-blocking sockets used in a blocking way: every call has a deadline, repeats after EINTR and never raises SIGPIPE.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace drun::rendezvous {

using BlockingDeadline = std::chrono::steady_clock::time_point;

// What `events` (poll's) came within the deadline; kTimeout. Time in which this process was stopped does not count.
Result<short> wait_for(int fd, short events, BlockingDeadline deadline);
Result<void> send_all(int fd, std::string_view bytes, BlockingDeadline deadline);
Result<std::string> receive_exactly(int fd, std::size_t n_bytes, BlockingDeadline deadline);  // kClosed at the end
// To an IPv4 or IPv6 address in text (with a zone if need be), never a name: resolving can't be bounded in time.
Result<Fd> connect_tcp(const std::string& address, int port, BlockingDeadline deadline);
// Small messages at once; notices within about 40 s that the other machine is gone. No error for other sockets.
void tune_tcp(int fd);

}  // namespace drun::rendezvous
