#include "transport/ssh_config.h"

#include <netdb.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <optional>

#include "base/fd.h"
#include "base/text.h"
#include "transport/ssh_config_parser.h"
#include "transport/ssh_config_support.h"
#include "transport/ssh_tokens.h"

namespace drun::transport {

LocalAccount local_account() {
  LocalAccount out;
  if (const passwd* entry = ::getpwuid(::getuid())) {
    out.user = entry->pw_name;
    out.home = entry->pw_dir;
  } else {
    const char* home = ::getenv("HOME");
    const char* user = ::getenv("USER");
    out.home = home != nullptr ? home : "/";
    out.user = user != nullptr ? user : std::to_string(::getuid());
  }
  return out;
}

namespace {

constexpr int kMinRsaBits = 1024;  // as in OpenSSH

std::vector<SshConfigFile> config_files(const SshOptions& options, const std::string& home) {
  const std::string folder = home + "/.ssh";
  if (options.config_file == "none") return {};
  if (!options.config_file.empty()) return {{options.config_file, folder, false, true}};
  return {{folder + "/config", folder, true, false}, {"/etc/ssh/ssh_config", "/etc/ssh", false, false}};
}

// As ssh does, a second pass adds what the first one left open, if a line is `Match final`.
Result<SshConfigValues> read_configs(const SshOptions& options, SshConfigSubject subject) {
  SshConfigValues values;
  const auto files = config_files(options, subject.home);
  const auto read_all = [&]() -> Result<void> {
    for (const auto& file : files) {
      if (auto ok = read_ssh_config(file, subject, values); !ok) return ok;
    }
    return {};
  };
  if (auto ok = read_all(); !ok) return fail(ok.error());
  if (!values.wants_final_pass) return values;
  subject.final_host = lower(host_name_of(values, subject));
  if (auto ok = read_all(); !ok) return fail(ok.error());
  return values;
}

// The policy that StrictHostKeyChecking sets; nothing for an unknown word.
std::optional<HostKeyPolicy> host_key_policy(const SshConfigValues& values) {
  const std::string word = lower(values.word("stricthostkeychecking"));
  if (word.empty() || word == "accept-new") return HostKeyPolicy::kAcceptNew;
  if (word == "yes" || word == "true" || word == "ask") return HostKeyPolicy::kStrict;
  if (word == "no" || word == "false" || word == "off") return HostKeyPolicy::kOff;
  return std::nullopt;
}

// The policy that ssh would read for a jump host from the lines for its own name; kStrict if only ssh can tell.
HostKeyPolicy policy_of_jump(const JumpHost& jump, const SshOptions& options, SshConfigSubject subject) {
  subject.host = jump.host;
  subject.user = jump.user;
  const auto values = read_configs(options, subject);
  if (!values || !values->needs_openssh.empty() || canonicalizes(*values)) return HostKeyPolicy::kStrict;
  return host_key_policy(*values).value_or(HostKeyPolicy::kStrict);
}

// Fills a target from values. Keeps the first error, with its line.
class Filler {
 public:
  Filler(const SshConfigValues& values, SshTarget& target, const LocalAccount& local)
      : values_(values), target_(target), local_(local) {}

  void names(const Host& host, const SshOptions& options) {
    target_.host_name = host.name;
    if (const auto* value = values_.find("hostname")) {
      const SshTokens tokens = {{'h', host.name}};
      target_.host_name = keep(expand_tokens(value->words.front(), tokens), *value);
    }
    target_.user = !host.user.empty() ? host.user : values_.word("user");
    target_.user_by_item = !host.user.empty();
    target_.port = options.port != 0 ? options.port : host.port;
    target_.port_by_option = target_.port != 0;
    target_.user_or_port_set = !target_.user.empty() || target_.port_by_option;
    if (target_.user.empty()) target_.user = local_.user;
    const auto* port = values_.find("port");
    if (port != nullptr) target_.user_or_port_set = true;
    if (target_.port == 0) target_.port = port != nullptr ? port_number(*port) : 22;
    target_.host_key_alias = values_.word("hostkeyalias");
    make_tokens(host.name);
  }

  void policies() {
    const auto policy = host_key_policy(values_);
    if (!policy) {
      const auto* value = values_.find("stricthostkeychecking");
      refuse(*value, "StrictHostKeyChecking is yes, accept-new, ask, no or off, not '" + value->words.front() + "'");
    }
    target_.host_keys = policy.value_or(HostKeyPolicy::kStrict);
    target_.identities_only = flag("identitiesonly");
    target_.compression = flag("compression");
    target_.hash_known_hosts = flag("hashknownhosts");
    target_.tries_gssapi = flag("gssapiauthentication");
    if (const auto* value = values_.find("requiredrsasize")) {
      const auto bits = parse_number(value->words.front());
      if (!bits || *bits > INT_MAX) refuse(*value, "RequiredRSASize: not a number: '" + value->words.front() + "'");
      target_.min_rsa_bits = std::max(kMinRsaBits, static_cast<int>(bits.value_or(0)));
    }
    if (const auto* value = values_.find("connecttimeout"); value != nullptr && value->words.front() != "none") {
      const auto seconds = parse_ssh_time(value->words.front());
      if (!seconds) refuse(*value, "ConnectTimeout: not a time: '" + value->words.front() + "'");
      target_.connect_timeout = std::chrono::seconds(seconds.value_or(0));
    }
    target_.address_family = lower(values_.word("addressfamily"));
    if (target_.address_family.empty()) target_.address_family = "any";
    if (target_.address_family != "any" && target_.address_family != "inet" && target_.address_family != "inet6") {
      refuse(*values_.find("addressfamily"), "AddressFamily is any, inet or inet6");
    }
    target_.bind_address = values_.word("bindaddress");
    target_.ciphers = values_.word("ciphers");
    target_.macs = values_.word("macs");
    target_.kex_algorithms = values_.word("kexalgorithms");
    target_.host_key_algorithms = values_.word("hostkeyalgorithms");
    target_.key_algorithms = values_.word("pubkeyacceptedalgorithms");
  }

  void identities(const SshOptions& options) {
    bool configured = false;
    if (!options.identity_file.empty()) {
      target_.identity_files.push_back(expand_tilde(options.identity_file, local_.home));
      target_.identity_by_option = configured = true;
    }
    for (const auto& value : values_.all("identityfile")) {
      configured = true;
      if (lower(value.words.front()) != "none") target_.identity_files.push_back(path(value, value.words.front()));
    }
    if (!configured) {
      for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa"}) {
        target_.identity_files.push_back(local_.home + "/.ssh/" + name);
      }
    }
    if (const auto* value = values_.find("identityagent")) {
      const std::string& word = value->words.front();
      if (word == "SSH_AUTH_SOCK") return;
      if (word == "none") {
        target_.identity_agent = "none";
      } else if (starts_with(word, "$") && !starts_with(word, "${")) {
        const char* socket = ::getenv(word.c_str() + 1);
        target_.identity_agent = socket != nullptr ? socket : "none";
      } else {
        target_.identity_agent = path(*value, word);
      }
    }
  }

  void files() {
    target_.user_known_hosts =
        known_hosts("userknownhostsfile", local_.home + "/.ssh/known_hosts", local_.home + "/.ssh/known_hosts2");
    target_.global_known_hosts =
        known_hosts("globalknownhostsfile", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2");
  }

  void proxy() {
    const auto* value = values_.find("proxycommand");
    if (value == nullptr) return;
    target_.proxy_command = value->rest;
    if (lower(trim(target_.proxy_command)) == "none") {
      target_.proxy_command = "none";
    } else {
      target_.proxy_command = keep(expand_tokens(value->rest, tokens_), *value);
    }
  }

  void jumps() {
    const auto* value = values_.find("proxyjump");
    if (value == nullptr) return;
    target_.proxy_jump = value->words.front();
    if (lower(target_.proxy_jump) == "none") {
      target_.proxy_jump = "none";
      return;
    }
    std::optional<JumpHost> jump;
    for (const auto part : split(target_.proxy_jump, ',')) {
      jump = parse_jump_host(part);
      if (!jump) return refuse(*value, "ProxyJump: not a host ([user@]host[:port]): '" + std::string(part) + "'");
    }
    const auto comma = target_.proxy_jump.rfind(',');
    if (jump->uri.empty()) {
      for (auto* part : {&jump->user, &jump->host, &jump->port}) *part = keep(expand_tokens(*part, tokens_), *value);
    }
    target_.last_jump = std::move(*jump);
    if (comma != std::string::npos) {
      target_.first_jumps = keep(expand_tokens(target_.proxy_jump.substr(0, comma), tokens_), *value);
    }
  }

  std::string needs_openssh = "";
  std::optional<Error> error;

 private:
  void refuse(const SshConfigValue& value, std::string cause) {
    if (!error) error = Error(Errc::kUsage, value.where, std::move(cause));
  }

  std::string keep(Result<std::string> text, const SshConfigValue& value) {
    if (text) return std::move(*text);
    // A newer OpenSSH may know the token.
    if (starts_with(text.error().cause, "unknown token")) {
      if (needs_openssh.empty()) needs_openssh = text.error().cause + " in " + value.where;
    } else {
      refuse(value, text.error().cause);
    }
    return "";
  }

  std::string path(const SshConfigValue& value, const std::string& word) {
    const std::string plain = expand_tilde(word, local_.home);
    const std::string expanded = keep(expand_tokens(plain, tokens_), value);
    return keep(expand_environment(expanded), value);
  }

  std::vector<std::string> known_hosts(std::string_view keyword, std::string first, std::string second) {
    const auto* value = values_.find(keyword);
    if (value == nullptr) return {std::move(first), std::move(second)};
    std::vector<std::string> out;
    for (const auto& word : value->words) {
      if (lower(word) != "none") out.push_back(path(*value, word));
    }
    return out;
  }

  bool flag(std::string_view keyword) {
    const auto* value = values_.find(keyword);
    if (value == nullptr) return false;
    const std::string word = lower(value->words.front());
    if (word == "yes" || word == "true") return true;
    if (word != "no" && word != "false") refuse(*value, std::string(keyword) + " is yes or no");
    return false;
  }

  int port_number(const SshConfigValue& value) {
    const auto number = parse_number(value.words.front());
    if (number && *number > 0 && *number < 65536) return static_cast<int>(*number);
    refuse(value, "not a port: '" + value.words.front() + "'");
    return 22;
  }

  void make_tokens(const std::string& typed) {
    char name[HOST_NAME_MAX + 1] = "";
    ::gethostname(name, sizeof name - 1);
    const std::string full = name;
    tokens_ = {{'h', target_.host_name},
               {'n', typed},
               {'p', std::to_string(target_.port)},
               {'r', target_.user},
               {'u', local_.user},
               {'d', local_.home},
               {'i', std::to_string(::getuid())},
               {'l', full},
               {'L', full.substr(0, full.find('.'))},
               {'k', target_.host_key_alias.empty() ? typed : target_.host_key_alias}};
  }

  const SshConfigValues& values_;
  SshTarget& target_;
  const LocalAccount& local_;
  SshTokens tokens_;
};

}  // namespace

Result<SshTarget> resolve_ssh_target(const Host& host, const SshOptions& options) {
  if (host.name.empty() || host.name.front() == '-') {
    return fail(Errc::kUsage, host.where.empty() ? host.name : host.where, "not a host name: '" + host.name + "'");
  }
  const LocalAccount local = local_account();
  SshConfigSubject subject;
  subject.host = host.name;
  subject.user = host.user;
  subject.local_user = local.user;
  subject.home = local.home;
  auto values = read_configs(options, subject);
  if (!values) return fail(values.error());

  SshTarget target;
  target.alias = host.name;
  target.where = host.where;
  target.config_file = options.config_file;
  Filler filler(*values, target, local);
  filler.names(host, options);
  filler.policies();
  filler.identities(options);
  filler.files();
  filler.proxy();
  filler.jumps();
  if (filler.error) return fail(std::move(*filler.error));
  if (!target.last_jump.host.empty()) target.jump_host_keys = policy_of_jump(target.last_jump, options, subject);
  target.needs_openssh = values->needs_openssh;
  target.is_partial = !values->needs_openssh.empty() || canonicalizes(*values);
  if (target.needs_openssh.empty()) target.needs_openssh = filler.needs_openssh;
  if (target.needs_openssh.empty()) target.needs_openssh = beyond_libssh(*values);
  if (target.needs_openssh.empty()) target.needs_openssh = identity_beyond_libssh(target);
  return target;
}

}  // namespace drun::transport
