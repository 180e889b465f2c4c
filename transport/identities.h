// Private key files, each read and parsed once for all hosts.
#pragma once

#include <libssh/libssh.h>

#include <map>
#include <memory>
#include <string>

namespace drun::transport {

// One IdentityFile: either `key` can sign, or `problem` says why not. Loading never asks for a passphrase.
struct Identity {
  std::string path;
  std::shared_ptr<ssh_key_struct> key;  // the private key, or null
  std::string public_base64;            // the public half, if known, even without a usable private half
  std::string problem;                  // "" with a key; "missing", "encrypted, and not in ssh-agent", ...
};

class IdentityStore {
 public:
  const Identity& get(const std::string& path);

 private:
  std::map<std::string, Identity> identities_;
};

}  // namespace drun::transport
