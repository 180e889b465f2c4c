// Resolves how to connect to one host, from ssh config, options and the host item. Tests compare it with `ssh -G`.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "transport/jump_host.h"

namespace drun::transport {

enum class HostKeyPolicy {
  kAcceptNew,  // also when StrictHostKeyChecking is unset: unknown keys are stored, and the fingerprint printed
  kStrict,     // yes and ask: unknown keys are refused, with a command to type
  kOff,        // no, off: unknown keys are stored; a changed key is still refused, where OpenSSH only warns
};

// Everything needed to open one ssh connection. All paths are expanded (~, %d, %h, ...).
struct SshTarget {
  std::string alias;      // as typed
  std::string host_name;  // HostName, or the alias
  std::string user;
  int port = 22;
  bool user_or_port_set = false;  // by an option, the host item or ssh config; if so, never "local" by address
  std::vector<std::string> identity_files;  // in order; missing ones are skipped unless set by -i
  bool identity_by_option = false;
  bool user_by_item = false;    // "user@host": overrides ssh config, so OpenSSH's client gets -l
  bool port_by_option = false;  // -p or the host item's port, likewise
  std::string config_file;      // -F as given, for OpenSSH's client
  bool identities_only = false;
  std::string identity_agent;  // socket path, "none", or "" = $SSH_AUTH_SOCK
  std::string proxy_command;   // "" or "none" = none; tokens expanded
  std::string proxy_jump;      // as in the config; "" or "none" = none
  // "c" of "a,b,c", which connects to the target, and "a,b", through which c is reached; tokens expanded.
  JumpHost last_jump;
  std::string first_jumps;
  HostKeyPolicy host_keys = HostKeyPolicy::kAcceptNew;
  HostKeyPolicy jump_host_keys = HostKeyPolicy::kAcceptNew;  // of last_jump, by its own lines
  std::vector<std::string> user_known_hosts;
  std::vector<std::string> global_known_hosts;
  std::string host_key_alias;
  bool hash_known_hosts = false;
  std::string address_family;  // any, inet, inet6
  std::string bind_address;
  std::string ciphers, macs, kex_algorithms, host_key_algorithms;  // "" = default
  std::string key_algorithms;                                      // of the user's keys, likewise
  int min_rsa_bits = 0;       // RequiredRSASize: of the host's keys and the user's; 0 = default
  bool tries_gssapi = false;  // GSSAPIAuthentication, which libssh's logins here do not try
  bool compression = false;
  std::chrono::seconds connect_timeout{0};  // 0 = drun's own timeout
  // The reason why only OpenSSH's client can reach this host (a keyword that libssh lacks); "" = libssh can.
  std::string needs_openssh;
  bool is_partial = false;  // only OpenSSH can evaluate all lines, so it may have other values than those here
  std::string where;        // Host::where, for messages
};

struct SshOptions {
  int port = 0;               // -p
  std::string identity_file;  // -i
  std::string config_file;    // -F; "none" = read no config; "" = ~/.ssh/config and /etc/ssh/ssh_config
};

// The user who runs this process, from the password database, as in OpenSSH; without an entry from the environment.
struct LocalAccount {
  std::string user;
  std::string home;
};
LocalAccount local_account();

// Reads config files (Include, Host, Match host/originalhost/user/localuser/all/final/canonical; Match exec and others
// set needs_openssh and is_partial). Order of precedence: option, host item, user config, system config, default.
// Errors: Errc::kUsage with file:line.
Result<SshTarget> resolve_ssh_target(const Host& host, const SshOptions& options);

// Checks the file of -i before any connection: kUsage if it can't be read.
Result<void> check_identity_file(const std::string& path);

}  // namespace drun::transport
