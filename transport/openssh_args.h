// The command line of OpenSSH's client for one host. Pure.
#pragma once

#include <string>
#include <vector>

#include "transport/ssh_config.h"

namespace drun::transport {

// Batch mode, no forwarding, no terminal, no connection sharing. ssh reads its config itself, so only values of drun's
// options or of the host item become options here.
std::vector<std::string> openssh_argv(const SshTarget& target, const std::string& config_file,
                                      const std::string& command, int connect_timeout_s);

}  // namespace drun::transport
