// Settings that libssh does not support, so that OpenSSH's client is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/ssh_config.h"
#include "transport/ssh_config_parser.h"

namespace drun::transport {

// True if OpenSSH may look for the lines of another name than the one that was typed: CanonicalizeHostname.
bool canonicalizes(const SshConfigValues& values);
// The first keyword that changes the connection and that libssh does not support, with its file:line; "" = none.
std::string beyond_libssh(const SshConfigValues& values);
// A certificate beside an identity file, or a security key that is named explicitly; "" = none. Reads the files.
std::string identity_beyond_libssh(const SshTarget& target);

// "90", "1m30s", "2h" in seconds, by sshd_config(5), TIME FORMATS. Nothing if malformed.
std::optional<std::int64_t> parse_ssh_time(std::string_view text);

}  // namespace drun::transport
