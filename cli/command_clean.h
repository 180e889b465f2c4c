// `drun clean`: shows and ends what earlier jobs left on hosts.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cli/printer.h"
#include "launcher/clean.h"

namespace drun::cli {

struct CleanCommand {
  std::string help;  // not empty: only to be printed
  launcher::CleanOptions clean;
  bool json = false;
  log::Level log_level = log::Level::kOff;
  std::string log_file;
};

// `args` without the program's name and without the word `clean`. Every complaint is Errc::kUsage.
Result<CleanCommand> parse_clean(const std::vector<std::string>& args);

// Parses, cleans, prints. Returns the exit status: 0 nothing is left, 1 something is, 68 a host could not be
// reached, or the output not be written; 141 its reader left.
int command_clean(const std::vector<std::string>& args, Printer& printer);

}  // namespace drun::cli
