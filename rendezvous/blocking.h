// Blocking calls on non-blocking sockets: every call has a deadline, retries after EINTR and never raises SIGPIPE.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace drun::rendezvous {

using BlockingDeadline = std::chrono::steady_clock::time_point;

// Waits for `events`, as in poll(), and returns those that occurred, or kTimeout, or kCanceled if `cancel_fd`, unless
// it is -1, can be read. Time in which this process was stopped does not count: each of these functions adds it to the
// caller's deadline, for the calls that follow.
Result<short> wait_for(int fd, short events, BlockingDeadline& deadline, int cancel_fd = -1);
Result<void> send_all(int fd, std::string_view bytes, BlockingDeadline& deadline);
Result<std::string> receive_exactly(int fd, std::size_t n_bytes, BlockingDeadline& deadline);  // kClosed at EOF
// Connects to an IPv4 or IPv6 address as text, maybe with a zone. Not to a name, whose resolution can't be bounded in
// time.
Result<Fd> connect_tcp(const std::string& address, int port, BlockingDeadline& deadline);
// Makes a TCP socket send small messages at once, and outlive an outage of the network of up to an hour. No error for
// other sockets.
void tune_tcp(int fd);

}  // namespace drun::rendezvous
