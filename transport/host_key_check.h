// Verifies that a host is the one it claims to be: drun's policy over known_hosts.
#pragma once

#include <libssh/libssh.h>

#include <map>
#include <string>
#include <vector>

#include "base/asio.h"
#include "transport/known_host_files.h"
#include "transport/known_hosts.h"
#include "transport/ssh_config.h"
#include "transport/transport.h"

namespace drun::transport {

// One per transport. Keys that could not be stored in a file are kept in memory for the run.
class HostKeyCheck {
 public:
  explicit HostKeyCheck(Notice notice) : notice_(std::move(notice)) {}

  // A host's keys in the files, read before it is connected.
  struct Known {
    std::vector<KnownKey> keys;
    bool has_authority() const;
  };
  Known known(const SshTarget& target);
  // Key types in order of preference, known ones first, as in OpenSSH.
  static std::string algorithms(const SshTarget& target, const Known& known);

  // Called after the handshake. Errors are kUnreachable, "host key: ...", with a hint to type.
  Task<Result<void>> check(ssh_session session, const SshTarget& target);

 private:
  Task<Result<void>> accept_new(const SshTarget& target, std::string name, HostKey key, std::string fingerprint);

  Notice notice_;
  KnownHostFiles files_;
  std::multimap<std::string, HostKey> in_memory_;  // by name and by the way to it
};

}  // namespace drun::transport
