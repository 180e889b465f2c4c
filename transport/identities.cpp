#include "transport/identities.h"

#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "transport/ssh_config.h"

namespace drun::transport {
namespace {

constexpr std::size_t kMaxKeyFile = 1u << 20;

std::shared_ptr<ssh_key_struct> own(ssh_key key) { return {key, ssh_key_free}; }

// Passphrase callback: called only if a passphrase is needed.
int note_encrypted(const char*, char*, size_t, int, int, void* encrypted) {
  *static_cast<bool*>(encrypted) = true;
  return -1;
}

std::string export_base64(ssh_key key) {
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(key, &text) != SSH_OK || text == nullptr) return "";
  std::string out = text;
  ssh_string_free_char(text);
  return out;
}

std::string public_base64_of_file(const std::string& path) {
  ssh_key key = nullptr;
  if (ssh_pki_import_pubkey_file(path.c_str(), &key) != SSH_OK) return "";
  return export_base64(own(key).get());
}

Identity load(const std::string& path) {
  Identity out;
  out.path = path;
  const auto text = read_file(path, kMaxKeyFile);
  if (!text) {
    // The private half may be only in ssh-agent.
    out.public_base64 = public_base64_of_file(path + ".pub");
    out.problem = ::access(path.c_str(), F_OK) != 0 ? "missing" : text.error().cause;
    return out;
  }
  bool encrypted = false;
  ssh_key raw = nullptr;
  if (ssh_pki_import_privkey_base64(text->c_str(), nullptr, note_encrypted, &encrypted, &raw) == SSH_OK) {
    out.key = own(raw);
    out.public_base64 = export_base64(raw);
    return out;
  }
  out.public_base64 = public_base64_of_file(path);
  const bool only_public = !out.public_base64.empty() && text->find("PRIVATE KEY") == std::string::npos;
  if (out.public_base64.empty()) out.public_base64 = public_base64_of_file(path + ".pub");
  if (encrypted) {
    out.problem = "encrypted, and not in ssh-agent";
  } else if (only_public) {
    out.problem = "a public key, and ssh-agent has not the private one";
  } else {
    out.problem = "not a private key that can be read";
  }
  return out;
}

}  // namespace

const Identity& IdentityStore::get(const std::string& path) {
  auto found = identities_.find(path);
  if (found == identities_.end()) found = identities_.emplace(path, load(path)).first;
  return found->second;
}

Result<void> check_identity_file(const std::string& path) {
  const auto text = read_file(path, kMaxKeyFile);
  if (text) return {};
  Error error(Errc::kUsage, "-i " + path, text.error().cause);
  const std::string prefix = path + ": ";
  if (starts_with(error.cause, prefix)) error.cause.erase(0, prefix.size());
  error.cause = "can't read the key: " + lower(error.cause);
  error.hint = "ls -l " + shell_quote(path);
  return fail(std::move(error));
}

}  // namespace drun::transport
