#include "cli/argv.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace drun::cli {
namespace {

bool begins_with(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }

bool are_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

struct OtherWord {
  std::string_view typed, ours;
};
// Options of horovodrun, mpirun, Hydra, srun and torchrun and their names in drun.
constexpr OtherWord kOtherWords[] = {
    {"-np", "--num-proc"},
    {"-n", "--num-proc"},
    {"--np", "--num-proc"},
    {"--ntasks", "--num-proc"},
    {"-host", "--hosts"},
    {"--host", "--hosts"},
    {"-hosts", "--hosts"},
    {"-f", "--hostfile"},
    {"-hostfile", "--hostfile"},
    {"-machinefile", "--hostfile"},
    {"--machinefile", "--hostfile"},
    {"-wdir", "--wdir"},
    {"--nproc_per_node", "--nproc-per-node"},
    {"-ppn", "--nproc-per-node"},
    {"-perhost", "--nproc-per-node"},
    {"-iface", "--network-interfaces"},
    {"-prepend-rank", "--tag-output"},
    {"-oversubscribe", "--oversubscribe"},
    {"-bind-to", "--bind-to"},
};

// Replaces another launcher's option by ours. Any other argument is returned unchanged, as is a name that the
// subcommand uses itself (`-n` of drun bench).
std::string long_form(const std::string& arg, const ValueOptions& value_options) {
  const auto has_meaning = [&](std::string_view word) { return value_options.count(std::string(word)) > 0; };
  const auto equals = arg.find('=');
  const std::string_view word = std::string_view(arg).substr(0, equals);
  for (const auto& [typed, ours] : kOtherWords) {
    if (word == typed && !has_meaning(typed))
      return std::string(ours) + (equals == std::string::npos ? "" : arg.substr(equals));
  }
  for (const std::string_view count : {"-np", "-n"}) {
    const auto rest = std::string_view(arg).substr(std::min(count.size(), arg.size()));
    if (begins_with(arg, count) && are_digits(rest) && !has_meaning(count)) return "--num-proc=" + std::string(rest);
  }
  return arg;
}

// True if `option`, in its long form, takes the next argument as its value.
bool takes_next(const std::string& option, const ValueOptions& value_options) {
  if (begins_with(option, "--")) {
    return option == "--num-proc" || option == "--hosts" || option == "--hostfile" || value_options.count(option) > 0;
  }
  for (std::size_t i = 1; i < option.size(); ++i) {
    if (value_options.count(std::string{'-', option[i]}) > 0) return i + 1 == option.size();
  }
  return false;
}

// True for letters behind one dash that drun would read as its own -h or -p: "-hostlist", "-pernode".
bool is_misread(const std::string& option, const ValueOptions& value_options) {
  if (option.size() < 3 || option[1] == '-') return false;
  for (std::size_t i = 1; i < option.size(); ++i) {
    if (option[i] == 'h') return i + 1 < option.size();
    if (value_options.count(std::string{'-', option[i]}) == 0) continue;
    const std::string_view value = std::string_view(option).substr(i + 1);
    return option[i] == 'p' && !value.empty() && !are_digits(value);
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
    i += takes_next(long_form(args[i], value_options), value_options) ? 2u : 1u;
  }
  i = std::min(i, args.size());
  out.options_end = i;
  out.command_begin = i < args.size() && args[i] == "--" ? i + 1 : i;
  return out;
}

// Calls `visit` with the index and the long form of each option.
template <typename Visit>
void for_each_option(const std::vector<std::string>& args, const ValueOptions& value_options, const Visit& visit) {
  const Extent extent = find_command(args, value_options);
  for (std::size_t i = extent.options_begin; i < extent.options_end; ++i) {
    const std::string option = long_form(args[i], value_options);
    visit(i, option);
    if (takes_next(option, value_options)) ++i;  // its value
  }
}

}  // namespace

std::vector<std::string> rewrite_argv(const std::vector<std::string>& args, const ValueOptions& value_options) {
  std::vector<std::string> out = args;
  for_each_option(args, value_options, [&out](std::size_t i, const std::string& option) { out[i] = option; });
  return out;
}

std::optional<std::string> misread_option(const std::vector<std::string>& args, const ValueOptions& value_options) {
  std::optional<std::string> first;
  for_each_option(args, value_options, [&](std::size_t, const std::string& option) {
    if (!first && is_misread(option, value_options)) first = option;
  });
  return first;
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
