#include "cli/help.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace drun::cli {
namespace {

constexpr std::size_t kColumn = 30;  // where the descriptions begin

// "-H,--hosts LIST", "--tag-output[=rank|host]".
std::string names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  if (!option.get_lnames().empty())
    names.push_back("--" + option.get_lnames().front());  // the others are other spellings
  // CLI11 accepts only one-letter short names; cli/argv.h handles -np.
  if (names == std::vector<std::string>{"--num-proc"}) return "-np N, --num-proc N";
  if (names == std::vector<std::string>{"--tag-output"}) return "--tag-output[=rank|host]";
  std::string out = join(names, ", ");
  if (option.get_type_size() == 0) return out;
  const std::string type = option.get_type_name();  // the choices are appended: "quick|full:{quick,full}"
  return out + " " + type.substr(0, type.find(':'));
}

std::string line_of(const CLI::Option& option) {
  std::string out = "  " + names_of(option);
  if (out.size() + 1 > kColumn) out += "\n";
  const std::size_t used = out.back() == '\n' ? 0 : out.size();
  out += std::string(kColumn - used, ' ') + option.get_description();
  if (const std::string value = option.get_default_str(); !value.empty()) out += "; default: " + value;
  return out + "\n";
}

}  // namespace

std::string option_sections(const CLI::App& app) {
  const std::string own = "Options";
  const std::vector<std::string> headings = {own,     kHosts,      kNetwork, kEnvironment,
                                             kOutput, kTimeLimits, kReports, kOther};
  std::string out;
  for (const auto& heading : headings) {
    std::string lines;
    for (const CLI::Option* option : app.get_options()) {
      const bool known = std::find(headings.begin(), headings.end(), option->get_group()) != headings.end();
      if ((known ? option->get_group() : own) == heading) lines += line_of(*option);
    }
    if (!lines.empty()) out += (out.empty() ? "" : "\n") + heading + ":\n" + lines;
  }
  return out;
}

}  // namespace drun::cli
