#include "transport/host_key_check.h"

#include <algorithm>
#include <memory>

#include "base/error_id.h"
#include "base/text.h"
#include "transport/openssh_args.h"
#include "transport/proxy.h"

namespace drun::transport {
namespace {

const std::vector<std::string> kAlgorithms = {"ssh-ed25519",         "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                              "ecdsa-sha2-nistp521", "rsa-sha2-512",        "rsa-sha2-256"};

std::vector<std::string> algorithms_of(const std::string& key_type) {
  if (key_type == "ssh-rsa") return {"rsa-sha2-512", "rsa-sha2-256"};
  return {key_type};
}

std::string plain_name(const SshTarget& target) {
  return target.port == 22 || !target.host_key_alias.empty() ? "" : known_hosts_name(target.host_name, 22, "");
}

struct ServerKey {
  HostKey key;
  std::string fingerprint;  // "SHA256:..."
};

Result<ServerKey> server_key(ssh_session session) {
  ssh_key raw = nullptr;
  if (ssh_get_server_publickey(session, &raw) != SSH_OK) {
    return fail(Error(Errc::kUnreachable, "host key: the server sent none").with_id(error_id::kHostKey));
  }
  const std::unique_ptr<ssh_key_struct, void (*)(ssh_key)> key(raw, ssh_key_free);
  ServerKey out;
  const bool ecdsa = ssh_key_type(raw) == SSH_KEYTYPE_ECDSA_P256 || ssh_key_type(raw) == SSH_KEYTYPE_ECDSA_P384 ||
                     ssh_key_type(raw) == SSH_KEYTYPE_ECDSA_P521;
  const char* name = ecdsa ? ssh_pki_key_ecdsa_name(raw) : ssh_key_type_to_char(ssh_key_type(raw));
  out.key.type = name != nullptr ? name : "";
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(raw, &text) == SSH_OK && text != nullptr) out.key.base64 = text;
  ssh_string_free_char(text);
  unsigned char* hash = nullptr;
  std::size_t n = 0;
  if (ssh_get_publickey_hash(raw, SSH_PUBLICKEY_HASH_SHA256, &hash, &n) == 0) {
    char* print = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, n);
    if (print != nullptr) out.fingerprint = print;
    ssh_string_free_char(print);
    ssh_clean_pubkey_hash(&hash);
  }
  if (out.key.type.empty() || out.key.base64.empty()) {
    return fail(Error(Errc::kUnreachable, "host key: of a kind that can't be read").with_id(error_id::kHostKey));
  }
  return out;
}

Error refused(const SshTarget& target, const std::string& why, std::string hint) {
  Error error(Errc::kUnreachable, target.alias, "host key: " + why);
  error.id = error_id::kHostKey;
  error.hint = std::move(hint);
  return error;
}

std::string first_file(const SshTarget& target) {
  if (target.user_known_hosts.empty() || target.user_known_hosts.front() == "none") return "/dev/null";
  return target.user_known_hosts.front();
}

// How the user brings the key of an unknown host to drun. ssh-keyscan knows neither proxies nor aliases.
std::string unknown_key_hint(const SshTarget& target) {
  const std::string file = first_file(target);
  if (file == "/dev/null") return "the host's key in a file that UserKnownHostsFile or GlobalKnownHostsFile names";
  if (!target.host_key_alias.empty() || !Proxy::command_for(target).empty()) {
    return typed_ssh(target, "-o StrictHostKeyChecking=ask") + " true";
  }
  const std::string port = target.port == 22 ? "" : "-p " + std::to_string(target.port) + " ";
  return "ssh-keyscan " + port + target.host_name + " >> " + shell_quote(file);
}

// Hosts behind different jump hosts may have the same address.
std::string in_memory_name(const SshTarget& target) {
  return known_hosts_name(target.host_name, target.port, target.host_key_alias) + " " +
         join(Proxy::command_for(target), " ");
}

}  // namespace

bool HostKeyCheck::Known::has_authority() const {
  return std::any_of(keys.begin(), keys.end(), [](const KnownKey& k) { return k.authority; });
}

HostKeyCheck::Known HostKeyCheck::known(const SshTarget& target) {
  std::vector<std::string> files = target.user_known_hosts;
  files.insert(files.end(), target.global_known_hosts.begin(), target.global_known_hosts.end());
  Known out;
  out.keys =
      files_.find(files, known_hosts_name(target.host_name, target.port, target.host_key_alias), plain_name(target));
  return out;
}

std::string HostKeyCheck::algorithms(const SshTarget& target, const Known& known) {
  if (!target.host_key_algorithms.empty()) return target.host_key_algorithms;
  std::vector<std::string> order;
  const auto add = [&order](const std::string& name) {
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  };
  for (const auto& algorithm : kAlgorithms) {
    for (const auto& entry : known.keys) {
      if (entry.revoked || entry.authority) continue;
      const auto names = algorithms_of(entry.key.type);
      if (std::find(names.begin(), names.end(), algorithm) != names.end()) add(algorithm);
    }
  }
  for (const auto& algorithm : kAlgorithms) add(algorithm);
  return join(order, ",");
}

Task<Result<void>> HostKeyCheck::check(ssh_session session, const SshTarget& target) {
  auto server = server_key(session);
  if (!server) co_return fail(std::move(server.error()).with_subject(target.alias));
  const std::string name = known_hosts_name(target.host_name, target.port, target.host_key_alias);
  // Another session of this run, or another program, may have added the key since.
  const Known now_known = known(target);
  const KnownKey* changed = nullptr;
  bool trusted = false;
  for (const auto& entry : now_known.keys) {
    const bool same = entry.key == server->key;
    if (entry.revoked && same) {
      const std::string at = entry.file + ":" + std::to_string(entry.line);
      co_return fail(refused(target, "revoked by " + at, "ask who runs " + target.alias + " for its new key"));
    }
    if (entry.revoked || entry.authority) continue;
    if (same) trusted = true;
    // Any type: a host that presents only a key of another type counts as changed, as in OpenSSH.
    if (!same && !entry.plain_name && changed == nullptr) changed = &entry;
  }
  const auto [first, last] = in_memory_.equal_range(in_memory_name(target));
  for (auto at = first; at != last; ++at) trusted = trusted || at->second == server->key;
  if (trusted) co_return Result<void>{};
  if (first != last) {
    co_return fail(refused(target, "another key than a moment ago",
                           "a name or an address of its own for each machine behind " + target.host_name));
  }
  if (changed != nullptr) {
    std::string why = "has changed: " + server->key.type + " " + server->fingerprint + " is not the one in ";
    why += changed->file + ":" + std::to_string(changed->line);
    why += "; somebody may be listening in, or the host was installed anew";
    std::string hint = "ssh-keygen -R " + shell_quote(name) + " -f " + shell_quote(changed->file);
    co_return fail(refused(target, why, std::move(hint)));
  }
  if (target.host_keys == HostKeyPolicy::kStrict) {
    const std::string why =
        "unknown " + server->key.type + " " + server->fingerprint + ", and StrictHostKeyChecking forbids to accept it";
    co_return fail(refused(target, why, unknown_key_hint(target)));
  }
  co_return co_await accept_new(target, name, server->key, server->fingerprint);
}

Task<Result<void>> HostKeyCheck::accept_new(const SshTarget& target, std::string name, HostKey key,
                                            std::string fingerprint) {
  const std::string file = first_file(target);
  const std::string what = target.alias + ": new host key " + key.type + " " + fingerprint;
  if (file == "/dev/null") {
    in_memory_.emplace(in_memory_name(target), key);
    notice_(what + ", not stored (no UserKnownHostsFile)");
    co_return Result<void>{};
  }
  const auto stored = co_await files_.store(file, name, key, target.hash_known_hosts);
  if (!stored) {
    in_memory_.emplace(in_memory_name(target), key);
    notice_(what + ", good for this run only (" + stored.error().message() + ")");
  } else if (*stored == Stored::kAdded) {
    notice_(what + ", stored in " + file);
  }
  co_return Result<void>{};
}

}  // namespace drun::transport
