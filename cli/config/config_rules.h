// Which options a drun.toml may set, and from where the file must come. The table has every option of every command.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drun::cli {

// The sources besides the command line that may set an option.
enum class ConfigScope {
  kAnyFile,
  // A file that the user chose (--config) or owns (in ~/.config), never one that came with a working directory: a
  // cloned repository must not run commands, load code, choose keys or overwrite files.
  kOwnFile,
  kCommandLine,  // no file
};

struct ConfigRule {
  std::string_view option;  // the option's longest name, "--hosts", "-x"
  ConfigScope scope;
  std::string_view reason;  // for kOwnFile: "it VERB OBJECT"
};

std::span<const ConfigRule> config_rules();
// The rule of a key of a file, "hosts", "x", or null. "np" is "num-proc".
const ConfigRule* find_rule(std::string_view key);
// The option of a key, as typed: "--hosts", "-x".
std::string option_of_key(std::string_view key);
// Every key that a file may have, for suggestions.
std::vector<std::string> config_keys();
// True if `command` ("run", "bench") has the option only under the same name and with another meaning.
bool is_other_option(std::string_view command, std::string_view option);
// The options whose values in a file do not count if `option` was given on the command line or in a nearer file.
std::vector<std::string> replaced_by(std::string_view option);

}  // namespace drun::cli
