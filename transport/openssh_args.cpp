#include "transport/openssh_args.h"

#include "base/text.h"

namespace drun::transport {
namespace {

// With `no` ssh would log in to a host whose key has changed.
const char* strict_host_key_checking(HostKeyPolicy policy) {
  return policy == HostKeyPolicy::kStrict ? "yes" : "accept-new";
}

// Asks ssh for the value that the config has. `ask` is what ssh has if none is set.
constexpr const char* kAcceptNewIfUnset =
    "case $(ssh -G \"$@\" 2>/dev/null) in *stricthostkeychecking\\ ask*|*stricthostkeychecking\\ false*)"
    "exec ssh -oStrictHostKeyChecking=accept-new \"$@\";;esac;exec ssh \"$@\"";

}  // namespace

std::vector<std::string> openssh_argv(const SshTarget& target, const std::string& config_file,
                                      const std::string& command, int connect_timeout_s) {
  std::vector<std::string> argv = {"ssh"};
  if (target.is_partial && target.host_keys != HostKeyPolicy::kStrict) {
    argv = {"/bin/sh", "-c", kAcceptNewIfUnset, "ssh"};
  } else {
    argv.push_back(std::string("-oStrictHostKeyChecking=") + strict_host_key_checking(target.host_keys));
  }
  argv.insert(argv.end(), {"-T", "-x", "-a", "-oBatchMode=yes", "-oClearAllForwardings=yes", "-oControlMaster=no",
                           "-oControlPath=none", "-oPermitLocalCommand=no", "-oRemoteCommand=none", "-oLogLevel=INFO"});
  if (target.connect_timeout.count() == 0) {
    argv.push_back("-oConnectTimeout=" + std::to_string(connect_timeout_s));
  }
  const std::string& config = config_file.empty() ? target.config_file : config_file;
  if (!config.empty()) argv.insert(argv.end(), {"-F", config});
  if (target.port_by_option) argv.insert(argv.end(), {"-p", std::to_string(target.port)});
  if (target.identity_by_option) argv.insert(argv.end(), {"-i", target.identity_files.at(0)});
  if (target.user_by_item) argv.insert(argv.end(), {"-l", target.user});
  argv.insert(argv.end(), {"--", target.alias, command});
  return argv;
}

std::string typed_host(const SshTarget& target) {
  return (target.user_by_item ? target.user + "@" : "") + target.alias;
}

std::string typed_ssh(const SshTarget& target, const std::string& options) {
  std::string words = "ssh";
  if (!options.empty()) words += " " + options;
  if (!target.config_file.empty()) words += " -F " + shell_quote(target.config_file);
  if (target.port_by_option) words += " -p " + std::to_string(target.port);
  if (target.identity_by_option) words += " -i " + shell_quote(target.identity_files.at(0));
  return words + " " + shell_quote(typed_host(target));
}

}  // namespace drun::transport
