#include "cli/options_page.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/command_rows.h"
#include "cli/help.h"
#include "cli/option_rows.h"

namespace drun::cli {
namespace {

constexpr std::string_view kDefaultMark = "default: ";

// `text` in a cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') {
      out += "&#124;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      if (std::string_view("\\`*_[]").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string code(const std::string& text) { return "`" + text + "`"; }

// The text without its last part "default: VALUE", and that value.
std::pair<std::string, std::string> split_default(const std::string& text) {
  const auto at = text.rfind(kDefaultMark);
  const bool is_last = at != std::string::npos && text.find(';', at) == std::string::npos;
  if (!is_last || at < 2 || text.substr(at - 2, 2) != "; ") return {text, ""};
  return {text.substr(0, at - 2), text.substr(at + kDefaultMark.size())};
}

std::string value_cell(const OptionRow& row) {
  std::string out;
  for (const auto word : split(row.value, '|')) {
    if (!word.empty()) out += (out.empty() ? "" : ", ") + code(std::string(word));
  }
  return row.optional_value ? "optional, after `=`: " + out : out;
}

std::string line_of(const OptionRow& row) {
  std::string names;
  for (const auto& name : row.names) names += (names.empty() ? "" : ", ") + code(name);
  const auto [text, value] = split_default(row.text);
  return "| " + names + " | " + value_cell(row) + " | " + cell(text) + " | " + cell(value) + " |\n";
}

std::string command_part(const std::string& command, const std::string& summary, const std::vector<OptionRow>& rows) {
  std::string out = "\n## " + command + "\n\n`" + command + "`: " + summary + ".\n", heading;
  for (const auto& row : rows) {
    if (row.heading != heading) {
      out +=
          "\n### " + command + ": " + row.heading + "\n\n| option | value | meaning | default |\n|---|---|---|---|\n";
    }
    heading = row.heading;
    out += line_of(row);
  }
  return out;
}

}  // namespace

std::string options_page() {
  std::string out =
      "# Options\n\n"
      "All options of all commands, as `--help` lists them. This page is generated: `drun-man-page --options-page\n"
      "docs/options.md`, a program of the build, writes it from the tables of the program.\n\n"
      "An option without a value is a flag. In `drun.toml` an option is its long name without the dashes\n"
      "([configuration.md](configuration.md)). Options of mpirun, torchrun, deepspeed and horovodrun beside these:\n"
      "[migrating.md](migrating.md).\n";
  out += command_part("drun", kSummary, command_rows(""));
  for (const auto& [name, summary] : kSubcommands) {
    out += command_part(std::string("drun ") + name, summary, command_rows(name));
  }
  return out;
}

}  // namespace drun::cli
