#include "cli/option_rows.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace drun::cli {
namespace {

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> out;
  for (const auto& name : option.get_snames()) out.push_back("-" + name);
  if (!option.get_lnames().empty()) out.push_back("--" + option.get_lnames().front());
  // CLI11 accepts only one-letter short names; cli/argv.h handles -np.
  if (out == std::vector<std::string>{"--num-proc"}) out.insert(out.begin(), "-np");
  return out;
}

OptionRow row_of(const CLI::Option& option, const std::string& heading) {
  OptionRow out;
  out.heading = heading;
  out.names = names_of(option);
  const auto& long_names = option.get_lnames();
  for (std::size_t i = 1; i < long_names.size(); ++i) out.aliases.push_back("--" + long_names[i]);
  const std::string type = option.get_type_name();  // the choices are appended: "quick|full:{quick,full}"
  out.value = type.substr(0, type.find(':'));
  out.optional_value = option.get_expected_max() == 0 && !out.value.empty();
  out.text = option.get_description();
  if (const std::string value = option.get_default_str(); !value.empty()) out.text += "; default: " + value;
  return out;
}

// False for the name of a kind of value: "FILE", "RANK", and "0,8-15".
bool is_choice(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

std::vector<OptionRow> option_rows(const CLI::App& app) {
  const std::string own = "Options";
  const std::vector<std::string> headings = {own,     kHosts,      kNetwork, kEnvironment,
                                             kOutput, kTimeLimits, kReports, kOther};
  std::vector<OptionRow> out;
  for (const auto& heading : headings) {
    for (const CLI::Option* option : app.get_options()) {
      const bool known = std::find(headings.begin(), headings.end(), option->get_group()) != headings.end();
      if ((known ? option->get_group() : own) == heading) out.push_back(row_of(*option, heading));
    }
  }
  return out;
}

const OptionRow* find_row(const std::vector<OptionRow>& rows, const std::string& name) {
  const auto has = [&name](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&has](const OptionRow& row) { return has(row.names) || has(row.aliases); });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<std::string> choices(const OptionRow& row) {
  std::vector<std::string> out;
  for (const auto word : split(row.value, '|')) {
    if (is_choice(word)) out.emplace_back(word);
  }
  return out;
}

}  // namespace drun::cli
