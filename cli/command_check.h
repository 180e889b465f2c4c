// `drun check`: tells if a job could run on these hosts, how fast it would be, and what is wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "check/check.h"
#include "cli/check_report/report.h"
#include "cli/option_rows.h"
#include "cli/printer.h"
#include "cli/subcommand.h"
#include "launcher/plan/worker_env.h"

namespace drun::cli {

struct CheckCommand : Subcommand {
  check::CheckOptions check;
  bool json = false;
  bool strict = false;    // warnings count
  std::string html_file;  // "" = none
};

std::vector<OptionRow> check_rows();

// `own_env`: drun's. `args` without the program's name and the word `check`. Every error is Errc::kUsage; files that
// can't be read now or written later are errors here.
Result<CheckCommand> parse_check(const std::vector<std::string>& args, const launcher::Environment& own_env = {});

// Runs and judges a check: check::check_hosts and check::check_status, or a test's replacements.
struct Checker {
  std::function<check::CheckResult(check::CheckOptions, launcher::Reporter&)> check;
  std::function<int(const check::CheckResult&, bool strict)> status;
};

TextStyle style_of_stdout();

// Parses, checks, writes the reports. Returns the checker's exit status; 2 also if the check succeeded but the page
// could not be written.
int command_check(const std::vector<std::string>& args, const Checker& checker, Printer& printer,
                  const launcher::Environment& own_env = {});

}  // namespace drun::cli
