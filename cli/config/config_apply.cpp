#include "cli/config/config_apply.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <utility>

#include "base/error_id.h"
#include "base/text.h"
#include "cli/config/config_rules.h"
#include "transport/ssh_tokens.h"

namespace drun::cli {

namespace {

using Shape = ConfigEntry::Shape;
using Kind = ConfigValue::Kind;

constexpr std::size_t kSharedLetters = 3;  // "nump" means num-proc

std::string line_of(const ConfigFile& file, const ConfigEntry& entry) {
  return file.name + ":" + std::to_string(entry.line);
}

// The key that the user most likely meant; "" = no idea.
std::string meant_key(const CLI::App& app, const std::string& key) {
  if (key.size() == 1) {
    const CLI::Option* option = app.get_option_no_throw("-" + key);
    return option == nullptr || option->get_lnames().empty() ? "" : option->get_lnames().front();
  }
  const auto keys = config_keys();
  if (const auto near = nearest(key, keys)) return *near;
  std::string best;
  std::size_t most = kSharedLetters - 1;
  for (const auto& candidate : keys) {
    const auto shared = std::mismatch(key.begin(), key.end(), candidate.begin(), candidate.end()).first - key.begin();
    if (static_cast<std::size_t>(shared) <= most) continue;
    most = static_cast<std::size_t>(shared);
    best = candidate;
  }
  return best;
}

// An entry may be wrong without regard to its value.
Result<void> check_key(const CLI::App& app, const ConfigFile& file, const ConfigEntry& entry) {
  const std::string quoted = "'" + entry.key + "'";
  const ConfigRule* rule = find_rule(entry.key);
  if (rule == nullptr) {
    const std::string meant = meant_key(app, entry.key);
    return fail(Error(Errc::kUsage, line_of(file, entry), "unknown key " + quoted)
                    .with_hint(meant.empty() ? "man drun.toml" : "did you mean " + meant + "?"));
  }
  if (rule->scope == ConfigScope::kCommandLine) {
    return fail(Errc::kUsage, line_of(file, entry), quoted + " can be given only on the command line");
  }
  if (rule->scope == ConfigScope::kOwnFile && file.is_of_project) {
    return fail(Error(Errc::kUsage, line_of(file, entry),
                      quoted + " is not taken from a file that drun found in a working directory: " +
                          std::string(rule->reason) + ", and a cloned repository must not do that")
                    .with_hint("--config " + shell_quote(file.name) +
                               " if you trust the file, or put the key into ~/.config/drun/drun.toml"));
  }
  return {};
}

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

// "" if the entry fits the option, else the cause of an error.
std::string shape_fault(const CLI::Option& option, const ConfigEntry& entry) {
  if (entry.shape == Shape::kTable) return "is a table; it needs a value";
  if (entry.shape == Shape::kList) {
    if (option.get_expected_max() <= 1) return "takes one value, not a list";
    const bool has_flags = std::any_of(entry.values.begin(), entry.values.end(),
                                       [](const ConfigValue& value) { return value.kind == Kind::kBool; });
    return has_flags ? "needs a list of texts" : "";
  }
  const ConfigValue& value = entry.values.front();
  if (!is_flag(option)) {
    if (value.kind != Kind::kBool) return "";
    return "needs a value (" + option.get_type_name() + "), not " + value.text;
  }
  if (value.kind == Kind::kBool) return "";
  const bool has_words = !option.get_type_name().empty();
  if (has_words && value.kind == Kind::kText) return "";
  const bool counts = option.check_lname("verbose") && value.kind == Kind::kNumber;
  if (counts && (value.text == "0" || value.text == "1" || value.text == "2")) return "";
  return "needs true or false" + std::string(option.check_lname("verbose") ? ", or 1 or 2" : "") + ", not " +
         (value.kind == Kind::kText ? "the text '" + value.text + "'" : value.text);
}

// A path as the option takes it.
std::string resolve(const CLI::Option& option, std::string value, const ConfigFile& file, const std::string& home) {
  const std::string type = option.get_type_name();
  const bool is_path = type == "FILE" || type == "DIR";
  if (!is_path || value.empty() || value[0] == '/' || value == "-") return value;
  if (option.check_lname("ssh-config") && value == "none") return value;
  return value[0] == '~' ? transport::expand_tilde(value, home) : file.folder + "/" + value;
}

// The values as they would be typed; none = the option is not set.
std::vector<std::string> typed_values(const CLI::Option& option, const ConfigEntry& entry, const ConfigFile& file,
                                      const std::string& home) {
  std::vector<std::string> out;
  for (const auto& value : entry.values) {
    if (value.kind == Kind::kBool && value.text == "false") continue;
    if (value.kind == Kind::kNumber && is_flag(option) && value.text == "0") continue;
    // "" is the flag without a value.
    if (is_flag(option)) {
      const std::string name = option.get_lnames().front();
      out.push_back(option.get_flag_value(name, value.kind == Kind::kBool ? "" : value.text));
    } else {
      out.push_back(resolve(option, value.text, file, home));
    }
  }
  return out;
}

// CLI11's error without the option's name.
std::string cause_of(const CLI::ParseError& e, const ConfigEntry& entry) {
  if (dynamic_cast<const CLI::ConversionError*>(&e) != nullptr) {
    return "'" + entry.values.front().text + "' is not a number";
  }
  const std::string what = e.what();
  const auto colon = what.find(": ");
  std::string out = starts_with(what, "-") && colon != std::string::npos ? what.substr(colon + 2) : what;
  while (!out.empty() && (out.back() == '\n' || out.back() == '.')) out.pop_back();
  return out;
}

// Returns an error's cause, or "".
std::string set(CLI::Option& option, const ConfigEntry& entry, const ConfigFile& file, const std::string& home) {
  if (std::string fault = shape_fault(option, entry); !fault.empty()) return fault;
  const auto values = typed_values(option, entry, file, home);
  if (values.empty()) return "";
  try {
    for (const auto& value : values) option.add_result(value);
    option.run_callback();
  } catch (const CLI::ParseError& e) {
    return cause_of(e, entry);
  }
  return "";
}

std::set<std::string> names_with_replaced(const CLI::Option& option) {
  std::set<std::string> out;
  const std::string name =
      option.get_lnames().empty() ? "-" + option.get_snames().front() : "--" + option.get_lnames().front();
  for (auto& replaced : replaced_by(name)) out.insert(std::move(replaced));
  out.insert(name);
  return out;
}

// The entries that set an option. Adds the groups of the file to `groups`, unless a nearer file has one of that name.
Result<std::vector<ConfigEntry>> options_of(const CLI::App& app, const ConfigFile& file,
                                            std::vector<HostGroup>& groups) {
  std::vector<ConfigEntry> out;
  std::map<std::string, std::string> keys;  // by option
  for (const auto& entry : file.entries) {
    if (auto ok = check_key(app, file, entry); !ok) return fail(std::move(ok.error()));
    if (const auto [other, is_new] = keys.try_emplace(option_of_key(entry.key), entry.key); !is_new) {
      return fail(Errc::kUsage, line_of(file, entry), "'" + entry.key + "' and '" + other->second + "' are one option");
    }
    if (entry.key != "hosts" || entry.shape != Shape::kTable) {
      out.push_back(entry);
      continue;
    }
    auto table = read_host_table(entry, file.name);
    if (!table) return fail(std::move(table.error()));
    for (auto& group : table->groups) {
      const auto same = [&group](const HostGroup& other) { return other.name == group.name; };
      if (std::none_of(groups.begin(), groups.end(), same)) groups.push_back(std::move(group));
    }
    if (table->chosen) out.push_back(std::move(*table->chosen));
  }
  return out;
}

}  // namespace

void ConfigOrigins::add(const CLI::Option& option, const ConfigFile& file, const ConfigEntry& entry) {
  const Origin origin{entry.key, file.name, entry.line};
  for (const auto& name : option.get_lnames()) by_name_["--" + name] = origin;
  for (const auto& name : option.get_snames()) by_name_["-" + name] = origin;
  if (option.check_lname("num-proc")) by_name_["-np"] = origin;
}

std::map<std::string, std::string> ConfigOrigins::places() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, origin] : by_name_) out[name] = place_of(origin);
  return out;
}

std::string ConfigOrigins::place_of(const Origin& origin) {
  return origin.file + ":" + std::to_string(origin.line) + ": '" + origin.key + "'";
}

std::string ConfigOrigins::file_of(const std::string& option) const {
  const auto found = by_name_.find(option);
  return found == by_name_.end() ? "" : found->second.file;
}

Error ConfigOrigins::explain(Error error) const {
  // "-x 'A=B'" is about -x.
  const auto found = by_name_.find(error.subject.substr(0, error.subject.find(' ')));
  if (found == by_name_.end()) return error;
  const std::string& key = found->second.key;
  const auto space = error.subject.find(' ');
  if (space != std::string::npos) error.cause = error.subject.substr(space + 1) + ": " + error.cause;
  error.subject = place_of(found->second);
  error.id = error_id::kConfigFile;
  const std::string typed = found->first + " ";
  if (starts_with(error.hint, typed) && error.hint.find(' ', typed.size()) == std::string::npos) {
    const std::string value = error.hint.substr(typed.size());
    error.hint = key + " = " + (parse_number(value) ? value : "\"" + value + "\"");
  }
  return error;
}

Result<AppliedConfig> apply_config(CLI::App& app, const std::string& command, const std::string& home,
                                   const std::vector<ConfigFile>& nearest_first) {
  AppliedConfig out;
  std::set<std::string> decided;  // by the command line and by nearer files
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0) decided.merge(names_with_replaced(*option));
  }
  for (const auto& file : nearest_first) {
    const auto entries = options_of(app, file, out.groups);
    if (!entries) return fail(entries.error());
    std::set<std::string> set_here;
    for (const auto& entry : *entries) {
      const std::string name = option_of_key(entry.key);
      CLI::Option* option = app.get_option_no_throw(name);
      if (option == nullptr || is_other_option(command, name) || decided.count(name) > 0) continue;
      if (std::string cause = set(*option, entry, file, home); !cause.empty()) {
        return fail(Errc::kUsage, line_of(file, entry), "'" + entry.key + "': " + cause);
      }
      out.origins.add(*option, file, entry);
      set_here.merge(names_with_replaced(*option));
    }
    decided.merge(set_here);
  }
  return out;
}

}  // namespace drun::cli
