// Which hosts of the list are this machine. Pure, but for own_identity().
#pragma once

#include <string>
#include <vector>

#include "base/host.h"
#include "transport/ssh_config.h"

namespace drun::launcher {

struct OwnIdentity {
  std::string host_name;  // uname -n
  std::string user;
  std::vector<std::string> addresses;  // text form, of all interfaces
};

OwnIdentity own_identity();

// Local is `localhost`, a loopback address or our own host name (unless another user is asked for), or one of our own
// addresses with no user and no port set by option, host item or ssh config. A container with host networking has our
// addresses and is another host: there a port is set.
bool is_local(const Host& host, const transport::SshTarget& target, const OwnIdentity& own);

}  // namespace drun::launcher
