#include "cli/config/config_writer.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "cli/config/config_rules.h"

namespace drun::cli {

namespace {

// The key of an option in a file: its longest name without dashes.
std::string key_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_snames().front() : option.get_lnames().front();
}

bool is_path(const CLI::Option& option) { return option.get_type_name() == "FILE" || option.get_type_name() == "DIR"; }

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A number as TOML has it: "30", "0.5"; not "012" or ".5".
bool is_number(std::string_view text) {
  const auto dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  if (whole.size() > 15 || !is_digits(whole) || (whole.size() > 1 && whole.front() == '0')) return false;
  return dot == std::string_view::npos || is_digits(text.substr(dot + 1));
}

std::string value_of(const CLI::Option& option, const std::string& folder) {
  const auto& results = option.results();
  const bool is_flag = option.get_expected_max() == 0;
  if (is_flag && option.get_type_name().empty()) {
    return option.count() > 1 ? std::to_string(option.count()) : "true";
  }
  if (option.get_expected_max() > 1) {
    std::vector<ListItem> items;
    for (const auto& result : results) items.push_back({result, ""});
    return toml_list(items);
  }
  std::string value = results.front();
  if (!is_path(option)) return is_number(value) ? value : toml_string(value);
  const bool is_word = value == "none" || value == "-";
  if (!is_word && !value.empty() && value.front() != '/' && !folder.empty()) value.insert(0, folder + "/");
  return toml_string(value);
}

void add_comment(const std::string& comment, std::string& out) {
  out += comment.empty() ? "#\n" : "# " + comment + "\n";
}

}  // namespace

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00" + hex(std::string_view(&c, 1));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string toml_list(const std::vector<ListItem>& items) {
  const bool has_comments =
      std::any_of(items.begin(), items.end(), [](const ListItem& item) { return !item.comment.empty(); });
  if (!has_comments) {
    std::vector<std::string> texts;
    for (const auto& item : items) texts.push_back(toml_string(item.text));
    return "[" + join(texts, ", ") + "]";
  }
  std::string out = "[\n";
  for (const auto& item : items) {
    out += "  " + toml_string(item.text) + "," + (item.comment.empty() ? "" : "  # " + item.comment) + "\n";
  }
  return out + "]";
}

std::vector<ConfigLine> given_options(const CLI::App& app, const std::string& folder) {
  std::vector<ConfigLine> out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    const std::string key = key_of(*option);
    const ConfigRule* const rule = find_rule(key);
    if (key == "hosts" || rule == nullptr || rule->scope == ConfigScope::kCommandLine) continue;
    out.push_back({key, value_of(*option, folder), {}});
  }
  return out;
}

std::string config_file_text(const std::vector<std::string>& head, const std::vector<ConfigLine>& lines, bool is_found,
                             std::vector<std::string>& disabled) {
  std::string out;
  for (const auto& comment : head) add_comment(comment, out);
  for (const auto& line : lines) {
    const ConfigRule* const rule = find_rule(line.key);
    const bool is_off = is_found && rule != nullptr && rule->scope == ConfigScope::kOwnFile;
    out += "\n";
    for (const auto& comment : line.comments) add_comment(comment, out);
    if (is_off) {
      disabled.push_back(line.key);
      add_comment("Not taken from a file that drun finds in a working directory: " + std::string(rule->reason) + ".",
                  out);
      add_comment("It may stand in ~/.config/drun/drun.toml, or in a file that --config names.", out);
    }
    const std::string text = line.key + " = " + line.value;
    for (const auto part : split(text, '\n')) {
      out += (is_off ? "# " : "") + std::string(part) + "\n";
    }
  }
  return out;
}

}  // namespace drun::cli
