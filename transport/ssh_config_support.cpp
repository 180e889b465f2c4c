#include "transport/ssh_config_support.h"

#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/text.h"

namespace drun::transport {
namespace {

// A keyword, and the values with which libssh still behaves like OpenSSH.
struct Limit {
  const char* keyword;
  const char* spelled;
  std::vector<std::string> harmless;
};

const std::vector<Limit>& limits() {
  static const std::vector<Limit> kLimits = {
      {"certificatefile", "CertificateFile", {"none"}},
      {"pkcs11provider", "PKCS11Provider", {"none"}},
      {"securitykeyprovider", "SecurityKeyProvider", {"internal", "none"}},
      {"hostbasedauthentication", "HostbasedAuthentication", {"no", "false"}},
      {"proxyusefdpass", "ProxyUseFdpass", {"no", "false"}},
      {"canonicalizehostname", "CanonicalizeHostname", {"no", "false", "none"}},
      {"knownhostscommand", "KnownHostsCommand", {"none"}},
      {"verifyhostkeydns", "VerifyHostKeyDNS", {"no", "false"}},
      {"revokedhostkeys", "RevokedHostKeys", {"none"}},
      {"pubkeyauthentication", "PubkeyAuthentication", {"yes", "true", "unbound", "host-bound"}},
      {"bindinterface", "BindInterface", {}},
  };
  return kLimits;
}

// The value with which libssh does not behave like OpenSSH; nullptr if there is none.
const SshConfigValue* value_beyond(const Limit& limit, const SshConfigValues& values) {
  const auto* value = values.find(limit.keyword);
  if (value == nullptr) return nullptr;
  const std::string word = lower(value->words.front());
  const bool is_harmless = std::find(limit.harmless.begin(), limit.harmless.end(), word) != limit.harmless.end();
  return is_harmless ? nullptr : value;
}

bool names(const std::string& list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A list of kinds of keys: libssh has no certificates and no security keys, and for an RSA key of ssh-agent it takes
// the best algorithm, whatever the list says.
bool libssh_serves(const std::string& list) {
  const bool has_best_of_rsa = names(list, "rsa-sha2-512");
  if (!has_best_of_rsa && (names(list, "rsa-sha2-256") || names(list, "ssh-rsa"))) return false;
  return has_best_of_rsa || names(list, "ssh-ed25519") || names(list, "ecdsa-sha2-nistp256") ||
         names(list, "ecdsa-sha2-nistp384") || names(list, "ecdsa-sha2-nistp521");
}

std::string at(const SshConfigValue& value) { return " in " + value.where; }

}  // namespace

bool canonicalizes(const SshConfigValues& values) {
  return std::any_of(limits().begin(), limits().end(), [&values](const Limit& limit) {
    return std::string_view(limit.keyword) == "canonicalizehostname" && value_beyond(limit, values) != nullptr;
  });
}

std::string beyond_libssh(const SshConfigValues& values) {
  for (const auto& limit : limits()) {
    if (const auto* value = value_beyond(limit, values)) return limit.spelled + at(*value);
  }
  if (const auto* value = values.find("preferredauthentications")) {
    if (!names(value->words.front(), "publickey")) return "PreferredAuthentications" + at(*value);
  }
  for (const char* keyword : {"ciphers", "macs", "kexalgorithms", "hostkeyalgorithms", "pubkeyacceptedalgorithms"}) {
    const auto* value = values.find(keyword);
    if (value == nullptr) continue;
    const std::string& list = value->words.front();
    if (list.find_first_of("+-^") == 0 || list.find_first_of("*?") != std::string::npos) return keyword + at(*value);
  }
  if (const auto* value = values.find("pubkeyacceptedalgorithms")) {
    if (!libssh_serves(value->words.front())) return "PubkeyAcceptedAlgorithms" + at(*value);
  }
  return "";
}

std::string identity_beyond_libssh(const SshTarget& target) {
  for (const auto& path : target.identity_files) {
    if (::access((path + "-cert.pub").c_str(), R_OK) == 0) return "certificate " + path + "-cert.pub";
    const bool by_default = path.size() > 3 && path.substr(path.size() - 3) == "_sk";
    const auto text = read_file(path + ".pub", 1 << 16);
    if (text && starts_with(*text, "sk-") && (!by_default || ::access(path.c_str(), R_OK) == 0)) {
      return "security key " + path;
    }
  }
  return "";
}

std::optional<std::int64_t> parse_ssh_time(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::int64_t total = 0;
  while (!text.empty()) {
    std::size_t n = 0;
    while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
    const auto number = parse_number(text.substr(0, n));
    if (!number || *number > INT32_MAX) return std::nullopt;
    text.remove_prefix(n);
    std::int64_t unit = 1;
    if (!text.empty()) {
      switch (text.front()) {
        case 's':
        case 'S':
          unit = 1;
          break;
        case 'm':
        case 'M':
          unit = 60;
          break;
        case 'h':
        case 'H':
          unit = 3600;
          break;
        case 'd':
        case 'D':
          unit = 86400;
          break;
        case 'w':
        case 'W':
          unit = 604800;
          break;
        default:
          return std::nullopt;
      }
      text.remove_prefix(1);
    }
    total += static_cast<std::int64_t>(*number) * unit;
    if (total > INT32_MAX) return std::nullopt;
  }
  return total;
}

}  // namespace drun::transport
