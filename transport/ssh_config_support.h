// Where libssh's abilities end and only OpenSSH's own client will do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/ssh_config.h"
#include "transport/ssh_config_parser.h"

namespace drun::transport {

// The first keyword that changes how to connect and that libssh can't do, with its place; "" = none.
std::string beyond_libssh(const SshConfigValues& values);
// Certificates beside identity files, and security keys that are named explicitly. Looks at the files.
std::string identity_beyond_libssh(const SshTarget& target);

// "90", "1m30s", "2h": seconds, as sshd_config(5) TIME FORMATS has it.
std::optional<std::int64_t> parse_ssh_time(std::string_view text);

}  // namespace drun::transport
