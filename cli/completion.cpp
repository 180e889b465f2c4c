#include "cli/completion.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "bench/kind.h"
#include "cli/argv.h"
#include "cli/command_rows.h"
#include "cli/help.h"

namespace drun::cli {
namespace {

using Kind = Completion::Kind;
using Words = std::vector<std::string>;

struct Table {
  std::vector<OptionRow> rows;
  bool has_command = false;
};

// `word`: a subcommand, or anything else for `drun run`.
Table table_of(const std::string& word) {
  return {command_rows(word), word != "bench" && word != "clean" && word != "init"};
}

ValueOptions value_options(const std::vector<OptionRow>& rows) {
  ValueOptions out;
  for (const auto& row : rows) {
    if (row.value.empty() || row.optional_value) continue;
    for (const auto& name : row.names) {
      if (name != "-np") out.insert(name);  // cli/argv.h rewrites it
    }
    out.insert(row.aliases.begin(), row.aliases.end());
  }
  return out;
}

void add(Completion& out, const std::string& word, const std::string& text, std::string_view typed) {
  if (starts_with(word, typed)) out.candidates.push_back({word, text});
}

Completion option_names(const std::vector<OptionRow>& rows, const std::string& typed) {
  Completion out;
  for (const auto& row : rows) {
    for (const auto& name : row.names) add(out, name, row.text, typed);
  }
  return out;
}

// The last element of the list in `typed` is completed; commas inside brackets separate nothing.
Completion list_element(const std::string& typed, const Words& words, std::string_view separators) {
  Completion out;
  out.kind = Kind::kList;
  const auto end = typed.find_last_of(separators);
  out.kept = end == std::string::npos ? "" : typed.substr(0, end + 1);
  const std::string element = typed.substr(out.kept.size());
  const auto used = split(out.kept, ',');
  for (const auto& word : words) {
    if (std::find(used.begin(), used.end(), word) == used.end()) add(out, word, "", element);
  }
  return out;
}

// The value of an option among `words`; "" = it is not there.
std::string value_in(const Words& words, std::initializer_list<std::string_view> names) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const auto name : names) {
      if (words[i] == name && i + 1 < words.size()) out = words[i + 1];
      if (starts_with(name, "--") && starts_with(words[i], std::string(name) + "="))
        out = words[i].substr(name.size() + 1);
    }
  }
  return out;
}

Completion host_list(const std::string& typed, const Words& options, const HostSource& source) {
  if (typed.rfind('[') != std::string::npos && typed.find(']', typed.rfind('[')) == std::string::npos) return {};
  const std::string item = typed.substr(typed.rfind(',') + 1);
  Words groups;
  if (item.empty() || item.front() == '@') {
    for (const auto& group : source.groups(value_in(options, {"--config"}))) groups.push_back("@" + group);
  }
  if (!item.empty() && item.front() == '@') return list_element(typed, groups, ",");
  Words known = source.hosts(value_in(options, {"-F", "--ssh-config"}));
  known.insert(known.begin(), "localhost");
  for (auto& name : known) {
    if (name.find(':') != std::string::npos) name = "[" + name + "]";
  }
  known.insert(known.end(), groups.begin(), groups.end());
  return list_element(typed, known, ",@");
}

// Completes the value of an option, of which `typed` is there.
Completion value_of(const OptionRow& row, const std::string& typed, const Words& options, const HostSource& source) {
  Completion out;
  if (row.names.back() == "--hosts" || row.names.back() == "--exclude") return host_list(typed, options, source);
  if (row.names.front() == "-o") return list_element(typed, bench::kind_names(), ",");
  for (const auto& word : choices(row)) add(out, word, "", typed);
  if (row.value == "FILE" || row.value == "PATH" || row.value == "CMD") out.kind = Kind::kFiles;
  if (row.value == "DIR") out.kind = Kind::kDirectories;
  return out;
}

// The name of the option whose value comes next: the last letter of "-vp".
std::string option_name(const std::string& word) {
  return starts_with(word, "--") ? word : std::string("-") + word.back();
}

// A command without --config reads no drun.toml, and knows no groups.
HostSource source_of(const Table& table, const HostSource& all) {
  HostSource out = all;
  if (find_row(table.rows, "--config") == nullptr) out.groups = [](const std::string&) { return Words(); };
  return out;
}

// `words`: those after the subcommand.
Completion complete_arguments(const Table& table, const Words& words, const HostSource& all) {
  const HostSource source = source_of(table, all);
  const std::string& typed = words.back();
  const ValueOptions with_value = value_options(table.rows);
  Words placed = words;
  placed.back() = "x";  // in the place of an option's value, or of the command
  const SplitArgs parts = split_command(rewrite_argv(placed, with_value), with_value);
  if (parts.command.empty()) {
    const Words& options = parts.options;
    const OptionRow* row =
        options.size() < 2 ? nullptr : find_row(table.rows, option_name(options[options.size() - 2]));
    return row == nullptr ? Completion() : value_of(*row, typed, options, source);
  }
  const bool after_dashes = parts.options.size() + parts.command.size() < words.size() && words[0] != "run";
  if (parts.command.size() == 1 && !after_dashes && (starts_with(typed, "-") || !table.has_command)) {
    const auto equals = typed.find('=');
    if (!starts_with(typed, "--") || equals == std::string::npos) return option_names(table.rows, typed);
    const OptionRow* row = find_row(table.rows, typed.substr(0, equals));
    if (row == nullptr || row->value.empty()) return {};
    Completion out = value_of(*row, typed.substr(equals + 1), parts.options, source);
    out.kept.insert(0, typed.substr(0, equals + 1));
    return out;
  }
  if (!table.has_command) return {};
  Completion out;
  out.kind = Kind::kCommand;
  out.command_at = words.size() - parts.command.size();
  return out;
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kWords:
      return "words";
    case Kind::kList:
      return "list";
    case Kind::kFiles:
      return "files";
    case Kind::kDirectories:
      return "directories";
    case Kind::kCommand:
      return "command";
  }
  return "";
}

}  // namespace

Completion complete(const std::vector<std::string>& words, const HostSource& source) {
  if (words.empty()) return {};
  if (words.size() > 1 && words[0] == "horovodrun") {
    Completion files;
    files.kind = Kind::kFiles;
    return files;
  }
  const bool is_run = words[0] == "run";
  const bool is_sub = std::any_of(std::begin(kSubcommands), std::end(kSubcommands),
                                  [&words](const SubcommandName& one) { return words[0] == one.name; });
  if (words.size() > 1 && (is_sub || is_run)) {
    Completion out = complete_arguments(table_of(words[0]), Words(words.begin() + 1, words.end()), source);
    if (out.kind == Kind::kCommand) ++out.command_at;
    return out;
  }
  Completion out = complete_arguments(table_of(""), words, source);
  if (words.size() == 1 && out.kind == Kind::kCommand) {
    add(out, "run", kSummary, words[0]);
    for (const auto& [name, summary] : kSubcommands) add(out, name, summary, words[0]);
    add(out, "horovodrun", "the command line of horovodrun", words[0]);
  }
  return out;
}

std::string completion_text(const Completion& completion) {
  std::string out = std::string(kind_name(completion.kind)) + "\n" + completion.kept + "\n" +
                    std::to_string(completion.command_at) + "\n";
  for (const auto& [word, text] : completion.candidates) out += word + "\t" + text + "\n";
  return out;
}

}  // namespace drun::cli
