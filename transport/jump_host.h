// A host of ProxyJump, through which another one is reached.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace drun::transport {

struct JumpHost {
  std::string user;  // "" = as the lines for the jump host say
  std::string host;  // without brackets
  std::string port;  // a number or the name of a service; "" = as the lines for the jump host say
  std::string uri;   // as written, if it is an ssh:// address: ssh decodes what it escapes
};

// Takes "[user@]host[:port]" apart as OpenSSH does: the user ends at the last "@", and an IPv6 address with a port is
// in brackets. Nothing if OpenSSH would refuse it.
std::optional<JumpHost> parse_jump_host(std::string_view text);

}  // namespace drun::transport
