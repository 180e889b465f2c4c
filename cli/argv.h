// Prepares argv for CLI11: splits off the command and replaces the option names of other launchers by drun's (CLI11
// would read `-np` as the short options -n -p). Pure. `args` never holds the program's own name.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace drun::cli {

// Every option that takes a value, as typed: "--hosts", "-H", "-x". All others are flags. "--num-proc", "--hosts",
// "--hostfile" and their names in other launchers are known without being listed.
//
// An option's value is the next argument, whatever it looks like (`-x -np` exports "-np"), unless it is attached:
// `--hosts=a:1`, `-Ha:1`, `-p12345`. Short flags may be bundled (`-vp 12345`).
using ValueOptions = std::set<std::string>;

struct SplitArgs {
  std::vector<std::string> options;
  std::vector<std::string> command;  // from the first positional on, or everything after `--`; may be empty
};

// Rewrites `-np N`, `-np=N`, `-npN` (N: digits), `-n`, `--np` and `--ntasks` to `--num-proc`, `--host` to `--hosts`,
// `-hostfile` and `-machinefile` to `--hostfile`, and similar ones. Rewrites only options of drun: their values, and
// everything from the command on, stay as they are. A leading `run` stays and is skipped.
//
// Other subcommands (`check`, `bench`, `clean`) have no command: remove the subcommand's word before calling.
std::vector<std::string> rewrite_argv(const std::vector<std::string>& args, const ValueOptions& value_options);

// The first option that is letters behind one dash, as other launchers write their options, and that CLI11 would read
// as -h or as -p with a value that is no number: "-hostlist a" would print the help and end with 0.
std::optional<std::string> misread_option(const std::vector<std::string>& args, const ValueOptions& value_options);

// Options before the first positional, and the rest. Drops the `--` between them, and the word `run` if it is the very
// first argument: `./run`, `-v run` and `-- run` are commands. Works before and after rewrite_argv(). CLI11 reports an
// option whose value is missing.
SplitArgs split_command(const std::vector<std::string>& args, const ValueOptions& value_options);

}  // namespace drun::cli
