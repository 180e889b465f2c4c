// Recognizes hosts of the list that are this machine. Pure, except own_identity().
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

// True for `localhost`, a loopback address or our own host name (unless another user is requested), and for one of our
// own addresses if neither option, host item nor ssh config sets a user or port. A container with host networking has
// our addresses but is another host: its item has a port.
bool is_local(const Host& host, const transport::SshTarget& target, const OwnIdentity& own);

}  // namespace drun::launcher
