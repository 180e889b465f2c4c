// A Channel over a child process: OpenSSH's client, a --launch-agent hook, or the agent itself on this host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/child_process.h"
#include "transport/transport.h"

namespace drun::transport {

// Starts argv[0] (searched in PATH if it has no slash) in a process group of its own, so that Ctrl-C at the terminal
// does not reach it. Its stdin, stdout and stderr are pipes; it inherits no other descriptor, no blocked signal and no
// signal handler. A failed exec is an error here, not an exit status later. `ending` is for close().
Result<std::unique_ptr<Channel>> spawn_child_channel(asio::io_context& io, const std::vector<std::string>& argv,
                                                     ChildProcess::Ending ending = {});

}  // namespace drun::transport
