// known_hosts files as OpenSSH reads and writes them. No policy here: see host_key_check.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/asio.h"
#include "base/error.h"

namespace drun::transport {

// A public host key: its type as in the files ("ssh-ed25519") and its blob in base64.
struct HostKey {
  HostKey() = default;
  HostKey(std::string key_type, std::string key_base64) : type(std::move(key_type)), base64(std::move(key_base64)) {}
  std::string type;
  std::string base64;
  bool operator==(const HostKey&) const = default;
};

struct KnownKey {
  HostKey key;
  bool revoked = false;     // @revoked
  bool authority = false;   // @cert-authority
  bool plain_name = false;  // found under the name without the port: may be trusted, but never "has changed"
  std::string file;
  int line = 0;
};

// The name under which a host's keys are kept: "[host]:port", or "host" for port 22; an alias is used without port.
std::string known_hosts_name(std::string_view host, int port, std::string_view alias);

// Keys for `name`, and for `plain_name` too if it is not empty. Malformed lines are skipped, as OpenSSH does.
std::vector<KnownKey> find_known_keys(std::string_view text, const std::string& file, const std::string& name,
                                      const std::string& plain_name);
// Keys in all of the files. A file that can't be read is skipped.
std::vector<KnownKey> find_known_keys(const std::vector<std::string>& files, const std::string& name,
                                      const std::string& plain_name);

enum class Stored { kAdded, kAlreadyThere };
// Appends a line under a lock on the file, unless it already has the key. Creates ~/.ssh (0700) and the file
// (0600). Waits up to 2 s for the lock. An error leaves the file as it was.
Task<Result<Stored>> store_host_key(std::string file, std::string name, HostKey key, bool hashed);

// "|1|salt|hash" for a name, as HashKnownHosts writes it. `salt`: 20 bytes.
std::string hashed_name(std::string_view salt, std::string_view name);

}  // namespace drun::transport
