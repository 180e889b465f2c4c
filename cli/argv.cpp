#include "cli/argv.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace drun::cli {
namespace {

bool begins_with(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }

bool is_np_with_digits(std::string_view arg) {
  return arg.size() > 3 && begins_with(arg, "-np") &&
         std::all_of(arg.begin() + 3, arg.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The long form of a single-dash word; any other argument unchanged.
std::string long_form(const std::string& arg) {
  if (arg == "-np" || begins_with(arg, "-np=")) return "--num-proc" + arg.substr(3);
  if (is_np_with_digits(arg)) return "--num-proc=" + arg.substr(3);
  if (arg == "-hostfile" || begins_with(arg, "-hostfile=")) return "-" + arg;
  return arg;
}

// Does `option`, in its long form, take the next argument as its value?
bool takes_next(const std::string& option, const ValueOptions& value_options) {
  if (begins_with(option, "--")) {
    return option == "--num-proc" || option == "--hostfile" || value_options.count(option) > 0;
  }
  for (std::size_t i = 1; i < option.size(); ++i) {
    if (value_options.count(std::string{'-', option[i]}) > 0) return i + 1 == option.size();
  }
  return false;
}

struct Extent {
  std::size_t options_begin = 0, options_end = 0, command_begin = 0;
};

Extent find_command(const std::vector<std::string>& args, const ValueOptions& value_options) {
  Extent out;
  if (!args.empty() && args[0] == "run") out.options_begin = 1;
  std::size_t i = out.options_begin;
  while (i < args.size() && args[i].size() > 1 && args[i][0] == '-' && args[i] != "--") {
    i += takes_next(long_form(args[i]), value_options) ? 2u : 1u;
  }
  i = std::min(i, args.size());
  out.options_end = i;
  out.command_begin = i < args.size() && args[i] == "--" ? i + 1 : i;
  return out;
}

}  // namespace

std::vector<std::string> rewrite_argv(const std::vector<std::string>& args, const ValueOptions& value_options) {
  std::vector<std::string> out = args;
  const Extent extent = find_command(args, value_options);
  for (std::size_t i = extent.options_begin; i < extent.options_end; ++i) {
    out[i] = long_form(args[i]);
    if (takes_next(out[i], value_options)) ++i;  // its value
  }
  return out;
}

SplitArgs split_command(const std::vector<std::string>& args, const ValueOptions& value_options) {
  const Extent extent = find_command(args, value_options);
  const auto at = [&](std::size_t i) { return args.begin() + static_cast<std::ptrdiff_t>(i); };
  SplitArgs out;
  out.options.assign(at(extent.options_begin), at(extent.options_end));
  out.command.assign(at(extent.command_begin), args.end());
  return out;
}

}  // namespace drun::cli
