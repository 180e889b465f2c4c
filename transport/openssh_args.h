// The command lines of OpenSSH's client for one host. Pure.
#pragma once

#include <string>
#include <vector>

#include "transport/ssh_config.h"

namespace drun::transport {

// Batch mode, no forwarding, no terminal, no connection sharing. ssh reads its config itself, so only values of drun's
// options or of the host item become options here.
std::vector<std::string> openssh_argv(const SshTarget& target, const std::string& config_file,
                                      const std::string& command, int connect_timeout_s);

// The host as the user named it: `me@host1`.
std::string typed_host(const SshTarget& target);

// For hints: how a user logs in as drun does, `ssh -p 12345 me@host1`. `options`: more of them, such as
// "-o StrictHostKeyChecking=ask".
std::string typed_ssh(const SshTarget& target, const std::string& options = {});

}  // namespace drun::transport
